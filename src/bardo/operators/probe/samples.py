"""The counts of a probe: one trial for each request, and the samples of every cell, ready to be compared; and whether two of them differ.

Samples are compared by an exact rank test, and by how far their medians are apart. Counts of reasoning tokens are skewed, bounded and
few, so nothing is assumed of their distribution. The test is Mann-Whitney's, as a permutation test of the rank sum: values that tie
share the middle of their ranks, and the chance is counted over all ways to divide the same values, exactly. Nothing is drawn at random,
so the same samples give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from statistics import median
from typing import Literal

import msgspec

from bardo.operators.probe.cells import BASELINE, EASY, Cell, Setting

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
    """Return the chance, two-sided, that samples of one distribution have rank sums at least so far from the expected one.

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


Outcome = Literal["answered", "refused", "failed"]
Measure = Literal["reported", "estimated", "output"]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its reply.

    `answered`: a whole reply came. `refused`: the provider does not take the request as it is (a status of 4xx that another try does not
    mend). `failed`: anything else; it says nothing, and is sent again. `reasoning_tokens` is None if the provider reports none and
    none can be estimated from the visible thinking.
    """

    cell: str
    round: int
    outcome: Outcome
    reasoning_tokens: int | None = None
    reported: bool = False
    text_seen: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    finish: str = ""
    status: int = 200
    message: str = ""
    seconds: float = 0.0


def measure_of(trials: Sequence[Trial]) -> Measure:
    """Return the best count that every answer has: reported reasoning tokens, else their estimate
    from the text shown where they are not reported, else all output.

    Where thinking is shown in some replies, one without any has none. Where it is never shown nor counted, only the output is left.
    """
    answered = [trial for trial in trials if trial.outcome == "answered"]
    if answered and all(trial.reported for trial in answered):
        return "reported"
    if any(trial.text_seen or trial.reasoning_tokens for trial in answered):
        return "estimated"
    return "output"


def value_of(trial: Trial, measure: Measure) -> float | None:
    """Return the trial's count, or None if it has none."""
    if trial.outcome != "answered":
        return None
    return trial.output_tokens if measure == "output" else trial.reasoning_tokens or 0


LEAST_ANSWERS = 3


class Samples:
    """The counts of every cell, and what the provider refused. Never changed once made."""

    def __init__(self, cells: Sequence[Cell], trials: Sequence[Trial]) -> None:
        self.measure = measure_of(trials)
        self.refused: dict[str, Trial] = {}
        self._values: dict[str, list[float]] = {cell.id: [] for cell in cells}
        for trial in trials:
            value = value_of(trial, self.measure)
            if value is not None and trial.cell in self._values:
                self._values[trial.cell].append(value)
            elif trial.outcome == "refused":
                self.refused.setdefault(trial.cell, trial)
        counts = self.measure != "output"
        self.thinks_at_all = counts and any(value > 0 for values in self._values.values() for value in values)

    @property
    def thinks_unasked(self) -> bool | None:
        """Whether it thinks when nothing is sent, or None if that is not known, or differs from time to time."""
        values = self._values.get(BASELINE, [])
        if len(values) < LEAST_ANSWERS or not self.thinks_at_all:
            return None
        return True if all(values) else False if not any(values) else None

    def answered(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that have answers enough."""
        return [cell for cell in cells if len(self._values[cell.id]) >= LEAST_ANSWERS]

    def medians(self, cells: Sequence[Cell]) -> dict[str, float]:
        """Return the median of each cell that has answers enough, by its value."""
        return {cell.value: float(median(self._values[cell.id])) for cell in self.answered(cells)}

    def stops(self, off: Cell) -> bool:
        """Whether no answer to this cell shows thinking, while others do: all of another cell, or so many that it is no chance."""
        values = self._values[off.id]
        if not self.thinks_at_all or len(values) < LEAST_ANSWERS or any(values):
            return False
        others = [counts for name, counts in self._values.items() if name != off.id and len(counts) >= LEAST_ANSWERS]
        return any(map(all, others)) or rank_test(values, [count for counts in others for count in counts]) <= ALPHA

    def against(self, first: str, second: str) -> Comparison | None:
        """Compare two cells, where both have answers enough."""
        return _compared(first, second, self._values.get(first, []), self._values.get(second, []))

    def pooled(self, cells: Sequence[Cell]) -> Comparison | None:
        """Compare nothing sent with all values of a setting together."""
        values = [value for cell in cells for value in self._values[cell.id]]
        return _compared(BASELINE, "any value", self._values.get(BASELINE, []), values)

    def reached(self, tokens: float, cells: Sequence[Cell]) -> bool:
        """Whether any answer, with nothing sent or to one of these cells, thought so much."""
        names = (BASELINE, *(cell.id for cell in cells))
        return any(value >= tokens for name in names for value in self._values.get(name, []))

    def control(self, settings: Sequence[Setting]) -> Comparison | None:
        """Return the first pair of cells that differs: it shows that a difference can be seen here at all."""
        return next((pair for pair in self._pairs(settings) if pair is not None and pair.moved), None)

    def _pairs(self, settings: Sequence[Setting]) -> Iterator[Comparison | None]:
        yield self.against(EASY, BASELINE)
        for setting in settings:
            answered = self.answered(setting.cells)
            if answered:
                yield self.against(answered[0].id, answered[-1].id)
                yield self.pooled(answered)


def _compared(first: str, second: str, values: Sequence[float], others: Sequence[float]) -> Comparison | None:
    enough = min(len(values), len(others)) >= LEAST_ANSWERS
    return compare(first, second, values, others) if enough else None
