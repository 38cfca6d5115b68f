"""The queries of the rows of a log, in SQL that both engines speak: the last ones, one, pages, their times, and all in pieces.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import URL, ColumnElement, Connection, Row, Text, cast, func, or_, select, text

from bardo.adapters.stores.database.engines import is_file
from bardo.adapters.stores.database.problems import AmbiguousRequest
from bardo.adapters.stores.log.database import (
    ExactJson,
    inference_feedback,
    inference_log,
    inference_log_gaps,
    inference_rollup,
    metadata,
)
from bardo.adapters.stores.log.row import (
    LONGEST_NAME,
    CallFilter,
    CallOutcome,
    CallPage,
    CallTimes,
    Feedback,
    LogExtent,
    LogGap,
    LogRow,
    NewRows,
    from_columns,
    mended_text,
)

MOST_SECONDS = 0.5
"""How long a page of calls is looked for: few may match a filter, and the next page goes on from where this one ended."""
MOST_ROWS = 10_000
MOST_CHARACTERS = 16_000_000
"""How much one piece of an export holds, about."""
_column = inference_log.c
_IDS_AT_ONCE = 500
_ROWS_OF_A_STEP = 10_000
_ROWS_FETCHED_AT_ONCE = 100
_LISTED = (
    "row_number", "request_id", "started_at", "seconds", "client_dialect", "provider", "provider_dialect",
    "model_asked", "model", "streamed", "attempts", "operation", "status", "outcome", "error_class",
    "visibility", "input_tokens", "output_tokens", "reasoning_tokens", "tokens_approx", "cost_usd",
    "reasoning_verdict", "key_id",
)  # fmt: skip
_TIMES = tuple(_column[name] for name in CallTimes.__struct_fields__)
_FILE_ENDINGS = ("", "-wal")
# The last there is, in the byte order ids are compared by.
_LAST_CHARACTER = "\U0010ffff"


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


def recent(
    connection: Connection,
    limit: int,
    *,
    provider: str | None,
    model: str | None,
    since: float | None,
    outcome: CallOutcome | None,
    verdict: str | None,
    operation: str | None,
) -> list[LogRow]:
    """Return the last rows that match, newest first."""
    wanted: list[ColumnElement[bool]] = []
    if provider is not None:
        wanted.append(_column.provider == provider)
    if model is not None:
        wanted.append(_column.model == model)
    if outcome is not None:
        wanted.append(_column.outcome == outcome)
    if verdict is not None:
        wanted.append(_column.reasoning_verdict == verdict)
    if operation is not None:
        wanted.append(_column.operation == operation)
    query = (
        select(inference_log)
        .where(*wanted, *([] if since is None else [_column.started_at >= since]))
        .order_by(_column.row_number.desc())
        .limit(limit)
    )
    return _rows(connection.execute(query))


def find(connection: Connection, request_id: str, further: Sequence[LogRow] = ()) -> LogRow | None:
    """Return the row of a request, by its whole id or by a beginning that no other id has. `further` are calls that are not stored yet."""
    exact = find_exact(connection, request_id)
    named = {row.request_id: row for row in further if row.request_id.startswith(request_id)}
    if exact is not None or request_id in named:
        return exact or named[request_id]
    request_id = mended_text(request_id, LONGEST_NAME)
    begins = (_column.request_id >= request_id, _column.request_id < request_id + _LAST_CHARACTER)
    ids = [*connection.scalars(select(_column.request_id).where(*begins).distinct().limit(3)), *named]
    if len(ids) > 1:
        raise AmbiguousRequest(
            f"several requests begin with {request_id!r}: {_ids_text(ids)}", hint="give more of the id"
        )
    return find(connection, ids[0], further) if ids else None


def find_exact(connection: Connection, request_id: str) -> LogRow | None:
    """Return the row of a request, by its whole id."""
    named = _column.request_id == mended_text(request_id, LONGEST_NAME)
    row = connection.execute(select(inference_log).where(named).order_by(_column.row_number.desc())).first()
    return None if row is None else from_columns(row._asdict())


def stored(connection: Connection, request_ids: Sequence[str]) -> set[str]:
    """Return which of these calls have a row."""
    ids: set[str] = set()
    for begin in range(0, len(request_ids), _IDS_AT_ONCE):
        some = request_ids[begin : begin + _IDS_AT_ONCE]
        ids.update(connection.scalars(select(_column.request_id).where(_column.request_id.in_(some))))
    return ids


def feedback_on(connection: Connection, request_id: str) -> list[Feedback]:
    """Return what was thought of the answer to one call, oldest first."""
    column = inference_feedback.c
    fields = [column[name] for name in Feedback.__struct_fields__]
    query = select(*fields).where(column.request_id == request_id).order_by(column.row_number)
    return [Feedback(**row._asdict()) for row in connection.execute(query)]


def rows_after(connection: Connection, row_number: int, *, limit: int) -> NewRows:
    """Return the rows after `row_number`, oldest first."""
    query = select(inference_log).where(_column.row_number > row_number).order_by(_column.row_number).limit(limit)
    rows = connection.execute(query).all()
    return NewRows(rows=tuple(_rows(rows)), row_number=rows[-1].row_number if rows else row_number)


def last_row_number(connection: Connection) -> int:
    """Return the number of the newest row, 0 where there is none."""
    return connection.scalar(select(func.max(_column.row_number))) or 0


def gaps(connection: Connection) -> list[LogGap]:
    """Return the notes of rows that were dropped, oldest first."""
    noted = inference_log_gaps.c
    query = select(noted.noticed_at, noted.rows, noted.why).order_by(noted.row_number)
    return [LogGap(**row._asdict()) for row in connection.execute(query)]


def _rows(rows: Iterable[Row[tuple[object, ...]]]) -> list[LogRow]:
    return [from_columns(row._asdict()) for row in rows]


def _ids_text(ids: Sequence[str]) -> str:
    return ", ".join(ids[:2]) + (", …" if len(ids) > 2 else "")


def calls_before(
    connection: Connection,
    wanted: CallFilter,
    before: int | None,
    *,
    limit: int,
    clock: Callable[[], float] = time.monotonic,
) -> CallPage:
    """Return the newest calls that match, of those whose rows stand before row `before`; None begins with the newest.

    What was asked and answered is not read. A page begins where the one before it ended, so that every page takes as long as the first.
    """
    end = last_row_number(connection) + 1 if before is None else before
    exact = {
        "provider": wanted.provider,
        "outcome": wanted.outcome,
        "key_id": wanted.key_id,
        "reasoning_verdict": wanted.verdict,
    }
    conditions: list[ColumnElement[bool]] = [
        _column[name] == value for name, value in exact.items() if value is not None
    ]
    if wanted.model is not None:
        conditions.append(or_(_column.model == wanted.model, _column.model_asked == wanted.model))
    if wanted.since is not None:
        conditions.append(_column.started_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(_column.started_at < wanted.until)
    if wanted.id_part:
        conditions.append(_column.request_id.contains(wanted.id_part, autoescape=True))
    calls: list[LogRow] = []
    give_up = clock() + MOST_SECONDS
    while end > 1:
        begin = max(1, end - _ROWS_OF_A_STEP)
        rows = _listed_rows(connection, conditions, begin, end, limit + 1 - len(calls))
        for number, row in rows:
            if len(calls) == limit:
                return CallPage(rows=tuple(calls), before=number + 1)
            calls.append(row)
        end = begin
        if clock() >= give_up:
            break
    return CallPage(rows=tuple(calls), before=end if end > 1 else None)


def _listed_rows(
    connection: Connection, conditions: list[ColumnElement[bool]], begin: int, end: int, limit: int
) -> list[tuple[int, LogRow]]:
    columns = [_column[name] for name in _LISTED]
    among = (_column.row_number >= begin, _column.row_number < end)
    query = select(*columns).where(*among, *conditions).order_by(_column.row_number.desc()).limit(limit)
    made = []
    for row in connection.execute(query):
        values = row._asdict()
        made.append((values.pop("row_number"), LogRow(**values)))
    return made


def call_times(
    connection: Connection, limit: int, *, since: float, until: float | None, key: str | None
) -> list[CallTimes]:
    """Return the last calls that began from `since` to before `until`, newest first; `key` is whose, None for those of all."""
    wanted = [_column.started_at >= since]
    wanted += [] if until is None else [_column.started_at < until]
    wanted += [] if key is None else [_column.key_id == mended_text(key, LONGEST_NAME)]
    query = select(*_TIMES).where(*wanted).order_by(_column.started_at.desc()).limit(limit)
    return [CallTimes(*row) for row in connection.execute(query)]


def extent(connection: Connection, address: URL) -> LogExtent:
    """Return the extent of the log at `address`. Its calls are counted by the sums beside the rows, which are few."""
    column = inference_rollup.c
    sums = select(func.coalesce(func.sum(column.calls), 0), func.min(column.day), func.max(column.day))
    rows, first, last = connection.execute(sums).one()
    dropped = connection.scalar(select(func.coalesce(func.sum(inference_log_gaps.c.rows), 0)))
    size = size_of(connection, address)
    return LogExtent(rows=int(rows), dropped=int(dropped or 0), bytes=size, first=first, last=last)


def size_of(connection: Connection, address: URL) -> int | None:
    """Return how many bytes the log at `address` takes, or None if that is not known."""
    return _file_size(address) if is_file(address) else _table_size(connection)


def _file_size(address: URL) -> int | None:
    try:
        files = [Path(f"{address.database}{end}") for end in _FILE_ENDINGS]
        return sum(file.stat().st_size for file in files if file.exists())
    except OSError:
        return None


def _table_size(connection: Connection) -> int | None:
    sizes = " + ".join(f"coalesce(pg_total_relation_size(to_regclass('{name}')), 0)" for name in metadata.tables)
    size = connection.scalar(text(f"SELECT {sizes}"))
    return None if size is None else int(size)


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
    with connection.execution_options(stream_results=True, yield_per=_ROWS_FETCHED_AT_ONCE).execute(query) as result:
        for number, started_at, *values in result:
            looked_at += 1
            if (span.since is None or started_at >= span.since) and (span.until is None or started_at < span.until):
                rows.append(tuple(values))
                characters += sum([len(value) for value in values if type(value) is str])
                if characters >= MOST_CHARACTERS:
                    return RowPiece(rows=rows, row_number=number)
    return RowPiece(rows=rows, row_number=number if looked_at == MOST_ROWS else span.last)


def is_another_log(connection: Connection, row_number: int, request_id: str) -> bool:
    """Whether the log is not the one whose row `row_number` was that of `request_id`; such a row may have been removed since."""
    logged = connection.scalar(select(_column.request_id).where(_column.row_number == row_number))
    if logged is not None:
        return bool(logged != request_id)
    # The oldest rows are removed first, and numbers are never given again.
    last = connection.scalar(select(func.max(_column.row_number)))
    return last is not None and last < row_number


def id_of_row(connection: Connection, row_number: int) -> str | None:
    """Return the request id of the last row up to this number."""
    query = select(_column.request_id).where(_column.row_number <= row_number).order_by(_column.row_number.desc())
    return connection.scalar(query.limit(1))
