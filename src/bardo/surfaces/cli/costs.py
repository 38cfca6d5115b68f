"""`bardo costs`: what calls cost, by who was asked, when, for whom and why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bardo.edge.data_paths import log_path
from bardo.edge.log import CallSums, CostGroup, Dimension, LogReader
from bardo.edge.log.rollup import DIMENSIONS
from bardo.edge.settings import load_settings
from bardo.surfaces.cli.costs_cache import show_cache
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.console import say, show, show_json, show_text
from bardo.surfaces.render.costs import (
    CAUSE,
    CAUSE_CSV_COLUMNS,
    CSV_COLUMNS,
    cause_records,
    causes_table,
    cost_records,
    costs_csv,
    costs_table,
)
from bardo.surfaces.render.wording import dollars
from bardo.values.cost import usd
from bardo.values.errors import InvalidRequest

_USUAL: tuple[Dimension, ...] = ("provider", "model")


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
    cache: Annotated[bool, typer.Option("--cache", help="Show what prompt caches read, wrote and saved.")] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")] = False,
    config: Config = None,
) -> None:
    """Show calls, tokens and cost by provider and model. A price that is not known is unknown, not 0.

    `difference` is what providers report above what the price rows say. A day is one of UTC.
    """
    if as_json and as_csv:
        raise InvalidRequest("--json and --csv exclude each other", hint="give one of them")
    common, by_cause = _asked(by)
    now = time.time()
    begin, end = since_time(since, now), since_time(until, now, option="--until")
    if cache:
        show_cache(log_path(load_settings(config)), begin, as_json=as_json)
        return
    with LogReader(log_path(load_settings(config))) as reader:
        groups = reader.costs(common, since=begin, until=end)
    records = cause_records(groups) if by_cause else cost_records(groups)
    if as_csv:
        columns = (*common, *(CAUSE_CSV_COLUMNS if by_cause else CSV_COLUMNS))
        show_text(costs_csv(records, columns).rstrip("\n"))
    elif as_json:
        show_json({"by": [*common, *([CAUSE] if by_cause else [])], **_whole(groups), "totals": records})
    elif not groups:
        say("no calls")
    else:
        show((causes_table if by_cause else costs_table)(records, common))
        show_text(f"\n{_in_words(groups)}")


def _asked(by: Sequence[str] | None) -> tuple[tuple[Dimension, ...], bool]:
    """Return what costs are summed by, and whether they are split by cause. Raises InvalidRequest."""
    words = [word.strip().lower() for one in by or () for word in one.split(",") if word.strip()]
    unknown = [word for word in words if word != CAUSE and word not in DIMENSIONS]
    if unknown:
        hint = f"costs are summed by {', '.join(DIMENSIONS)} and {CAUSE}"
        raise InvalidRequest(f"--by does not understand {unknown[0]!r}", hint=hint)
    if not words:
        return _USUAL, False
    return tuple([one for one in dict.fromkeys(words) if one != CAUSE]), CAUSE in words  # type: ignore[misc]


def _whole(groups: Sequence[CostGroup]) -> dict[str, Any]:
    sums = _sum(groups)
    return {
        "calls": sums.calls,
        "failed": sums.failed,
        "cost_usd": usd(sums.cost_nanos) if sums.cost_known else None,
        "cost_nanos": sums.cost_nanos if sums.cost_known else None,
        "cost_known": sums.cost_known,
        "cost_unknown": sums.calls - sums.cost_known,
        "partial_usd": usd(sums.partial_nanos),
    }


def _sum(groups: Sequence[CostGroup]) -> CallSums:
    whole = CallSums()
    for group in groups:
        whole.add(group.sums)
    return whole


def _in_words(groups: Sequence[CostGroup]) -> str:
    sums = _sum(groups)
    spent = dollars(usd(sums.cost_nanos) if sums.cost_known else None)
    part = "" if sums.cost_known in (0, sums.calls) else f" for the {sums.cost_known:,} whose cost is known"
    at_least = f"; of the others {dollars(usd(sums.partial_nanos))} at least" if sums.partial_nanos else ""
    return f"{sums.calls:,} calls, cost {spent}{part}{at_least}"
