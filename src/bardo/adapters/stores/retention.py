"""How long calls stay in the log: old ones are removed by a thread of the process that writes it, or by hand.

Loads SQLAlchemy where something is removed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bardo.values.errors import OperatorError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from bardo.adapters.stores.log.pruning import Pruned

DAY = 86_400.0
FIRST_LOOK_SECONDS = 10.0
SECONDS_BETWEEN_LOOKS = 3_600.0

_log = logging.getLogger("bardo.log")


class LogPruning:
    """The calls of a log that may be removed. Use it in a `with` block; it opens the database at its beginning."""

    def __init__(self, path: str | Path) -> None:
        """Open the log at `path`. Raises LogMissing, LogNewer or LogUnusable."""
        from sqlalchemy import inspect

        from bardo.adapters.stores.log.database import address_of, check_readable, open_for_reading, open_for_writing
        from bardo.adapters.stores.log.pruning import overwrite_removed

        self._address = address_of(path)
        reading = open_for_reading(self._address)
        try:
            check_readable(reading, self._address)  # A log that is not there is not made.
        finally:
            reading.dispose()
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
        from bardo.adapters.stores.log.pruning import count_before

        with self._using(), self._engine.connect() as connection:
            return count_before(connection, before)

    def prune(self, before: float, *, rest: Callable[[float], bool] | None = None) -> Pruned:
        """Remove the calls of the days before that of `before`, with all that hangs on them. Raises LogUnusable."""
        from bardo.adapters.stores.log import pruning

        with self._using():
            if self._has_memory:
                from bardo.adapters.stores.memory.erasure import overwrite_words

                overwrite_words(self._engine)
            done = pruning.prune(self._engine, before, rest=rest or pruning.rest_and_go_on)
            if self._has_memory and done.calls:
                from bardo.adapters.stores.memory.erasure import clean_index

                clean_index(self._engine)
            return done

    def shrink(self) -> bool:
        """Write SQLite's file anew without the room of what was removed; False where it is in use, and for PostgreSQL."""
        from bardo.adapters.stores.memory.erasure import write_anew

        with self._using():
            return write_anew(self._engine)

    def size(self) -> int | None:
        """Return how many bytes the log takes; None where that is not known."""
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
                done = log.prune(self._clock() - self._days * DAY, rest=self._over.wait)
        except OperatorError as problem:
            _log.warning("old calls cannot be removed now, and are tried again: %s", problem.message)
            return
        if done.calls:
            _log.info("%d calls that are older than %g days are removed from the log", done.calls, self._days)
