"""What distributions are taken for: each rule with the samples that lead to it."""

from __future__ import annotations

import random

import pytest

from bardo.operators.probe.cells import BASELINE, EASY
from bardo.operators.probe.samples import Trial
from bardo.operators.probe.verdicts import Decision, SettingVerdict, decide
from operators.probe.support import CELLS, SPREAD, answers, refusals

UNASKED = {EASY: 50.0, BASELINE: 1000.0}
OFF = {"off": 0.0}
RISING = {"low": 500.0, "medium": 1000.0, "high": 2000.0}
ALIKE = {"low": 1000.0, "medium": 1000.0, "high": 1000.0}
BUDGETS = {"1024": 900.0, "4096": 3500.0}
NOT_RISING = {"1024": 1000.0, "4096": 1000.0}


def verdict(decision: Decision, setting: str) -> SettingVerdict:
    (found,) = [one for one in decision.verdicts if one.setting == setting]
    return found


# what was counted: the verdicts on off, effort and budget
CASES: dict[str, tuple[dict[str, float], tuple[str, str, str]]] = {
    "all bite": (UNASKED | OFF | RISING | BUDGETS, ("honours", "honours", "honours")),
    "effort is one level, off in its field works": (
        UNASKED | OFF | ALIKE | BUDGETS,
        ("honours", "flattens", "honours"),
    ),
    "any effort wakes it": (
        {EASY: 0, BASELINE: 0} | OFF | ALIKE | BUDGETS,
        ("honours", "flattens", "honours"),
    ),
    "nothing does anything, and it thinks": (
        UNASKED | {"off": 1000} | ALIKE | NOT_RISING,
        ("ignores", "ignores", "ignores"),
    ),
    "it never thinks": (
        dict.fromkeys([EASY, BASELINE, "off", *ALIKE, *BUDGETS], 0.0),
        ("inconclusive", "inconclusive", "inconclusive"),
    ),
    "nothing moves and no control": (
        UNASKED | {EASY: 1000, "off": 1000} | ALIKE | NOT_RISING,
        ("inconclusive", "inconclusive", "inconclusive"),
    ),
    "off only lessens": (UNASKED | {"off": 200} | RISING | BUDGETS, ("flattens", "honours", "honours")),
    "upside down": (
        UNASKED | OFF | {"low": 2000, "medium": 1000, "high": 500} | BUDGETS,
        ("honours", "inconclusive", "honours"),
    ),
}


def test_a_budget_that_no_answer_reached_was_no_limit() -> None:
    little = {EASY: 5.0, BASELINE: 21.0, "off": 0.0} | {"1024": 21.0, "4096": 21.0}
    found = verdict(decide(CELLS, answers(little)), "budget")
    assert (found.verdict, "1024 tokens" in found.why) == ("inconclusive", True)
    woken = {EASY: 0.0, BASELINE: 0.0, "off": 0.0} | {"1024": 300.0, "4096": 300.0}
    assert verdict(decide(CELLS, answers(woken)), "budget").verdict == "inconclusive"
    reached = {EASY: 50.0, BASELINE: 3000.0, "off": 0.0} | {"1024": 3000.0, "4096": 3000.0}
    assert verdict(decide(CELLS, answers(reached)), "budget").verdict in ("flattens", "ignores")


@pytest.mark.parametrize(("tokens", "wanted"), CASES.values(), ids=CASES)
def test_distributions_decide(tokens: dict[str, float], wanted: tuple[str, str, str]) -> None:
    decision = decide(CELLS, answers(tokens))
    assert tuple(verdict(decision, setting).verdict for setting in ("off", "effort", "budget")) == wanted


@pytest.mark.parametrize(("tokens", "wanted"), CASES.values(), ids=CASES)
def test_the_order_of_trials_makes_no_difference(tokens: dict[str, float], wanted: tuple[str, str, str]) -> None:
    trials = answers(tokens)
    shuffled = trials.copy()
    random.Random(7).shuffle(shuffled)
    assert decide(CELLS, shuffled) == decide(CELLS, trials)


def test_a_verdict_comes_with_its_evidence() -> None:
    found = verdict(decide(CELLS, answers(UNASKED | OFF | RISING)), "effort")
    assert found.medians == {"low": 500.0, "medium": 1000.0, "high": 2000.0}
    assert found.test is not None
    assert found.test.p == pytest.approx(2 / 252)
    assert found.why == "high thinks 4.0 times as much as low"


def test_neighbours_that_are_not_told_apart_are_named() -> None:
    tokens = UNASKED | OFF | {"low": 1000.0, "medium": 1000.0, "high": 4000.0}
    found = verdict(decide(CELLS, answers(tokens)), "effort")
    assert (found.verdict, found.alike) == ("honours", (("low", "medium"),))


