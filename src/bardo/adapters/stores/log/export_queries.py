"""Rows of the log for an export: in pieces of bounded size, each read in a short transaction, so that no writer waits for a reader.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Text, cast, func, select

from bardo.adapters.stores.log.schema import ExactJson, inference_log

MOST_ROWS = 10_000
MOST_CHARACTERS = 16_000_000
_AT_ONCE = 100
_column = inference_log.c


class RowSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Rows from after `after` to `last`, both numbers of rows, of calls that began from `since` to before `until`."""

    after: int
    last: int
    since: float | None = None
    until: float | None = None


class RowPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Rows as tuples of the columns that were asked for, and the number of the last row that was looked at."""

    rows: list[tuple[Any, ...]]
    row_number: int


def span_of(connection: Connection, *, since: float | None, until: float | None) -> RowSpan:
    """Return the span of the rows of a time: its ends are found by the index on when calls began."""
    wanted = [] if since is None else [_column.started_at >= since]
    wanted += [] if until is None else [_column.started_at < until]
    ends = select(func.min(_column.row_number), func.max(_column.row_number)).where(*wanted)
    first, last = connection.execute(ends).one()
    return RowSpan(after=(first or 1) - 1, last=last or 0, since=since, until=until)


def next_piece(connection: Connection, span: RowSpan, names: Sequence[str]) -> RowPiece:
    """Return the first rows of a span, and where the next piece begins: JSON columns as the text that is stored."""
    read = [cast(_column[name], Text) if isinstance(_column[name].type, ExactJson) else _column[name] for name in names]
    query = (
        select(_column.row_number, _column.started_at, *read)
        .where(_column.row_number > span.after, _column.row_number <= span.last)
        .order_by(_column.row_number)
        .limit(MOST_ROWS)
    )
    rows: list[tuple[Any, ...]] = []
    number, characters, looked_at = span.after, 0, 0
    with connection.execution_options(stream_results=True, yield_per=_AT_ONCE).execute(query) as found:
        for number, started_at, *values in found:
            looked_at += 1
            if (span.since is None or started_at >= span.since) and (span.until is None or started_at < span.until):
                rows.append(tuple(values))
                characters += sum([len(value) for value in values if type(value) is str])
                if characters >= MOST_CHARACTERS:
                    return RowPiece(rows=rows, row_number=number)
    return RowPiece(rows=rows, row_number=number if looked_at == MOST_ROWS else span.last)


def is_another_log(connection: Connection, row_number: int, request_id: str) -> bool:
    """Whether the log is not the one whose row `row_number` was that of `request_id`; such a row may have been removed since."""
    found = connection.scalar(select(_column.request_id).where(_column.row_number == row_number))
    if found is not None:
        return bool(found != request_id)
    # The oldest rows are removed first, and numbers are never given again.
    last = connection.scalar(select(func.max(_column.row_number)))
    return last is not None and last < row_number


def id_of_row(connection: Connection, row_number: int) -> str | None:
    """Return the request id of the last row up to this number."""
    query = select(_column.request_id).where(_column.row_number <= row_number).order_by(_column.row_number.desc())
    return connection.scalar(query.limit(1))
