"""Copy rows of the log to a file, to a stream or to ClickHouse, and note how far that came.

Loads SQLAlchemy: import it where a log is exported, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from bardo.adapters.net.calls import Transport
from bardo.adapters.stores.export.clickhouse import ClickHouseTable, ClickHouseTarget
from bardo.adapters.stores.export.columns import ExportColumn, export_columns
from bardo.adapters.stores.export.files import WRITERS, FileFormat, whole_file
from bardo.adapters.stores.export.progress import ExportState, Progress
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.queries import RowSpan


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What an export copied: how many rows, and the number of the last one that was looked at."""

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
        known = self._state.get(self._target)
        if known is None:
            return span, False
        if self._reader.is_another_log(known.row_number, known.request_id):
            return span, True
        return msgspec.structs.replace(span, after=max(span.after, known.row_number)), False

    def note(self, row_number: int) -> None:
        """Note that all rows up to a number are exported."""
        request_id = self._reader.id_of_row(row_number)
        if request_id is not None:
            self._state.put(self._target, Progress(row_number=row_number, request_id=request_id))


class FileExport(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of an export is: its format, and whether it holds what was asked and answered."""

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
