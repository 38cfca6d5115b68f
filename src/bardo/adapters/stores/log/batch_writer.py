"""Store rows in batches from a thread of their own, so that no caller with a row waits for a database.

Between the callers and that thread rows wait in a queue: bounded, in order, never lost uncounted. A batch that cannot be stored now is
tried again; of one that is refused, each row is tried alone. A program that ends normally stores every row. Rows that are dropped all the
same are counted and reported through `logging`.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from bardo.adapters.stores.database.problems import RowsRefused, StoreUnavailable
from bardo.adapters.stores.log.row import LogGap

# How often an idle thread looks whether the program is over.
LOOK_SECONDS = 0.5


Waiting = TypeVar("Waiting")


class WaitingRows(Generic[Waiting]):
    """A queue whose rows stay in it until they are settled: stored, or counted as dropped.

    Any thread may add; one thread at a time takes batches and settles them.
    """

    def __init__(self, capacity: int, *, is_over: Callable[[], bool] = lambda: False, what: str = "log") -> None:
        self._what = what
        self._capacity = capacity
        self._is_over = is_over
        self._rows: deque[Waiting] = deque()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._notify_at = 0
        self._settled = 0
        self._wanted = 0
        self._closed = False
        self._dropped = 0
        self._unnoted: Counter[str] = Counter()

    @property
    def dropped(self) -> int:
        """How many rows will never be stored."""
        return self._dropped

    @property
    def ending(self) -> bool:
        """Whether no more rows are to come."""
        return self._closed or self._is_over()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Waiting) -> bool:
        """Take a row. `False` where it was dropped, because the queue is full or closed."""
        # The lock itself costs less than the condition over it.
        with self._lock:
            waiting = len(self._rows)
            if self._closed or waiting >= self._capacity:
                self._count_dropped(
                    1, f"the {self._what} was closed" if self._closed else f"the {self._what} could not keep up"
                )
                return False
            self._rows.append(row)
            if waiting == 0 or waiting + 1 == self._notify_at:
                self._changed.notify_all()
        return True

    def next_batch(self, size: int, *, within: float) -> list[Waiting]:
        """Wait for `size` rows, or until the first has waited `within` seconds. Empty only when all is done."""
        with self._changed:
            self._notify_at = size
            self._wait(lambda: bool(self._rows) or self.ending)
            self._wait(lambda: len(self._rows) >= size or self._hurried(), within)
            return list(islice(self._rows, size))

    def settle(self, count: int, *, dropped_because: str | None = None) -> None:
        """Forget the `count` oldest rows: they are stored, or dropped for this reason."""
        with self._changed:
            for _ in range(count):
                self._rows.popleft()
            self._settled += count
            if dropped_because is not None:
                self._count_dropped(count, dropped_because)
            self._changed.notify_all()

    def wait_settled(self, seconds: float) -> bool:
        """Wait until every row accepted so far is settled. `False` where the time did not suffice."""
        with self._changed:
            wanted = self._wanted = self._settled + len(self._rows)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= wanted, seconds)

    def rest(self, seconds: float) -> None:
        """Wait, or until the end begins."""
        with self._changed:
            ended_before = self.ending
            self._wait(lambda: self.ending and not ended_before, seconds)

    def close(self) -> None:
        """Accept no more rows, and hurry those that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def unnoted(self) -> dict[str, int]:
        """Return how many rows were dropped since they were last noted, by reason."""
        with self._changed:
            return dict(self._unnoted)

    def note(self, why: str, rows: int) -> None:
        """Take `rows` off what `unnoted` returns."""
        with self._changed:
            self._unnoted[why] -= rows
            self._unnoted += Counter()  # Removes entries at 0.

    def _wait(self, until: Callable[[], bool], seconds: float = math.inf) -> None:
        """Wait for a change that makes `until` true; nothing tells of the program's end, so look now and then."""
        give_up = time.monotonic() + seconds
        while not until() and (left := give_up - time.monotonic()) > 0:
            self._changed.wait(min(left, LOOK_SECONDS))

    def _hurried(self) -> bool:
        return self._wanted > self._settled or self.ending

    def _count_dropped(self, count: int, why: str) -> None:
        self._dropped += count
        self._unnoted[why] += count


