"""How long calls stay in the log: old ones are removed by a thread of the process that writes it, or by hand. The sums of their costs stay.

Whole days of UTC are removed: costs of the days before are those of the sums, and no day is there by half. What hangs on a call goes with
it, its feedback in the same transaction, its episode by the trigger of the reasoning memory. Calls go in small batches, beside whoever
writes the log.

Importing this is cheap: SQLAlchemy is loaded where something is removed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, day_of
from bardo.values.errors import OperatorError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

FIRST_LOOK_SECONDS = 10.0
SECONDS_BETWEEN_LOOKS = 3_600.0
AT_ONCE = 500
"""Calls that one transaction removes: writers of the log wait for it."""
SHARE = 1.0
"""How long it rests after a batch, for each second that the batch took."""
SHORTEST_REST_SECONDS = 0.005

_log = logging.getLogger("bardo.log")


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The removed rows: calls, and the feedback on their answers. `before` is the Unix time at which the days that stay begin."""

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


class LogPruning:
    """The calls of a log that may be removed. Use it in a `with` block; it opens the database at its beginning."""

    def __init__(self, path: str | Path) -> None:
        """Open the log at `path`. Raises LogMissing, LogNewer or LogUnusable."""
        from sqlalchemy import inspect

        from bardo.adapters.stores.database.engines import overwrite_removed
        from bardo.adapters.stores.log.database import address_of, open_for_writing, open_readable

        self._address = address_of(path)
        open_readable(self._address).dispose()  # A log that is not there is not made.
        self._engine: Engine = open_for_writing(self._address)
        try:
            overwrite_removed(self._engine)
            with self._using():
                self._has_memory = inspect(self._engine).has_table("memory_episodes")
        except BaseException:
            self._engine.dispose()
            raise

    def count(self, before: float) -> int:
        """Return how many calls would be removed."""
        from sqlalchemy import func, select

        from bardo.adapters.stores.log.database import inference_log

        old = inference_log.c.started_at < first_day_kept(before)
        with self._using(), self._engine.connect() as connection:
            return connection.scalar(select(func.count()).where(old)) or 0

    def prune(
        self,
        before: float,
        *,
        rest: Callable[[float], bool] = rest_and_go_on,
        watch: Callable[[], float] = time.monotonic,
    ) -> Pruned:
        """Remove the calls of the days before that of `before`, with all that hangs on them.

        `rest` waits so many seconds and says whether to stop; a later call goes on. Raises LogUnusable.
        """
        from bardo.adapters.stores.memory.erasure import clean_index, overwrite_words

        end, calls, feedback = first_day_kept(before), 0, 0
        with self._using():
            if self._has_memory:
                overwrite_words(self._engine)
            while True:
                begun = watch()
                with self._engine.begin() as connection:
                    number, opinions = _remove_batch(connection, end)
                calls, feedback = calls + number, feedback + opinions
                if number < AT_ONCE or rest(max(SHORTEST_REST_SECONDS, (watch() - begun) * SHARE)):
                    break
            if self._has_memory and calls:
                clean_index(self._engine)
        return Pruned(before=end, calls=calls, feedback=feedback)

    def shrink(self) -> bool:
        """Write SQLite's file anew without the room of what was removed; False where it is in use, and for PostgreSQL."""
        from bardo.adapters.stores.memory.erasure import write_anew

        with self._using():
            return write_anew(self._engine)

    def size(self) -> int | None:
        """Return how many bytes the log takes, or None if that is not known."""
        from bardo.adapters.stores.log.queries import size_of

        with self._using(), self._engine.connect() as connection:
            return size_of(connection, self._address)

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def __enter__(self) -> LogPruning:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _using(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        from bardo.adapters.stores.log.database import unusable

        try:
            yield
        except SQLAlchemyError as error:
            raise unusable(self._address, error) from error


def _remove_batch(connection: Connection, end: float) -> tuple[int, int]:
    """Remove the oldest calls before a time, and return how many, and how many opinions on them."""
    from sqlalchemy import delete, select

    from bardo.adapters.stores.log.database import inference_feedback, inference_log

    call = inference_log.c
    oldest = select(call.row_number, call.request_id).where(call.started_at < end)
    rows = connection.execute(oldest.order_by(call.started_at).limit(AT_ONCE)).all()
    if not rows:
        return 0, 0
    connection.execute(delete(inference_log).where(call.row_number.in_([row.row_number for row in rows])))
    named = inference_feedback.c.request_id.in_([row.request_id for row in rows])
    return len(rows), connection.execute(delete(inference_feedback).where(named)).rowcount


class LogKeeper:
    """Removes calls that are older than `days`: a thread looks ten seconds after the start, and then each hour."""

    def __init__(
        self,
        path: str | Path,
        days: float,
        *,
        clock: Callable[[], float] = time.time,
        first_look: float = FIRST_LOOK_SECONDS,
        between: float = SECONDS_BETWEEN_LOOKS,
    ) -> None:
        self._path = path
        self._days = days
        self._clock = clock
        self._first_look = first_look
        self._between = between
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="bardo-retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the batch at work; the next process goes on."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        wait = self._first_look
        while not self._over.wait(wait):
            self._look()
            wait = self._between

    def _look(self) -> None:
        try:
            with LogPruning(self._path) as log:
                done = log.prune(self._clock() - self._days * SECONDS_PER_DAY, rest=self._over.wait)
        except OperatorError as problem:
            _log.warning("old calls cannot be removed now, and are tried again: %s", problem.message)
            return
        if done.calls:
            _log.info("%d calls that are older than %g days are removed from the log", done.calls, self._days)
