"""Calls of a store that may be slow or away: off the event loop, in bounded time, and not at all for a while after one that failed."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from bardo.adapters.stores.database.set_aside import RenewableFile, is_damaged, reason
from bardo.values.errors import OperatorError

_THREADS = 4
_MOST_WAITING = 256
_SECONDS_TO_OPEN = 5.0
_FIRST_REST_SECONDS = 1.0
_LONGEST_REST_SECONDS = 30.0
_LEFT_OPEN: list[object] = []
"""Stores whose file another process replaced: closing one would remove what SQLite keeps beside the new file."""
T = TypeVar("T")


class ClosableStore(Protocol):
    """A store whose calls may fail with `problems`, those of what it is kept in."""

    @property
    def problems(self) -> tuple[type[Exception], ...]: ...

    def close(self) -> None: ...


Store = TypeVar("Store", bound=ClosableStore)


class StoreCalls(Generic[Store]):
    """One store. It is opened at its first call by `opening`, and `watch` measures time. `name` is what it keeps, in the log `area`.

    `renewable` is the file that `opening` opens, where it can be made anew: it is then opened again when it was damaged, or was replaced.

    A store that cannot be used, or takes too long, is left alone for a second, then for two, and so on up to half a minute. The program's
    own log says it when that begins and when it is over.
    """

    def __init__(
        self,
        opening: Callable[[], Store],
        *,
        in_memory: bool,
        watch: Callable[[], float],
        name: str = "kept replies",
        area: str = "cache",
        renewable: RenewableFile | None = None,
    ) -> None:
        self._name, self._area = name, area
        self._log = logging.getLogger(f"bardo.{area}")
        self._opening = opening
        self._renewable = renewable
        self.in_memory = in_memory
        self._watch = watch
        self._store: Store | None = opening() if in_memory else None
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._rests_until = 0.0
        self._opened_from = watch()
        self._rest_seconds = 0.0

    @property
    def at_hand(self) -> Store | None:
        """The store where it is in memory, so that its calls need not be waited for, or None if it is elsewhere."""
        return self._store if self.in_memory else None

    async def ask(self, call: Callable[[Store], T], seconds: float) -> T | None:
        """Return what a call of the store gives, or None if the store does not answer within so many seconds, or rests."""
        if self.in_memory and self._store is not None:
            return call(self._store)
        if self._waiting >= _MOST_WAITING or self._watch() < self._rests_until:
            return None
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"bardo-{self._area}")
        self._waiting += 1
        running = self._pool.submit(self._call, call)
        loop = asyncio.get_running_loop()
        running.add_done_callback(lambda _: _tell(loop, self._note_done))
        try:
            async with asyncio.timeout(seconds):
                answer = await asyncio.wrap_future(running)
        except TimeoutError:
            if self._store is None and self._watch() - self._opened_from < _SECONDS_TO_OPEN:
                return None  # It is being opened, which loads packages: no reason to leave it alone.
            self._pause(f"it did not answer within {seconds:g} s")
            return None
        except _Unusable as problem:
            self._pause(str(problem))
            return None
        self._note_well()
        return answer

    def close(self) -> None:
        """Wait for the calls under way, and close the store."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _call(self, call: Callable[[Store], T]) -> T:
        try:
            store = self._open_once()
            if self._renewable is not None and self._renewable.was_replaced:
                self._renewed(store, None)
                store = self._open_once()
            try:
                return call(store)
            except store.problems as problem:
                if not self._renewed(store, problem):
                    raise
            return call(self._open_once())
        except OperatorError as problem:
            raise _Unusable(problem.message) from problem
        except Exception as problem:
            opened = self._store
            if opened is not None and isinstance(problem, opened.problems):
                raise _Unusable(reason(problem)) from problem
            raise

    def _renewed(self, store: Store, problem: Exception | None) -> bool:
        """Let go of a store whose file is damaged or was replaced, unless another call did, and return whether it is to be opened."""
        with self._lock:
            if self._renewable is None or self._store is not store:
                return self._renewable is not None
            if self._renewable.was_replaced:
                _LEFT_OPEN.append(store)
                self._store = None
                return True
            if problem is None or not is_damaged(problem):
                return False
            # Before the file gets another name: at its end SQLite removes what it keeps beside the file by the name that it had.
            store.close()
            self._store = None
            return self._renewable.renews(problem)

    def _open_once(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = self._opening()
            return self._store

    def _note_done(self) -> None:
        self._waiting -= 1

    def _pause(self, why: str) -> None:
        if not self._rest_seconds:
            self._log.warning("the store of %s is not used for a while: %s", self._name, why)
        self._rest_seconds = min(max(2 * self._rest_seconds, _FIRST_REST_SECONDS), _LONGEST_REST_SECONDS)
        self._rests_until = self._watch() + self._rest_seconds

    def _note_well(self) -> None:
        if self._rest_seconds:
            self._rest_seconds = 0.0
            self._log.warning("the store of %s is used again", self._name)


class _Unusable(Exception):
    """The store cannot be used; the message says why."""


def _tell(loop: asyncio.AbstractEventLoop, note: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(note)
