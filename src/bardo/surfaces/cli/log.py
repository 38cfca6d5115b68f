"""`bardo log`: the calls of the inference log, newest last; `export` copies them, and `prune` removes old ones."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import msgspec
import typer

from bardo.adapters.config.settings import Settings, data_folder, load_settings, log_path
from bardo.adapters.stores.log import CallOutcome, LogReader, LogRow
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import STDIN, AsJson, Config, Since, since_time
from bardo.surfaces.render.calls import call_facts, calls_table
from bardo.surfaces.render.console import print_stderr, show, show_json, show_json_text
from bardo.surfaces.render.wording import count, printable
from bardo.values.errors import InvalidRequest

if TYPE_CHECKING:
    from typing_extensions import Buffer as ReadableBuffer

    from bardo.adapters.stores.export.clickhouse import ClickHouseTarget
    from bardo.adapters.stores.export.exporting import ExportSummary, SinceLast
    from bardo.adapters.stores.log.queries import RowSpan

STATE_FILE = "log-exports.json"
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only calls before then.")]


class Format(StrEnum):
    """What a file may be."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


def export(
    target: Annotated[
        str | None, typer.Argument(metavar="FILE|URL", help="A file, - for stdout, or ClickHouse.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="URL", help="The same, for ClickHouse.")] = None,
    since: Since = None,
    until: Until = None,
    since_last: Annotated[bool, typer.Option("--since-last", help="Only what the last export there has not.")] = False,
    file_format: Annotated[
        Format | None, typer.Option("--format", help="By default the file's ending says it.")
    ] = None,
    content: Annotated[bool, typer.Option("--content", help="With what was asked and answered.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    state: Annotated[Path | None, typer.Option("--state", metavar="FILE", help="Where --since-last is noted.")] = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Copy calls to Parquet, JSON lines or CSV, or to a table of ClickHouse.

    URL: https://host:8443/?database=logs&table=calls, with the password in BARDO_CLICKHOUSE_PASSWORD.
    """
    if (not target and not to) or (target and to):
        raise InvalidRequest(
            "it must be said where the log is copied to", hint="give a file, -, or an address of ClickHouse"
        )
    place = target or to or ""
    if since_last and (since or until):
        raise InvalidRequest("--since-last and a time exclude each other", hint="leave --since and --until out")
    settings, now = load_settings(config), time.time()
    begin, end = since_time(since, now), since_time(until, now, option="--until")
    job = _Job(place, settings, file_format, content=content, force=force)
    with ExitStack() as stack:
        reader = stack.enter_context(LogReader(log_path(settings)))
        follow = job.since_last(reader, stack, state) if since_last else None
        span, anew = (reader.export_span(since=begin, until=end), False) if follow is None else follow.span()
        if anew:
            print_stderr("the log is another one than the last time: all of it is exported")
        done = job.run(reader, span, follow)
    quiet = place == STDIN
    rows = 0 if done is None else done.rows
    if as_json and not quiet:
        show_json({"rows": rows, "target": job.name, "row_number": None if done is None else done.row_number})
    elif rows == 0 and done is None:
        print_stderr("no calls since the last export")
    else:
        print_stderr(f"{count(rows)} call{'' if rows == 1 else 's'} copied to {job.name}")


class _Job:
    """One export: where it goes, and how."""

    def __init__(self, place: str, settings: Settings, wanted: Format | None, *, content: bool, force: bool) -> None:
        from bardo.adapters.stores.export.clickhouse import target_of
        from bardo.adapters.stores.export.exporting import FileExport

        self._settings = settings
        self._content = content
        self._table: ClickHouseTarget | None = None
        self._path: Path | None = None
        if "://" in place:
            if wanted is not None or force:
                raise InvalidRequest("--format and --force are for files", hint="leave them out")
            self._table = target_of(place)
            self.name = self._table.name
            return
        self._path = None if place == STDIN else Path(place)
        self.name = "stdout" if self._path is None else place
        path = self._path
        from bardo.adapters.stores.export.files import SUFFIXES

        found = SUFFIXES.get(path.suffix.lower()) if path is not None else "jsonl"
        if wanted is None and found is None:
            raise InvalidRequest(f"nothing says what {path} is to be", hint="add --format parquet, jsonl or csv")
        made = wanted or Format(found or "jsonl")
        if path is None and made is Format.PARQUET:
            raise InvalidRequest("Parquet is not written to stdout", hint="name a file")
        self._file = FileExport(format=made.value, content=content)
        if self._path is not None and self._path.exists() and not force:
            raise InvalidRequest(f"{place} exists", hint="name another file, or replace it with --force")

    def since_last(self, reader: LogReader, stack: ExitStack, state: Path | None) -> SinceLast:
        """Return where this export begins, held against others with the same state."""
        from bardo.adapters.stores.export.exporting import ExportState, SinceLast

        if self._table is None and self._path is None:
            raise InvalidRequest("--since-last needs a file or a table", hint="nobody knows what became of a stream")
        stored = ExportState(state or data_folder(self._settings) / STATE_FILE)
        stack.enter_context(stored.alone())
        return SinceLast(reader, stored, self._target())

    def _target(self) -> str:
        """Return what the state knows the target by: a table, or a folder and a format, since each file has a name of its own."""
        if self._path is None:
            return self.name
        return f"{self._path.absolute().parent} {self._file.format}"

    def run(self, reader: LogReader, span: RowSpan, follow: SinceLast | None) -> ExportSummary | None:
        """Copy the rows, or None if there are none since the last time."""
        if follow is not None and span.after >= span.last:
            return None
        if self._table is not None:
            return asyncio.run(self._send(reader, span, self._table, follow))
        if self._path is None:
            # Write to a pipe as it is, and to a terminal what can do nothing to it.
            if not sys.stdout.isatty():
                done = self._file.write_to(reader, span, sys.stdout.buffer)
                sys.stdout.buffer.flush()
                return done
            return self._file.write_to(reader, span, cast("IO[bytes]", _Terminal()))
        done = self._file.write(reader, span, self._path)
        if follow is not None:
            follow.note(done.row_number)
        return done

    async def _send(
        self, reader: LogReader, span: RowSpan, table: ClickHouseTarget, follow: SinceLast | None
    ) -> ExportSummary:
        from bardo.adapters.net.client import HttpTransport
        from bardo.adapters.stores.export.clickhouse import PASSWORD_VARIABLE
        from bardo.adapters.stores.export.exporting import export_to_clickhouse

        transport = HttpTransport()
        try:
            return await export_to_clickhouse(
                reader,
                span,
                table,
                transport=transport,
                password=os.environ.get(PASSWORD_VARIABLE, ""),
                content=self._content,
                note=follow.note if follow is not None else lambda row_number: None,
            )
        finally:
            await transport.close()


class _Terminal(io.RawIOBase):
    """The terminal as a file: nothing of a row can play with it."""

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        encoded = bytes(data)
        sys.stdout.write(printable(encoded.decode("utf-8", "replace")))
        sys.stdout.flush()
        return len(encoded)


def prune(
    before: Annotated[str, typer.Option("--before", metavar="TIME", help="Written 90d, or 2026-01-31.")],
    shrink: Annotated[bool, typer.Option("--shrink", help="Write SQLite's file anew, smaller.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Remove the calls of all days (UTC) before that of a time, for good.

    Their feedback and episodes go too; sums of costs by day stay. A gateway may write meanwhile, but waits while a file is written anew.
    """
    from bardo.adapters.stores.retention import LogPruning, first_day_kept

    moment = since_time(before, time.time(), option="--before") or 0.0
    day = datetime.fromtimestamp(first_day_kept(moment), UTC).date()
    with LogPruning(log_path(load_settings(config))) as log:
        number = log.count(moment)
        if number and not yes:
            # Ask whether so many calls are to be removed.
            which = f"before {day}"
            if not sys.stdin.isatty():
                raise InvalidRequest(
                    f"{_calls(number)} {which} would be removed", hint="add --yes where nobody can be asked"
                )
            typer.confirm(f"Remove {_calls(number)} {which} for good?", abort=True, err=True)
        size = log.size()
        done = log.prune(moment)
        shrunk = log.shrink() if shrink else None
        now = log.size()
        if as_json:
            show_json(
                {"calls": done.calls, "feedback": done.feedback, "before": str(day), "bytes": now, "shrunk": shrunk}
            )
            return
        print_stderr(f"{_calls(done.calls)} before {day} removed; the sums of their costs stay")
        if shrunk:
            print_stderr(f"the log takes {_megabytes(now)} now, {_megabytes(size)} before")
        elif shrunk is False:
            print_stderr(
                "the file could not be written anew: another program uses it, or the log is not SQLite's. Try again later"
            )
        else:
            print_stderr("the room they took is used for new calls; --shrink makes a file of SQLite smaller")


def _calls(number: int) -> str:
    return f"{count(number)} call{'' if number == 1 else 's'}"


def _megabytes(size: int | None) -> str:
    return "an unknown number of bytes" if size is None else f"{size / 1_000_000:.1f} MB"


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
    COMPACT = "compact"


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
    log.command("export", epilog="Example: bardo log export calls.parquet --since 7d")(export)
    log.command("prune", epilog="Example: bardo log prune --before 90d")(prune)
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
