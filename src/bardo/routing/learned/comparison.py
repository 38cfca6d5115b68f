"""Whether learned routing pays: what it reached beside always asking the best single model, with an interval.

Some requests of a route, a stated share drawn by their ids, go to the best single model whatever the table expects. Both groups then meet
the same kind of requests, and the difference of their mean worth (success less price, as choices weigh it) has a plain interval.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from bardo.routing.learned.choosing import seed_of

Verdict = Literal["pays", "costs", "unproven"]
# 95 % of a normal distribution; both groups must be large enough for it.
_Z = 1.96
LEAST_OF_EACH = 30


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """One group's outcomes: how many, their worth and its square, their success, their cost in US dollars."""

    count: int = 0
    worth: float = 0.0
    squares: float = 0.0
    successes: float = 0.0
    cost: float = 0.0

    def after(self, worth: float, success: float, cost: float) -> Sums:
        """Return the sums with one more outcome."""
        return Sums(
            count=self.count + 1,
            worth=self.worth + worth,
            squares=self.squares + worth * worth,
            successes=self.successes + success,
            cost=self.cost + cost,
        )

    @property
    def mean(self) -> float:
        """The mean worth; 0 for no outcome."""
        return self.worth / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The variance of the mean."""
        if self.count < 2:
            return math.inf
        spread = max(0.0, self.squares - self.worth * self.worth / self.count) / (self.count - 1)
        return spread / self.count


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Routed requests beside those of the best single model. `gain` is in worth, with its 95 % interval; None: too few outcomes."""

    routed: Sums
    single: Sums
    verdict: Verdict
    gain: float | None = None
    low: float | None = None
    high: float | None = None


def compare(routed: Sums, single: Sums) -> Comparison:
    """Return what the two groups say."""
    if min(routed.count, single.count) < LEAST_OF_EACH:
        return Comparison(routed=routed, single=single, verdict="unproven")
    gain = routed.mean - single.mean
    half = _Z * math.sqrt(routed.variance + single.variance)
    verdict: Verdict = "pays" if gain - half > 0 else "costs" if gain + half < 0 else "unproven"
    return Comparison(routed=routed, single=single, verdict=verdict, gain=gain, low=gain - half, high=gain + half)


def in_comparison(request_id: str, share: float) -> bool:
    """Say whether a request belongs to the share that goes to the best single model."""
    return seed_of(f"comparison {request_id}") % 10_000 < share * 10_000
