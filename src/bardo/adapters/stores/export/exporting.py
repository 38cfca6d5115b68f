"""Copy rows of the log to a file, to a stream or to ClickHouse, and note how far that came, so that the next export begins there.

Loads SQLAlchemy: import it where a log is exported, and nowhere above.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from bardo.adapters.net.calls import Transport
from bardo.adapters.stores.database.problems import ExportFailed
from bardo.adapters.stores.export.clickhouse import ClickHouseTable, ClickHouseTarget
from bardo.adapters.stores.export.files import WRITERS, ExportColumn, FileFormat, export_columns, whole_file
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.journal import take_lock
from bardo.adapters.stores.log.queries import RowSpan


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The last row of an export: its number, and the id of its call, by which another log is told from this one."""

    row_number: int
    request_id: str


class ExportState:
    """The progress of all exports, by their targets."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, target: str) -> Progress | None:
        """Return how far exports to a target have come. Raises ExportFailed where the file cannot be read."""
        return self._load().get(target)

    def put(self, target: str, progress: Progress) -> None:
        """Note how far exports to a target have come; the file is replaced as a whole. Raises ExportFailed."""
        states = {**self._load(), target: progress}
        try:
            number, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            with os.fdopen(number, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(states), indent=2))
            Path(name).replace(self._path)
        except OSError as problem:
            raise self._problem("written", problem.strerror or str(problem)) from problem

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other exports with the same state waiting for nothing: raises ExportFailed where one is at work."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise self._problem("written", problem.strerror or str(problem)) from problem
        try:
            if not take_lock(lock):
                raise ExportFailed(
                    f"another export with the state {self._path} is at work", hint="let it end, or name another --state"
                )
            yield
        finally:
            os.close(lock)

    def _load(self) -> dict[str, Progress]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Progress])
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise self._problem("read", problem.strerror or str(problem)) from problem
        except msgspec.DecodeError as problem:
            raise self._problem("read", str(problem)) from problem

    def _problem(self, done: str, why: str) -> ExportFailed:
        return ExportFailed(
            f"the state of exports {self._path} cannot be {done}: {why}",
            hint="check the file, or name another with --state",
        )


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export: how many rows it copied, and the number of the last one it read."""

    rows: int
    row_number: int


class SinceLast:
    """The place in a log behind which the next export to one target begins."""

    def __init__(self, reader: LogReader, state: ExportState, target: str) -> None:
        self._reader = reader
        self._state = state
        self._target = target

    def span(self) -> tuple[RowSpan, bool]:
        """Return the rows that were not exported yet, and whether all are because the log is another one than the last time."""
        span = self._reader.export_span()
        state = self._state.get(self._target)
        if state is None:
            return span, False
        if self._reader.is_another_log(state.row_number, state.request_id):
            return span, True
        return msgspec.structs.replace(span, after=max(span.after, state.row_number)), False

    def note(self, row_number: int) -> None:
        """Note that all rows up to a number are exported."""
        request_id = self._reader.id_of_row(row_number)
        if request_id is not None:
            self._state.put(self._target, Progress(row_number=row_number, request_id=request_id))


class FileExport(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an export: its format, and whether it holds the questions and answers."""

    format: FileFormat
    content: bool = False

    def write(self, reader: LogReader, span: RowSpan, path: Path) -> ExportSummary:
        """Write a span of rows to a file, which is there only once it is whole. Raises ExportFailed and LogUnusable."""
        with whole_file(path) as file:
            return self.write_to(reader, span, file)

    def write_to(self, reader: LogReader, span: RowSpan, file: IO[bytes]) -> ExportSummary:
        """Write a span of rows to an open file or stream."""
        columns = export_columns(content=self.content)
        writer = WRITERS[self.format](file, columns)
        count, last = 0, span.after
        for piece in reader.export_pieces(span, _names(columns)):
            if piece.rows:
                writer.write(piece.rows)
            count, last = count + len(piece.rows), piece.row_number
        writer.finish()
        return ExportSummary(rows=count, row_number=last)


async def export_to_clickhouse(
    reader: LogReader,
    span: RowSpan,
    target: ClickHouseTarget,
    *,
    transport: Transport,
    password: str = "",
    content: bool = False,
    note: Callable[[int], None] = lambda row_number: None,
) -> ExportSummary:
    """Send a span of rows to a table; `note` is told the number of the last row that is stored, after each piece.

    Raises ExportFailed and LogUnusable.
    """
    columns = export_columns(content=content)
    table = ClickHouseTable(transport, target, columns, password=password)
    await table.prepare()
    count, last = 0, span.after
    for piece in reader.export_pieces(span, _names(columns)):
        if piece.rows:
            await table.insert(piece.rows)
        count, last = count + len(piece.rows), piece.row_number
        note(last)
    return ExportSummary(rows=count, row_number=last)


def _names(columns: tuple[ExportColumn, ...]) -> list[str]:
    return [column.name for column in columns]
