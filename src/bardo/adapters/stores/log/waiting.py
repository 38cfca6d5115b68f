"""The rows between the callers and the thread that stores them: bounded, in order, never lost uncounted."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

# How often an idle thread looks whether the program is over.
LOOK_SECONDS = 0.5

Row = TypeVar("Row")


class WaitingRows(Generic[Row]):
    """A queue whose rows stay in it until they are settled: stored, or counted as dropped.

    Any thread may add; one thread at a time takes batches and settles them.
    """

    def __init__(self, capacity: int, *, is_over: Callable[[], bool] = lambda: False, what: str = "log") -> None:
        self._what = what
        self._capacity = capacity
        self._is_over = is_over
        self._rows: deque[Row] = deque()
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

    def add(self, row: Row) -> bool:
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

    def next_batch(self, size: int, *, within: float) -> list[Row]:
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
            self._unnoted += Counter()  # Removes what is at 0.

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
