"""What is counted of the answers to a probe, and how far their thinking reached."""

from __future__ import annotations

import msgspec
import pytest

from bardo.operators.probe.cells import BASELINE, EASY
from bardo.operators.probe.samples import Measure, Samples, Trial, measure_of
from operators.probe.support import CELLS, answers

OFF, LOW, HIGH = CELLS[2], CELLS[3], CELLS[5]
SILENT = Trial(cell=LOW.id, round=0, outcome="answered", output_tokens=20)
REPORTED = msgspec.structs.replace(SILENT, reported=True, reasoning_tokens=0)
SHOWN = msgspec.structs.replace(SILENT, text_seen=True)
ESTIMATED = msgspec.structs.replace(SILENT, reasoning_tokens=9)
FAILED = msgspec.structs.replace(SHOWN, outcome="failed")

MEASURES: dict[str, tuple[list[Trial], Measure]] = {
    "reported in each answer": ([REPORTED, REPORTED], "reported"),
    "reported in some, and shown": ([REPORTED, SHOWN], "estimated"),
    "shown in one": ([SILENT, SHOWN], "estimated"),
    "counted in one and not shown": ([SILENT, ESTIMATED], "estimated"),
    "never shown nor counted": ([SILENT, SILENT], "output"),
    "reported in some as none": ([REPORTED, SILENT], "output"),
    "shown in one that failed": ([SILENT, FAILED], "output"),
    "no answer": ([FAILED], "output"),
}


@pytest.mark.parametrize(("trials", "measure"), MEASURES.values(), ids=MEASURES)
def test_the_best_count_that_every_answer_has_is_taken(trials: list[Trial], measure: Measure) -> None:
    assert measure_of(trials) == measure


def test_thinking_reaches_as_far_as_the_longest_with_nothing_sent_or_to_these_cells() -> None:
    samples = Samples(CELLS, answers({EASY: 900, BASELINE: 100, LOW.id: 200, HIGH.id: 500}, spread=[1.0]))
    assert samples.reached(100, []), "with nothing sent"
    assert not samples.reached(101, [OFF])
    assert samples.reached(200, [OFF, LOW])
    assert not samples.reached(201, [LOW]), "what other cells reached does not count"
    assert samples.reached(500, [LOW, HIGH])
