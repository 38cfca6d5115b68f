"""`bardo costs`: what calls cost, by provider, time, subsystem or cause; with `--cache`, what prompt caches saved."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from bardo.adapters.config.settings import load_settings, log_path
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.rollup import DIMENSIONS
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.caches import prompt_cache_cells
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.costs import (
    CAUSE,
    CAUSE_CSV_COLUMNS,
    CSV_COLUMNS,
    caches_table,
    cause_records,
    causes_table,
    cost_records,
    costs_csv,
    costs_table,
    read_dimensions,
    totals_record,
    totals_text,
)
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import one_line
from bardo.values.errors import InvalidRequest

_COLUMNS = (
    *(Column(name, keep=True) for name in ("provider", "model", "key")),
    Column("calls", right=True),
    Column("input", right=True),
    Column("read", right=True, drop=1),
    Column("written", right=True, drop=2),
    Column("saved", right=True),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("costs", epilog="Example: bardo costs --since 7d --by day,cause")(costs)


def costs(
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="WHAT", help=f"Sum by {', '.join(DIMENSIONS)} or cause; several with commas."),
    ] = None,
    since: Since = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only calls before then, written like --since.")
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache", help="Show what prompt caches read, wrote and saved, also --by what.")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")] = False,
    config: Config = None,
) -> None:
    """Show calls, tokens and cost by provider and model. A price that is not known is unknown, not 0.

    `difference` is what providers report above what the price rows say. A day is one of UTC.
    """
    if as_json and as_csv:
        raise InvalidRequest("--json and --csv exclude each other", hint="give one of them")
    common, by_cause = read_dimensions(by)
    now = time.time()
    begin, end = since_time(since, now), since_time(until, now, option="--until")
    if cache and by_cause:
        raise InvalidRequest("--cache has no costs by cause", hint="leave cause out of --by")
    log = log_path(load_settings(config))
    if cache and not by:
        with LogReader(log) as reader:
            totals = reader.cache_totals(since=begin)
        if as_json:
            show_json({"totals": [{name: getattr(one, name) for name in one.__struct_fields__} for one in totals]})
        elif not totals:
            print_stderr("no calls")
        else:
            show(table(_COLUMNS, map(prompt_cache_cells, totals)))
            for one in totals:
                if one.changing:
                    where = f"{one.provider}/{one.model}" + (f", key {one.key_id}" if one.key_id else "")
                    show_text(one_line(f"{where}: {one.changing:,} calls whose prompt begins anew: {one.why}"))
        return
    with LogReader(log, journals=True) as reader:
        groups = reader.costs(common, since=begin, until=end)
    records = cause_records(groups) if by_cause else cost_records(groups)
    if as_csv:
        columns = (*common, *(CAUSE_CSV_COLUMNS if by_cause else CSV_COLUMNS))
        show_text(costs_csv(records, columns).rstrip("\n"))
    elif as_json:
        show_json({"by": [*common, *([CAUSE] if by_cause else [])], **totals_record(groups), "totals": records})
    elif not groups:
        print_stderr("no calls")
    else:
        show((caches_table if cache else causes_table if by_cause else costs_table)(records, common))
        show_text(f"\n{totals_text(groups)}")
