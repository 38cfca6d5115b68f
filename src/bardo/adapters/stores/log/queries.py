"""What is asked of a log, in SQL that both engines speak.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, Row, func, select

from bardo.adapters.stores.log.problems import AmbiguousRequest
from bardo.adapters.stores.log.row import CallOutcome, Feedback, LogGap, LogRow, NewRows
from bardo.adapters.stores.log.schema import inference_feedback, inference_log, inference_log_gaps
from bardo.adapters.stores.log.stored import LONGEST_NAME, from_columns, mended_text

_column = inference_log.c
_IDS_AT_ONCE = 500
# The last there is, in the byte order ids are compared by.
_LAST_CHARACTER = "\U0010ffff"


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
    query = select(inference_log).where(*wanted, *_since(since)).order_by(_column.row_number.desc()).limit(limit)
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
    found = connection.execute(select(inference_log).where(named).order_by(_column.row_number.desc())).first()
    return None if found is None else from_columns(found._asdict())


def stored(connection: Connection, request_ids: Sequence[str]) -> set[str]:
    """Return which of these calls have a row."""
    found: set[str] = set()
    for begin in range(0, len(request_ids), _IDS_AT_ONCE):
        some = request_ids[begin : begin + _IDS_AT_ONCE]
        found.update(connection.scalars(select(_column.request_id).where(_column.request_id.in_(some))))
    return found


def feedback_on(connection: Connection, request_id: str) -> list[Feedback]:
    """Return what was thought of the answer to one call, oldest first."""
    column = inference_feedback.c
    fields = [column[name] for name in Feedback.__struct_fields__]
    query = select(*fields).where(column.request_id == request_id).order_by(column.row_number)
    return [Feedback(**row._asdict()) for row in connection.execute(query)]


def rows_after(connection: Connection, row_number: int, *, limit: int) -> NewRows:
    """Return the rows after `row_number`, oldest first."""
    query = select(inference_log).where(_column.row_number > row_number).order_by(_column.row_number).limit(limit)
    found = connection.execute(query).all()
    return NewRows(rows=tuple(_rows(found)), row_number=found[-1].row_number if found else row_number)


def last_row_number(connection: Connection) -> int:
    """Return the number of the newest row, 0 where there is none."""
    return connection.scalar(select(func.max(_column.row_number))) or 0


def gaps(connection: Connection) -> list[LogGap]:
    """Return the notes of rows that were dropped, oldest first."""
    noted = inference_log_gaps.c
    query = select(noted.noticed_at, noted.rows, noted.why).order_by(noted.row_number)
    return [LogGap(**row._asdict()) for row in connection.execute(query)]


def _since(since: float | None) -> list[ColumnElement[bool]]:
    return [] if since is None else [_column.started_at >= since]


def _rows(found: Iterable[Row[tuple[object, ...]]]) -> list[LogRow]:
    return [from_columns(row._asdict()) for row in found]


def _ids_text(ids: Sequence[str]) -> str:
    return ", ".join(ids[:2]) + (", …" if len(ids) > 2 else "")
