"""How long a target's latest calls took: the time in which half of them, nine of ten and 19 of 20 were answered."""

from __future__ import annotations

from collections import deque

import msgspec

_LATEST = 100
LEAST_CALLS = 10
"""So many of the latest calls are remembered of a target, and so many are needed before anything is said of it."""
_NOTEWORTHY = 0.25
"""A latency that changed by less than this part of itself is taken for the same."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of a target's latest calls to the first token of a stream, or to the end of a whole reply; None where too few were made.

    `first_token_*` are of streams alone. `calls` is how many the figures rest on.
    """

    calls: int = 0
    p50_ms: int | None = None
    p90_ms: int | None = None
    p95_ms: int | None = None
    first_token_p50_ms: int | None = None
    first_token_p95_ms: int | None = None


UNKNOWN_LATENCY = Latency()


class LatencyRing:
    """The latest calls of one target. `p90_ms` is what routing goes by: it stays the same until it changed by a quarter."""

    __slots__ = ("_answered", "_count", "_first_tokens", "_known", "p90_ms")

    def __init__(self) -> None:
        self._answered: deque[float] = deque(maxlen=_LATEST)
        self._first_tokens: deque[float] = deque(maxlen=_LATEST)
        self._count = 0
        self._known: Latency | None = None
        self.p90_ms: int | None = None

    def note(self, seconds: float | None, first_token_seconds: float | None) -> bool:
        """Note a call that was answered: a whole one has no first token. Returns whether `p90_ms` changed."""
        if first_token_seconds is not None:
            self._first_tokens.append(first_token_seconds)
            seconds = first_token_seconds
        if seconds is None:
            return False
        self._answered.append(seconds)
        self._known = None
        self._count += 1
        return self._count % LEAST_CALLS == 0 and self._learn()

    def latency(self) -> Latency:
        """Return the figures, which are computed once between two calls."""
        if self._known is None:
            answered, first = sorted(self._answered), sorted(self._first_tokens)
            self._known = Latency(
                calls=len(answered),
                p50_ms=_quantile_ms(answered, 0.5),
                p90_ms=_quantile_ms(answered, 0.9),
                p95_ms=_quantile_ms(answered, 0.95),
                first_token_p50_ms=_quantile_ms(first, 0.5),
                first_token_p95_ms=_quantile_ms(first, 0.95),
            )
        return self._known

    def _learn(self) -> bool:
        found = _quantile_ms(sorted(self._answered), 0.9)
        before = self.p90_ms
        if found is None or (before is not None and abs(found - before) <= _NOTEWORTHY * before):
            return False
        self.p90_ms = found
        return True


def _quantile_ms(ordered: list[float], share: float) -> int | None:
    """Return the value below which a share of sorted seconds lies, in milliseconds; None of too few."""
    if len(ordered) < LEAST_CALLS:
        return None
    return round(1000 * ordered[int(share * (len(ordered) - 1))])
