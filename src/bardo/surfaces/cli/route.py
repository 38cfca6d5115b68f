"""`bardo route`: what would have been chosen for past requests, and what it would have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer

from bardo.adapters.config.settings import load_settings
from bardo.dialects import DEFAULT_DIALECT
from bardo.dialects.shared.options import read_intent_header
from bardo.routing.workloads import PREFIX
from bardo.surfaces.cli.models import WithLists, providers_of
from bardo.surfaces.cli.options import AsJson, Config, read_bytes
from bardo.surfaces.library.explaining import RoutePlanner
from bardo.surfaces.library.memory import ReplannedRequest, replan
from bardo.surfaces.render.console import print_stderr, show, show_json_text
from bardo.surfaces.render.tables import Column, table

_NOT_KNOWN = "–"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("route", epilog="Example: bardo route past.jsonl --workload cheap")(route)


def route(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="One JSON object a line: bodies of requests, or rows of bardo log --json; - for stdin."
        ),
    ],
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            "--subsystem",
            metavar="NAME",
            help="Route every request by this workload instead of its model.",
        ),
    ] = "",
    intent: Annotated[
        str,
        typer.Option(
            "--intent", metavar="NEEDS", help="What every call needs: 'quality=high; require=vision', or JSON."
        ),
    ] = "",
    dialect: Annotated[
        str, typer.Option("--dialect", metavar="NAME", help="The dialect of the request bodies.")
    ] = DEFAULT_DIALECT,
    lists: WithLists = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show which models past requests would get now.

    No request is sent: the configuration at hand decides. Costs are estimates from the catalog's prices, by the tokens that the log has or
    by the length of a request; where no price is known, none is shown. --json prints one object a line.
    """
    needs = read_intent_header(intent, "--intent")
    model = PREFIX + workload.removeprefix(PREFIX) if workload else ""
    settings = load_settings(config)
    planner = RoutePlanner(settings, providers_of(settings, with_lists=lists))
    chosen = (replan(line, text, planner, dialect=dialect, model=model, needs=needs) for line, text in _lines(file))
    if as_json:
        for one in chosen:
            show_json_text(msgspec.json.encode(one).decode())
        return
    found = list(chosen)
    if not found:
        print_stderr("no requests")
        return
    columns = ("line", "asked", "answered by", "cost", "would ask", "about", "lacks")
    show(table(tuple(map(Column, columns)), map(_cells, found)))
    for line in _summary(found):
        print_stderr(line)


def _lines(file: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold something with their numbers; a whole JSON array of rows, as `bardo log --json` prints, has one a row."""
    text = read_bytes(file)
    try:
        rows = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        rows = None  # Not one array: lines.
    parts: Sequence[bytes] = text.splitlines() if rows is None else [bytes(row) for row in rows]
    return ((number, part) for number, part in enumerate(parts, 1) if part.strip())


def _cells(one: ReplannedRequest) -> tuple[str, ...]:
    would = one.error or f"{one.provider}/{one.model}"
    lacks = ", ".join(one.degraded)
    return (
        str(one.line),
        one.asked,
        one.answered_by or _NOT_KNOWN,
        _cost(one.cost_usd),
        would,
        _cost(one.estimated_cost_usd),
        lacks,
    )


def _cost(usd: float | None) -> str:
    return _NOT_KNOWN if usd is None else f"${usd:.6f}"


def _summary(found: Sequence[ReplannedRequest]) -> Iterator[str]:
    """Yield how often each model would be asked, and the sums."""
    asked = Counter(f"{one.provider}/{one.model}" for one in found if not one.error)
    for name, times in asked.most_common():
        yield f"{times} of {len(found)} to {name}"
    failed = sum(bool(one.error) for one in found)
    if failed:
        yield f"{failed} of {len(found)} to nobody"
    known = [one.estimated_cost_usd for one in found if one.estimated_cost_usd is not None]
    if known:
        yield f"about ${sum(known):.6f} for the {len(known)} with a known price"
    paid = [one.cost_usd for one in found if one.cost_usd is not None]
    if paid:
        yield f"${sum(paid):.6f} was paid for the {len(paid)} whose cost is in the log"
