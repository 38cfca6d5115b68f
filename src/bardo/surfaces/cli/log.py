"""`bardo log`: what the gateway was asked, newest last."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated

import msgspec
import typer

from bardo.adapters.config.settings import load_settings, log_path
from bardo.adapters.stores.log import CallOutcome, LogReader, LogRow
from bardo.surfaces.cli import log_export, log_prune
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.calls import call_facts, calls_table
from bardo.surfaces.render.console import print_stderr, show, show_json, show_json_text
from bardo.values.errors import InvalidRequest

_LOOK_SECONDS = 0.5


class Outcome(StrEnum):
    """How a call may have ended."""

    OK = "ok"
    ERROR = "error"
    BROKEN = "broken"
    CANCELLED = "cancelled"


class OperationName(StrEnum):
    """What may have been asked for."""

    GENERATE = "generate"
    COMPLETE = "complete"
    EMBED = "embed"
    COUNT_TOKENS = "count_tokens"


class VerdictName(StrEnum):
    """What may have become of what was asked of a model's thinking."""

    HONOURED = "honoured"
    CLAMPED = "clamped"
    FLOORED = "floored"
    HIDDEN_ONLY = "hidden_only"
    VOID = "void"
    CONTRADICTED = "contradicted"
    UNKNOWN = "unknown"


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands."""
    log = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
    log.callback(invoke_without_command=True, epilog="Example: bardo log --since 2h --outcome error")(recent)
    log.command("show", epilog="Example: bardo log show req_2b7b702b")(show_call)
    log.command("export", epilog="Example: bardo log export calls.parquet --since 7d")(log_export.export)
    log.command("prune", epilog="Example: bardo log prune --before 90d")(log_prune.prune)
    app.add_typer(log, name="log")


def recent(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1_000_000, help="How many calls.")] = 20,
    provider: Annotated[str | None, typer.Option(help="Only calls this provider served, by its id.")] = None,
    model: Annotated[str | None, typer.Option(help="Only calls this model served.")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="Only calls that ended so.")] = None,
    verdict: Annotated[
        VerdictName | None, typer.Option(help="Only calls with this verdict on how they were asked to think.")
    ] = None,
    operation: Annotated[OperationName | None, typer.Option(help="Only calls that asked for this.")] = None,
    since: Since = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for new calls until Ctrl-C.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show the last calls from the inference log, newest last.

    `~` marks an estimated count, `–` one that nobody reported. --json prints an array, with --follow one object a line.
    """
    if context.invoked_subcommand:
        return
    ended: CallOutcome | None = outcome.value if outcome else None
    judged = verdict.value if verdict else None
    asked = operation.value if operation else None
    begin = since_time(since, time.time())
    with LogReader(log_path(load_settings(config)), journals=True) as reader:
        last = reader.last_row_number()
        found = reader.recent(
            limit, provider=provider, model=model, outcome=ended, verdict=judged, operation=asked, since=begin
        )
        rows = found[::-1]
        if follow:
            wanted = partial(_fits, provider=provider, model=model, outcome=ended, verdict=judged, operation=asked)
            _follow(reader, rows, last, wanted, as_json=as_json)
        elif as_json:
            show_json(rows)
        elif rows:
            show(calls_table(rows, time.time()))
        else:
            print_stderr("no calls that match" if last or reader.waiting() else "no calls")


def show_call(
    request_id: Annotated[str, typer.Argument(metavar="ID", help="The request's id, or its beginning.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show one call in full, by its id or the beginning of its id."""
    with LogReader(log_path(load_settings(config)), journals=True) as reader:
        # Every id begins with nothing.
        row = reader.get(request_id) if request_id else None
        feedback = [] if row is None else reader.feedback(row.request_id)
    if row is None:
        raise InvalidRequest(f"no call has the id {request_id!r}", hint="`bardo log` lists the last ones")
    if as_json:
        show_json({**msgspec.to_builtins(row), "feedback": msgspec.to_builtins(feedback)})
    else:
        show(call_facts(row, time.time(), feedback))


def _follow(
    reader: LogReader, rows: list[LogRow], last: int, wanted: Callable[[LogRow], bool], *, as_json: bool
) -> None:
    """Print `rows`, then what is stored after row number `last`, until Ctrl-C."""
    head, shown = True, {row.request_id for row in rows}
    while True:
        if as_json:
            for row in rows:
                show_json_text(msgspec.json.encode(row).decode())
        elif rows or head:
            show(calls_table(rows, time.time(), head=head))
            head = False
        time.sleep(_LOOK_SECONDS)
        new = reader.after(last)
        last = new.row_number
        # What was read from a journal comes again once it is stored.
        rows = [row for row in new.rows if wanted(row) and row.request_id not in shown]


def _fits(
    row: LogRow,
    *,
    provider: str | None,
    model: str | None,
    outcome: CallOutcome | None,
    verdict: str | None,
    operation: str | None,
) -> bool:
    served = provider in (None, row.provider) and model in (None, row.model)
    asked = verdict in (None, row.reasoning_verdict) and operation in (None, row.operation)
    return served and asked and outcome in (None, row.outcome)
