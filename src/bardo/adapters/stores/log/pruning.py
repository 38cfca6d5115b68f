"""Remove old calls from the log in small batches, beside whoever writes it. The sums of their costs stay.

Whole days of UTC are removed: costs of the days before are those of the sums, and no day is there by half. What hangs on a call goes with
it, its feedback in the same transaction, its episode by the trigger of the reasoning memory.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from sqlalchemy import Connection, Engine, delete, event, func, select

from bardo.adapters.stores.log.database import inference_feedback, inference_log
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, day_of

AT_ONCE = 500
"""Calls that one transaction removes: writers of the log wait for it."""
SHARE = 1.0
"""How long it rests after a batch, for each second that the batch took."""
SHORTEST_REST_SECONDS = 0.005
_column = inference_log.c


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed: calls, and what was thought of their answers. `before` is the Unix time at which the days that stay begin."""

    before: float
    calls: int
    feedback: int


def first_day_kept(before: float) -> float:
    """Return the beginning of the day of a time, in UTC: calls of days before it are removed."""
    return float(day_of(before) * SECONDS_PER_DAY)


def rest_and_go_on(seconds: float) -> bool:
    """Wait, and say that it is not time to stop."""
    time.sleep(seconds)
    return False


def prune(
    engine: Engine,
    before: float,
    *,
    rest: Callable[[float], bool] = rest_and_go_on,
    watch: Callable[[], float] = time.monotonic,
) -> Pruned:
    """Remove the calls of all days before that of `before`. `rest` waits so many seconds and says whether to stop; a later call goes on.

    Raises SQLAlchemyError.
    """
    end = first_day_kept(before)
    calls = feedback = 0
    while True:
        begun = watch()
        with engine.begin() as connection:
            number, opinions = _remove_batch(connection, end)
        calls, feedback = calls + number, feedback + opinions
        if number < AT_ONCE or rest(max(SHORTEST_REST_SECONDS, (watch() - begun) * SHARE)):
            return Pruned(before=end, calls=calls, feedback=feedback)


def count_before(connection: Connection, before: float) -> int:
    """Return how many calls `prune` would remove."""
    return connection.scalar(select(func.count()).where(_column.started_at < first_day_kept(before))) or 0


def overwrite_removed(engine: Engine) -> None:
    """Have SQLite overwrite what is deleted over this engine, which may be what was asked and answered."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA secure_delete = ON"))


def _remove_batch(connection: Connection, end: float) -> tuple[int, int]:
    oldest = select(_column.row_number, _column.request_id).where(_column.started_at < end)
    found = connection.execute(oldest.order_by(_column.started_at).limit(AT_ONCE)).all()
    if not found:
        return 0, 0
    connection.execute(delete(inference_log).where(_column.row_number.in_([row.row_number for row in found])))
    named = inference_feedback.c.request_id.in_([row.request_id for row in found])
    return len(found), connection.execute(delete(inference_feedback).where(named)).rowcount