FIRST_REST_SECONDS = 0.5
LONGEST_REST_SECONDS = 30.0
SECONDS_BETWEEN_NOTES = 10.0
# How often a failing store is tried again once the program wants to end.
LAST_TRIES = 3
REFUSED = "the database refused them"
UNWRITABLE = "the database could not be written"

logger = logging.getLogger("bardo.log")


class BatchRow(Protocol):
    """A row that belongs to a request."""

    @property
    def request_id(self) -> str: ...


Row = TypeVar("Row", bound=BatchRow)
RowIn = TypeVar("RowIn", bound=BatchRow, contravariant=True)


class Store(Protocol[RowIn]):
    """Where rows end up."""

    name: str

    def append(self, rows: Sequence[RowIn]) -> None:
        """Store all rows or none. Raises StoreUnavailable or RowsRefused."""

    def note_gap(self, gap: LogGap) -> None:
        """Store that rows are missing. Raises StoreUnavailable or RowsRefused."""

    def close(self) -> None:
        """Let go of what the store holds."""


class BatchWriter(Generic[Row]):
    """Rows on their way into a store. Open it in the process that writes; any thread may call `write`."""

    what = "log"
    """The name of the rows, for messages."""

    def __init__(self, store: Store[Row], *, flush_seconds: float = 0.5, batch: int = 500, capacity: int) -> None:
        """Start the thread. Up to `capacity` rows wait; `flush_seconds` is how long the first of a batch waits for others."""
        self._store = store
        self._flush_seconds = flush_seconds
        self._batch = batch
        self._waiting: WaitingRows[Row] = WaitingRows(capacity, is_over=_program_is_over, what=self.what)
        self._failures = 0
        self._last_tries = LAST_TRIES
        self._noted_at = -SECONDS_BETWEEN_NOTES
        self._closed = False
        self._warned_closed = False
        self._thread = _StoringThread(target=self._work, name=f"bardo-{self.what}", daemon=False)
        self._thread.start()
        atexit.register(self.close)
        _open_writers.add(self)

    @property
    def dropped(self) -> int:
        """How many rows were given to `write` and will never be stored."""
        return self._waiting.dropped

    @property
    def waiting(self) -> int:
        """How many rows are not stored yet."""
        return len(self._waiting)

    def write(self, row: Row) -> None:
        """Queue one row. Takes a few microseconds and never waits, so an event loop may call it."""
        if not self._waiting.add(row):
            self._refuse(row)

    def _refuse(self, row: Row) -> None:
        """Take note that there was no room for a row, or that it came too late."""
        self._forget([row])
        if self._closed and not self._warned_closed:
            self._warned_closed = True
            logger.warning(
                "a row came after the inference %s at %s was closed, and is dropped", self.what, self._store.name
            )

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Wait until the rows written so far are stored. `False` where that took too long. Blocks."""
        return self._waiting.wait_settled(timeout_seconds)

    def close(self) -> None:
        """Store what waits, and close. Blocks; a failing disk is tried a few times more, then rows are dropped or kept elsewhere."""
        if self._closed:
            return
        self._closed = True
        self._waiting.close()
        self._thread.join()
        # The thread may have ended before the last rows came: at exit, threads end first and exit handlers run last.
        self._work()
        self._let_go()
        self._store.close()
        atexit.unregister(self.close)
        _open_writers.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> None:
        """Do what comes before the first batch, in the thread."""

    def _pause(self) -> None:
        """Do the occasional work that is due, after a batch was stored."""

    def _forget(self, rows: Sequence[Row]) -> None:
        """Take note that rows are stored or dropped."""

    def _let_go(self) -> None:
        """Close what a kind of writer has besides its store."""

    def _kept_elsewhere(self) -> str:
        """Return where rows are kept that cannot be stored; empty where they are lost."""
        return ""

    def _work(self) -> None:
        """Store batches until the end; the loop of the thread."""
        self._begin()
        while rows := self._waiting.next_batch(self._batch, within=self._flush_seconds):
            try:
                self._store_rows(rows)
            except StoreUnavailable as problem:
                self._try_later(problem)
            else:
                self._stored()
        self._note_gaps()

    def _store_rows(self, rows: Sequence[Row]) -> None:
        try:
            self._store.append(rows)
        except RowsRefused:
            self._store_singly(rows)
        else:
            self._settle(rows)

    def _settle(self, rows: Sequence[Row], *, dropped_because: str | None = None) -> None:
        self._forget(rows)
        self._waiting.settle(len(rows), dropped_because=dropped_because)

    def _store_singly(self, rows: Sequence[Row]) -> None:
        """Store what can be stored of a batch that was refused as a whole."""
        for row in rows:
            try:
                self._store.append([row])
            except RowsRefused as problem:
                logger.error("the row of request %s cannot be logged: %s", row.request_id, problem.message)
                self._settle([row], dropped_because=REFUSED)
            else:
                self._settle([row])

    def _try_later(self, problem: StoreUnavailable) -> None:
        self._failures += 1
        if self._failures == 1:
            text = "the inference %s at %s cannot be written (%s): rows are kept and tried again"
            logger.error(text, self.what, self._store.name, problem.message)
        if self._waiting.ending:
            self._last_tries -= 1
        if self._last_tries < 0:
            self._give_up(problem)
        else:
            self._waiting.rest(self._rest_seconds())

    def _rest_seconds(self) -> float:
        if self._waiting.ending:
            return FIRST_REST_SECONDS
        return min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2.0 ** min(self._failures - 1, 10))

    def _give_up(self, problem: StoreUnavailable) -> None:
        count, place = len(self._waiting), self._kept_elsewhere()
        if place:
            text = (
                "%d rows stay in %s until the next start: the inference %s at %s could not be written to the end (%s)"
            )
            logger.error(text, count, place, self.what, self._store.name, problem.message)
            self._waiting.settle(count)
            return
        text = "%d rows are lost: the inference %s at %s could not be written to the end (%s)"
        logger.error(text, count, self.what, self._store.name, problem.message)
        self._waiting.settle(count, dropped_because=UNWRITABLE)

    def _stored(self) -> None:
        if self._failures:
            logger.warning("the inference %s at %s is written again", self.what, self._store.name)
        self._failures = 0
        self._pause()
        if time.monotonic() - self._noted_at >= SECONDS_BETWEEN_NOTES:
            self._note_gaps()

    def _note_gaps(self) -> None:
        """Tell the operator, and readers of the store, about rows that were dropped."""
        for why, rows in self._waiting.unnoted().items():
            self._noted_at = time.monotonic()
            try:
                self._store.note_gap(LogGap(noticed_at=time.time(), rows=rows, why=why))
            except (StoreUnavailable, RowsRefused) as problem:
                text = "%d rows are missing in the inference %s at %s (%s), and it cannot be noted there: %s"
                logger.error(text, rows, self.what, self._store.name, why, problem.message)
                return
            text = "%d rows are missing in the inference %s at %s: %s"
            logger.warning(text, rows, self.what, self._store.name, why)
            self._waiting.note(why, rows)

    def _abandon(self) -> None:
        """Stop being a writer: this is the copy in a forked child, without a thread, and its rows are the parent's."""
        self._waiting = WaitingRows(0, what=self.what)
        self._waiting.close()
        self._closed = True


class _StoringThread(threading.Thread):
    """The thread of a writer, to tell it from the program's own."""


def _program_is_over() -> bool:
    """Whether the main thread has ended and only writers are left.

    Python waits for threads that are no daemons before it runs exit handlers, so a writer's thread must see the end itself.
    """
    if threading.main_thread().is_alive():
        return False
    alive = (thread for thread in threading.enumerate() if thread.is_alive())
    return all(thread.daemon or isinstance(thread, _StoringThread) for thread in alive)


_open_writers: weakref.WeakSet[BatchWriter[Any]] = weakref.WeakSet()


def _abandon_writers() -> None:
    for writer in list(_open_writers):
        writer._abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_writers)
