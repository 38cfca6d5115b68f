"""Whether two samples differ: an exact rank test, and how far their medians are apart.

Counts of reasoning tokens are skewed, bounded and few, so nothing is assumed of their distribution. The test is Mann-Whitney's, as a
permutation test of the rank sum: values that tie share the middle of their ranks, and the chance is counted over all ways to divide the
same values, exactly. Nothing is drawn at random, so the same samples give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from statistics import median

import msgspec

ALPHA = 0.02
"""A difference is believed up to this chance. Five against five that do not overlap have 0.008."""
MATERIAL = 1.25
"""And where one median is at least so many times the other: a setting that moves less is of no use."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two samples against each other. `p` is two-sided; `ratio` is the second median over the first, or None if that is 0."""

    one: str
    other: str
    n_one: int
    n_other: int
    median_one: float
    median_other: float
    p: float
    ratio: float | None

    @property
    def moved(self) -> bool:
        """Whether they differ: not by chance, and by enough to matter."""
        low, high = sorted((self.median_one, self.median_other))
        return self.p <= ALPHA and high > 0 and high >= MATERIAL * low

    @property
    def rises(self) -> bool:
        """Whether the second is the larger."""
        return self.median_other > self.median_one

    @property
    def powered(self) -> bool:
        """Whether so few values could show a difference at all."""
        return least_chance(self.n_one, self.n_other) <= ALPHA


def compare(one: str, other: str, values: Sequence[float], others: Sequence[float]) -> Comparison:
    """Return the comparison of two samples, neither of them empty."""
    middle, other_middle = float(median(values)), float(median(others))
    return Comparison(
        one=one,
        other=other,
        n_one=len(values),
        n_other=len(others),
        median_one=middle,
        median_other=other_middle,
        p=rank_test(values, others),
        ratio=round(other_middle / middle, 4) if middle else None,
    )


def rank_test(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the chance, two-sided, that samples of one distribution have rank sums at least so far from what is expected.

    Exact, by counting: about `n * m` sums of ranks for `n` values in the smaller sample and `m` in both. 1.0 where either is empty.
    """
    small, large = sorted((values, others), key=len)
    if not small:
        return 1.0
    ranks = _doubled_ranks([*small, *large])
    size, total = len(small), len(ranks)
    # Twice the expected rank sum of the smaller sample, a whole number as the doubled ranks are.
    expected = size * (total + 1)
    distance = abs(sum(ranks[:size]) - expected)
    extreme = sum(count for ranked, count in _ways(ranks, size).items() if abs(ranked - expected) >= distance)
    return extreme / comb(total, size)


def least_chance(size: int, other: int) -> float:
    """Return the smallest chance that samples of these sizes can have: nothing overlaps."""
    return min(1.0, 2 / comb(size + other, size))


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return twice each value's rank, ties at their middle: whole numbers always."""
    ordered = sorted(values)
    last = {value: place for place, value in enumerate(ordered, 1)}
    first = {value: place for place, value in reversed(list(enumerate(ordered, 1)))}
    return [first[value] + last[value] for value in values]


def _ways(ranks: Sequence[int], size: int) -> dict[int, int]:
    """Return for each rank sum in how many ways `size` of the ranks have it."""
    chosen: list[dict[int, int]] = [{0: 1}, *({} for _ in range(size))]
    for rank in ranks:
        for taken in range(size, 0, -1):
            into = chosen[taken]
            for ranked, count in chosen[taken - 1].items():
                into[ranked + rank] = into.get(ranked + rank, 0) + count
    return chosen[size]
