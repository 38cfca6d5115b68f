"""The counts of a probe: one trial for each request, and the samples of every cell, ready to be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Literal

import msgspec

from bardo.operators.probe.cells import BASELINE, EASY, Cell, Setting
from bardo.operators.probe.statistics import ALPHA, Comparison, compare, rank_test

Outcome = Literal["answered", "refused", "failed"]
Measure = Literal["reported", "estimated", "output"]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its reply.

    `answered`: a whole reply came. `refused`: the provider does not take the request as it is (a status of 4xx that another try does not
    mend). `failed`: anything else; it says nothing, and is sent again. `reasoning_tokens` is None if the provider reports none and
    none can be estimated from what is shown.
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
        pooled = [count for counts in others for count in counts]
        return any(map(all, others)) or rank_test(values, pooled) <= ALPHA

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
            found = self.answered(setting.cells)
            if found:
                yield self.against(found[0].id, found[-1].id)
                yield self.pooled(found)


def _compared(first: str, second: str, values: Sequence[float], others: Sequence[float]) -> Comparison | None:
    enough = min(len(values), len(others)) >= LEAST_ANSWERS
    return compare(first, second, values, others) if enough else None
