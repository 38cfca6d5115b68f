"""Pages of the calls in a log, newest first: what a list shows of each, without what was asked and answered.

A page begins where the one before it ended, by the number of a row, so that every page takes as long as the first. Few calls may match a
filter: rows are looked through in steps, for a bounded time, and the next page goes on from there.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import ColumnElement, Connection, or_, select

from bardo.adapters.stores.log.queries import last_row_number
from bardo.adapters.stores.log.row import CallFilter, CallPage, LogRow
from bardo.adapters.stores.log.schema import inference_log

MOST_SECONDS = 0.5
_STEP = 10_000
_column = inference_log.c
_LISTED = (
    "row_number",
    "request_id",
    "started_at",
    "seconds",
    "client_dialect",
    "provider",
    "provider_dialect",
    "model_asked",
    "model",
    "streamed",
    "attempts",
    "operation",
    "status",
    "outcome",
    "error_class",
    "visibility",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "tokens_approx",
    "cost_usd",
    "reasoning_verdict",
    "key_id",
)


def calls_before(
    connection: Connection,
    wanted: CallFilter,
    before: int | None,
    *,
    limit: int,
    clock: Callable[[], float] = time.monotonic,
) -> CallPage:
    """Return the newest calls that match, of those whose rows stand before row `before`; None begins with the newest."""
    end = last_row_number(connection) + 1 if before is None else before
    conditions = _conditions(wanted)
    found: list[LogRow] = []
    give_up = clock() + MOST_SECONDS
    while end > 1:
        begin = max(1, end - _STEP)
        rows = _rows(connection, conditions, begin, end, limit + 1 - len(found))
        for number, row in rows:
            if len(found) == limit:
                return CallPage(rows=tuple(found), before=number + 1)
            found.append(row)
        end = begin
        if clock() >= give_up:
            break
    return CallPage(rows=tuple(found), before=end if end > 1 else None)


def _rows(
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


def _conditions(wanted: CallFilter) -> list[ColumnElement[bool]]:
    exact = {
        "provider": wanted.provider,
        "outcome": wanted.outcome,
        "key_id": wanted.key_id,
        "reasoning_verdict": wanted.verdict,
    }
    made: list[ColumnElement[bool]] = [_column[name] == value for name, value in exact.items() if value is not None]
    if wanted.model is not None:
        made.append(or_(_column.model == wanted.model, _column.model_asked == wanted.model))
    if wanted.since is not None:
        made.append(_column.started_at >= wanted.since)
    if wanted.until is not None:
        made.append(_column.started_at < wanted.until)
    if wanted.id_part:
        made.append(_column.request_id.contains(wanted.id_part, autoescape=True))
    return made
