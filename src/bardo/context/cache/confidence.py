"""How sure it is that a similar question's answer fits: learned from comparisons of answers, held against the operator's budget of errors.

A comparison is made whenever a call that a kept reply could have answered was sent all the same: in shadow mode always, and of calls that
are served a share. All comparisons of one embedding in one band of similarity are the pool; those of one entry count for that entry.
"""

from __future__ import annotations

import math

import msgspec

from bardo.values.intervals import wilson

_Z = 1.96
BANDS = (0.98, 0.95, 0.92, 0.88, 0.84, 0.80, 0.0)
"""Lower ends of the bands of cosine similarity."""
_POOL_WEIGHT = 20
"""How many comparisons of one entry weigh as much as the comparisons of all entries."""


class Evidence(msgspec.Struct, frozen=True):
    """Comparisons of answers: how many were the same, and how many were not. Those that could not be told are not counted."""

    same: int = 0
    different: int = 0

    @property
    def total(self) -> int:
        """How many comparisons there are."""
        return self.same + self.different

    @property
    def false_rate(self) -> tuple[float, float]:
        """The share of answers that were not the same, as Wilson's interval of 95 %."""
        return wilson(self.different, self.total) if self.total else (0.0, 1.0)

    def plus(self, other: Evidence) -> Evidence:
        """Return both together."""
        return Evidence(self.same + other.same, self.different + other.different)


def band_of(cosine: float) -> float:
    """Return the lower end of the band that a similarity is in."""
    return next((band for band in BANDS if cosine >= band), BANDS[-1])


def false_hit_bound(pool: Evidence, entry: Evidence) -> float:
    """Return how often an entry's answer may be wrong for similar questions: the pool's upper bound, moved by the entry's own comparisons.

    An entry without comparisons has the pool's bound. One wrong answer outweighs many right ones, where the budget is small.
    """
    _, upper = pool.false_rate
    return (_POOL_WEIGHT * upper + entry.different) / (_POOL_WEIGHT + entry.total)


def comparisons_needed(max_false_hit: float) -> int:
    """Return how many comparisons without an error it takes until the upper bound is within a budget."""
    square = _Z * _Z
    return math.ceil(square / max_false_hit - square)