def test_a_setting_that_is_refused_throughout_refuses() -> None:
    trials = answers(UNASKED | OFF | BUDGETS) + refusals("low", "medium", "high")
    found = verdict(decide(CELLS, trials), "effort")
    assert found.verdict == "refuses"
    assert found.why == "status 400: not supported"
    assert [one.value for one in found.refused] == ["low", "medium", "high"]


def test_a_level_that_is_refused_is_named_and_the_others_decide() -> None:
    trials = answers(UNASKED | OFF | {"low": 500.0, "medium": 1000.0}) + refusals("high")
    found = verdict(decide(CELLS, trials), "effort")
    assert found.verdict == "honours"
    assert [one.value for one in found.refused] == ["high"]
    assert set(found.medians) == {"low", "medium"}


def test_four_answers_are_too_few_to_say_that_nothing_moves() -> None:
    found = verdict(decide(CELLS, answers(UNASKED | OFF | ALIKE, spread=SPREAD[:4])), "effort")
    assert (found.verdict, found.why) == ("inconclusive", "too few answers to show a difference")


def test_failures_say_nothing() -> None:
    trials = [Trial(cell=cell.id, round=0, outcome="failed", status=503) for cell in CELLS]
    decision = decide(CELLS, trials)
    assert {one.verdict for one in decision.verdicts} == {"inconclusive"}
    assert decision.control is None


def test_where_thinking_is_not_counted_the_whole_output_is() -> None:
    tokens = UNASKED | OFF | RISING | BUDGETS
    decision = decide(CELLS, answers(tokens, counted=False))
    assert decision.measure == "output"
    assert {one.verdict for one in decision.verdicts} == {"honours"}
    assert decision.thinks_unasked is None


def test_where_text_is_shown_a_reply_without_any_has_no_thinking() -> None:
    tokens = UNASKED | RISING | BUDGETS
    shown = [
        Trial(cell=one.cell, round=one.round, outcome="answered", reasoning_tokens=one.reasoning_tokens, text_seen=True)
        for one in answers(tokens)
    ]
    bare = [Trial(cell="off", round=turn, outcome="answered") for turn in range(5)]
    decision = decide(CELLS, shown + bare)
    assert decision.measure == "estimated"
    assert verdict(decision, "off").verdict == "honours"


@pytest.mark.parametrize(
    ("unasked", "said"), [(1000.0, True), (0.0, False)], ids=["thinks unasked", "does not think unasked"]
)
def test_whether_it_thinks_unasked_is_seen(unasked: float, said: bool) -> None:
    assert decide(CELLS, answers({BASELINE: unasked} | OFF | RISING)).thinks_unasked is said


def test_the_positive_control_is_named() -> None:
    control = decide(CELLS, answers(UNASKED | OFF | ALIKE)).control
    assert control is not None
    assert (control.one, control.other) == (EASY, BASELINE)


def test_chance_alone_seldom_makes_a_setting_honoured() -> None:
    """Of two hundred models that ignore their effort, with tokens spread widely, few are taken for honouring it."""
    wrong = 0
    for seed in range(200):
        noise = random.Random(seed)
        trials = [
            Trial(
                cell=cell.id,
                round=turn,
                outcome="answered",
                reported=True,
                reasoning_tokens=round(noise.lognormvariate(7, 0.5)),
            )
            for cell in CELLS
            for turn in range(5)
        ]
        wrong += verdict(decide(CELLS, trials), "effort").verdict == "honours"
    assert wrong <= 4


def counted(cell: str, *tokens: int) -> list[Trial]:
    return [
        Trial(cell=cell, round=turn, outcome="answered", reasoning_tokens=count, reported=True)
        for turn, count in enumerate(tokens)
    ]


@pytest.mark.parametrize(
    ("unasked", "off", "wanted"),
    [
        ((0, 40, 0), (0, 0, 0), "inconclusive"),
        ((40, 40, 0), (0, 0, 0), "inconclusive"),
        ((40, 50, 60), (0, 0, 0), "honours"),
        ((40, 50, 60), (0, 1, 0), "inconclusive"),
        ((0, 40, 50, 60, 70, 80, 90), (0, 0, 0, 0, 0), "honours"),
    ],
    ids=["sometimes", "mostly", "always", "off is not always off", "so often that it is no chance"],
)
def test_three_answers_that_differ_prove_nothing(unasked: tuple[int, ...], off: tuple[int, ...], wanted: str) -> None:
    """A model that thinks now and then shows no thinking in three answers by chance."""
    trials = [*counted(BASELINE, *unasked), *counted("off", *off)]
    assert verdict(decide(CELLS, trials), "off").verdict == wanted
