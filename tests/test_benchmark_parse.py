"""What the benchmark of parsers gives to read is read right here. Nothing is timed."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from benchmarks.figures import Figure, Row, Table
from benchmarks.parse import Bardo, Here, cases, measure_of, targets
from benchmarks.parse_cases import FORMATS, Case, is_right, percent_of_cuts
from benchmarks.parse_peer import answer

BARDO = Bardo()
SHORT = [
    *(Case(name, kind, size, 60) for name in FORMATS for kind in ("stream", "hostile") for size in (1, 4, 32)),
    *(Case(name, "whole") for name in FORMATS),
]


@pytest.mark.parametrize("case", SHORT, ids=measure_of)
def test_the_true_split_comes_out(case: Case) -> None:
    assert is_right(BARDO, case)


@pytest.mark.parametrize("name", FORMATS)
def test_every_cut_in_two_is_read_right(name: str) -> None:
    assert percent_of_cuts(BARDO, Case(name, "cuts")) == 100


def test_a_wrong_reader_is_found_out() -> None:
    class Deaf(Bardo):
        def join(self, results: object) -> tuple[str, str]:
            return "", ""

    assert not is_right(Deaf(), Case("qwen3", "stream", 4, 20))
    assert percent_of_cuts(Deaf(), Case("qwen3", "cuts")) == 0


def test_a_peer_answers_what_it_is_asked() -> None:
    asked = Case("gpt_oss", "stream", 4, 20)
    case = asdict(asked)
    assert json.loads(answer(BARDO, json.dumps({"what": "right", "case": case}))) is True
    assert json.loads(answer(BARDO, json.dumps({"what": "seconds", "case": case}))) >= 0
    assert Here(BARDO).ask("right", asked)


def test_a_quick_run_has_every_format_and_no_long_stream() -> None:
    quick = cases(quick=True)
    assert {case.format for case in quick} == set(FORMATS)
    assert max(case.chunks for case in quick) < max(case.chunks for case in cases(quick=False))


def test_the_targets_are_read_from_the_table() -> None:
    def row(length: int, value: float) -> Row:
        figure = Figure(median=value, low=value, high=value, rounds=1)
        measure = measure_of(Case("qwen3", "stream", 4, length))
        return Row(measure=measure, unit="µs a chunk", figures={"bardo": figure})

    table = Table(subject="parse", title="", columns=("bardo",), rows=(row(2_000, 0.2), row(200_000, 0.3)))
    dearest, whole, growth = targets(table)
    assert (dearest.found, whole.found) == (0.3, None)
    assert growth.found == pytest.approx(1.5)
