"""The columns of an export, and files of them: JSON lines, CSV and Parquet. A file has its name only once it is whole.

Loads SQLAlchemy: import it where a log is exported, and nowhere above.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import msgspec
from sqlalchemy import BigInteger, Boolean, Column, Double, Text

from bardo.adapters.stores.database.problems import ExportFailed
from bardo.adapters.stores.log.database import ExactJson, inference_log
from bardo.adapters.stores.log.row import CONTENTS
from bardo.values.error_cleaning import escaped_json, table_cell
from bardo.values.request import how_to_install

ColumnKind = Literal["text", "name", "integer", "number", "boolean", "time", "json"]
"""A `name` is a text of which a log has few different ones; `json` is JSON as text, and a `time` is in UTC."""

_NAMES = frozenset(
    {
        "client_dialect", "provider", "provider_dialect", "model_asked", "model", "outcome", "error_class", "finish_reason", "finish_raw",
        "visibility", "reasoning_intent", "reasoning_layer", "reasoning_verdict", "operation", "price_source", "subsystem", "cache",
        "agent", "repository",
    }
)  # fmt: skip
_LEFT_OUT = frozenset({"cost_usd"})
"""The cost is in `cost_nanos`, exactly."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The years 1900 to 2299: what every target holds.
_FIRST_SECOND, _LAST_SECOND = -2_208_988_800.0, 10_413_791_999.0


class ExportColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column: its name in the log and in the export, its kind, and whether it may hold nothing."""

    name: str
    kind: ColumnKind
    nullable: bool


def export_columns(*, content: bool) -> tuple[ExportColumn, ...]:
    """Return the columns in their order; what was asked and answered is among them only with `content`."""
    return tuple(
        ExportColumn(name=column.name, kind=_kind(column), nullable=bool(column.nullable))
        for column in inference_log.columns
        if column.name not in _LEFT_OUT and (content or column.name not in CONTENTS)
    )


def _kind(column: Column[Any]) -> ColumnKind:
    if column.name == "started_at":
        return "time"
    if column.name in _NAMES:
        return "name"
    kinds: tuple[tuple[type[Any], ColumnKind], ...] = (
        (ExactJson, "json"),
        (Text, "text"),
        (Boolean, "boolean"),
        (Double, "number"),
        (BigInteger, "integer"),
    )
    return next((kind for type_, kind in kinds if isinstance(column.type, type_)), "integer")


def microseconds(seconds: float) -> int:
    """Return a Unix time in microseconds, within the years that every target holds."""
    return round(max(_FIRST_SECOND, min(seconds, _LAST_SECOND)) * 1_000_000)


def utc_text(seconds: float) -> str:
    """Return a Unix time as text in UTC: `2026-01-31T18:00:00.000000`."""
    return (_EPOCH + timedelta(microseconds=microseconds(seconds))).strftime("%Y-%m-%dT%H:%M:%S.%f")


FileFormat = Literal["parquet", "jsonl", "csv"]
SUFFIXES: dict[str, FileFormat] = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}
Row = tuple[Any, ...]


class RowWriter(Protocol):
    """Writes rows to a file that is open."""

    def write(self, rows: Sequence[Row]) -> None:
        """Write some rows."""

    def finish(self) -> None:
        """Write what ends the file, which stays open."""


class JsonLines:
    """One object a line: JSON columns are JSON, times are texts like `2026-01-31T18:00:00.000000Z`.

    What could play with a terminal is escaped.
    """

    def __init__(self, file: IO[bytes], columns: Sequence[ExportColumn]) -> None:
        self._file = file
        self._names = [column.name for column in columns]
        self._changed = [
            (place, change) for place, column in enumerate(columns) if (change := _IN_JSON.get(column.kind))
        ]
        self._encode = msgspec.json.Encoder().encode_lines

    def write(self, rows: Sequence[Row]) -> None:
        """Write some rows."""
        lines = self._encode([dict(zip(self._names, self._as_json(row), strict=True)) for row in rows])
        if not lines.isascii() or b"\x7f" in lines:
            lines = "\n".join(map(escaped_json, lines.decode().split("\n"))).encode()
        self._file.write(lines)

    def finish(self) -> None:
        """Do nothing: a file of lines has no end of its own."""

    def _as_json(self, row: Row) -> list[Any]:
        values = list(row)
        for place, change in self._changed:
            if values[place] is not None:
                values[place] = change(values[place])
        return values


class CsvFile:
    """A table with a head, as RFC 4180 has it. A text in it can play with no terminal, and is no formula of a program for tables."""

    def __init__(self, file: IO[bytes], columns: Sequence[ExportColumn]) -> None:
        self._text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._writer = csv.writer(self._text)
        self._writer.writerow([column.name for column in columns])
        self._changes = [_IN_CSV[column.kind] for column in columns]

    def write(self, rows: Sequence[Row]) -> None:
        """Write some rows."""
        for row in rows:
            self._writer.writerow(
                ["" if value is None else change(value) for value, change in zip(row, self._changes, strict=True)]
            )

    def finish(self) -> None:
        """Write the buffered rows."""
        self._text.flush()
        self._text.detach()


class ParquetFile:
    """Typed columns, a row group for each piece of the log, compressed with Zstandard."""

    def __init__(self, file: IO[bytes], columns: Sequence[ExportColumn]) -> None:
        """Begin a file. Raises ExportFailed where pyarrow is not installed."""
        self._arrow, parquet = _pyarrow()
        self._times = [column.kind == "time" for column in columns]
        arrow = self._arrow
        types = {
            "text": arrow.string(),
            "name": arrow.string(),
            "json": arrow.string(),
            "integer": arrow.int64(),
            "number": arrow.float64(),
            "boolean": arrow.bool_(),
            "time": arrow.timestamp("us", tz="UTC"),
        }
        fields = [self._arrow.field(column.name, types[column.kind], nullable=column.nullable) for column in columns]
        self._schema = self._arrow.schema(fields)
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rows: Sequence[Row]) -> None:
        """Write some rows."""
        made = []
        for values, field, is_time in zip(zip(*rows, strict=True), self._schema, self._times, strict=True):
            held = [microseconds(value) for value in values] if is_time else values
            made.append(self._arrow.array(held, type=field.type))
        self._writer.write_batch(self._arrow.record_batch(made, schema=self._schema))

    def finish(self) -> None:
        """Write the foot."""
        self._writer.close()


WRITERS: dict[FileFormat, Callable[[IO[bytes], Sequence[ExportColumn]], RowWriter]] = {
    "jsonl": JsonLines,
    "csv": CsvFile,
    "parquet": ParquetFile,
}


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` at the end, readable by its owner alone; nothing of it is left after an exception."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name[:50]}.", suffix=".part", dir=path.absolute().parent)
    except OSError as problem:
        raise _unwritable(path, problem) from problem
    try:
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except OSError as problem:
            raise _unwritable(path, problem) from problem
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _unwritable(path: Path, problem: OSError) -> ExportFailed:
    hint = "choose a folder that exists, that this user may write to, and that has room"
    return ExportFailed(f"{path} cannot be written: {problem.strerror or problem}", hint=hint)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as problem:
        hint = f"{how_to_install('parquet')}, or choose --format jsonl"
        raise ExportFailed("Parquet files need pyarrow, which is not installed", hint=hint) from problem


def _time(seconds: float) -> str:
    return f"{utc_text(seconds)}Z"


_IN_JSON: dict[ColumnKind, Callable[[Any], Any]] = {"json": lambda text: msgspec.Raw(text.encode()), "time": _time}
_IN_CSV: dict[ColumnKind, Callable[[Any], Any]] = {
    "text": table_cell,
    "name": table_cell,
    "json": escaped_json,
    "integer": str,
    "number": repr,
    "boolean": lambda value: "true" if value else "false",
    "time": _time,
}
