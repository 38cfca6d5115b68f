"""`bardo costs`: what each provider and model was asked, and what it cost."""

from __future__ import annotations

import time

import msgspec
import typer

from bardo.edge.assembly import log_path
from bardo.edge.log import LogReader
from bardo.edge.settings import load_settings
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.calls import totals_table
from bardo.surfaces.render.console import say, show, show_json, show_text
from bardo.surfaces.render.wording import dollars


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("costs", epilog="Example: bardo costs --since 7d")(costs)


def costs(since: Since = None, as_json: AsJson = False, config: Config = None) -> None:
    """Show calls, tokens and cost by provider and model. A price that is not known is unknown, not 0."""
    begin = since_time(since, time.time())
    with LogReader(log_path(load_settings(config))) as reader:
        totals = reader.totals(since=begin)
    known = sum(total.cost_known for total in totals)
    spent = sum(total.cost_usd or 0.0 for total in totals) if known else None
    calls = sum(total.calls for total in totals)
    if as_json:
        totals_json = msgspec.to_builtins(totals)
        show_json({"calls": calls, "cost_usd": spent, "cost_known": known, "totals": totals_json})
        return
    if not totals:
        say("no calls")
        return
    show(totals_table(totals))
    part = "" if known in (0, calls) else f" for the {known:,} whose cost is known"
    show_text(f"\n{calls:,} calls, cost {dollars(spent)}{part}")
