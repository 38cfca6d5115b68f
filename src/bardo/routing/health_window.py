"""Counts calls and failures of the last five minutes, and says how sure it is that more than a share of them fails.

Time is an argument, in seconds of a clock that may jump: a window that sees time go back keeps what it counted, unless by more than itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

Fault = Literal["connection", "timeout", "overloaded", "server", "malformed", "broken"]
"""What a provider does wrong: no connection, no answer in time, 503 or 529, another 5xx, a reply that is none of its dialect, a cut one."""

BUCKETS = 10
CERTAINTY = 1.959963984540054
"""Standard deviations on each side of the middle that hold 95 % of a normal distribution."""


def wilson_lower_bound(failed: int, calls: int, z: float = CERTAINTY) -> float:
    """Return the lower end of Wilson's interval for the share of `failed` in `calls`: 0 where there are none.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if calls <= 0 or failed <= 0:
        return 0.0
    share, square = failed / calls, z * z
    middle = share + square / (2 * calls)
    half = z * math.sqrt(share * (1 - share) / calls + square / (4 * calls * calls))
    return max(0.0, (middle - half) / (1 + square / calls))


class HealthWindow:
    """The calls and failures of one target within the last `seconds`, in ten buckets. `calls` and `failed` are as of the last look."""

    __slots__ = ("_bucket_seconds", "_calls", "_epoch", "_faults", "calls", "failed")

    def __init__(self, seconds: float) -> None:
        self._bucket_seconds = seconds / BUCKETS
        self._epoch = -BUCKETS
        self._calls = [0] * BUCKETS
        self._faults: list[dict[Fault, int]] = [{} for _ in range(BUCKETS)]
        self.calls = 0
        self.failed = 0

    def note_success(self, now: float) -> None:
        """Count a call that went well."""
        if int(now / self._bucket_seconds) != self._epoch:
            self.look(now)
        self._calls[self._epoch % BUCKETS] += 1
        self.calls += 1

    def note_fault(self, fault: Fault, now: float) -> None:
        """Count a call that failed."""
        self.note_success(now)
        bucket = self._faults[self._epoch % BUCKETS]
        bucket[fault] = bucket.get(fault, 0) + 1
        self.failed += 1

    def note_counts(self, answered: int, faults: Mapping[Fault, int], now: float) -> None:
        """Count several calls at once: those that went well, and how often each fault occurred."""
        self.look(now)
        place, failed = self._epoch % BUCKETS, sum(faults.values())
        self._calls[place] += answered + failed
        self.calls += answered + failed
        self.failed += failed
        bucket = self._faults[place]
        for fault, count in faults.items():
            bucket[fault] = bucket.get(fault, 0) + count

    def look(self, now: float) -> None:
        """Forget what is older than the window."""
        epoch = int(now / self._bucket_seconds)
        if epoch != self._epoch:
            self._advance(epoch)

    def clear(self) -> None:
        """Forget everything."""
        self._calls = [0] * BUCKETS
        self._faults = [{} for _ in range(BUCKETS)]
        self.calls = self.failed = 0

    @property
    def faults(self) -> dict[Fault, int]:
        """How often each fault occurred, as of the last look."""
        found: dict[Fault, int] = {}
        for bucket in self._faults:
            for fault, count in bucket.items():
                found[fault] = found.get(fault, 0) + count
        return found

    @property
    def last_epoch(self) -> int:
        """The number of the latest bucket: the higher, the later the last look."""
        return self._epoch

    def _advance(self, epoch: int) -> None:
        passed = epoch - self._epoch
        if passed >= BUCKETS or passed <= -BUCKETS:
            self.clear()
        elif passed < 0:
            # The clock went back a little: what comes counts into the latest bucket.
            return
        else:
            for one in range(self._epoch + 1, epoch + 1):
                self._drop(one % BUCKETS)
        self._epoch = epoch

    def _drop(self, place: int) -> None:
        self.calls -= self._calls[place]
        self.failed -= sum(self._faults[place].values())
        self._calls[place] = 0
        self._faults[place] = {}
