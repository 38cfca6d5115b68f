"""Each target of the fuzzer holds its laws for its seeds and for a fixed number of broken inputs; a broken law is found and made small."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from itertools import islice

import pytest
from fuzzing.inputs import MOST_BYTES, SHORT_BYTES, Input, corpus_of, shortened
from fuzzing.laws import Broken, Laws, hold, linear
from fuzzing.processes import open_pool, run_batch, run_in_processes
from fuzzing.run import ALL_LAWS_EVERY, COUNTED_EVERY, cases_of, failure_of, run
from fuzzing.target import Target
from fuzzing.targets import ALL, TARGETS

INPUTS = 250


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds_its_laws_for_broken_inputs(name: str) -> None:
    outcome = run(TARGETS[name], seed=1, go_on=lambda count: count < INPUTS)
    assert outcome.inputs == INPUTS
    assert [(one.error, one.input) for one in outcome.failures] == []


@pytest.mark.parametrize("target", ALL, ids=lambda one: one.name)
def test_an_input_that_once_broke_a_law_holds_it_now(target: Target) -> None:
    failures = [failure_of(target, one, counted=True) for _, one in corpus_of(target.name)]
    assert [one for one in failures if one is not None] == []


def refuse_two_letters(one: Input, _: Laws) -> None:
    hold(not (b"x" in one.body and b"y" in one.body), "no x with a y")


def quadratic(one: Input) -> int:
    return sum(1 for _ in one.body for _ in one.body)


def made(check: object = lambda one, laws: None, work: object = lambda _: None) -> Target:
    """Return a target with a seed of 40 bytes."""
    return Target(
        name="made",
        says="",
        seeds=lambda: [Input("v", b"abcdefghij" * 4)],
        check=check,  # type: ignore[arg-type]
        work=work,  # type: ignore[arg-type]
        words=lambda _: (b"x", b"y", b"xy"),
    )


def test_a_broken_law_is_found_and_its_input_made_as_small_as_it_gets() -> None:
    outcome = run(made(check=refuse_two_letters), seed=1, go_on=lambda count: count < 300)
    (failure,) = outcome.failures
    assert sorted(failure.input.body) == [ord("x"), ord("y")]
    assert failure.error == "Broken: no x with a y"


def test_an_exception_is_a_failure_with_its_place() -> None:
    failure = failure_of(made(check=lambda one, laws: {}[one.variant]), Input("v", b""), counted=False)
    assert failure is not None
    assert failure.error.startswith("KeyError")


def test_work_that_grows_with_the_square_is_found() -> None:
    linear(lambda: quadratic(Input("v", b"a" * 10)), 10, per_byte=100)
    with pytest.raises(Broken, match="linear work"):
        linear(lambda: quadratic(Input("v", b"a" * 500)), 500, per_byte=100)


def test_the_same_seed_gives_the_same_inputs() -> None:
    seen: list[list[Input]] = [[], []]
    for inputs in seen:
        run(made(check=lambda one, _, seen=inputs: seen.append(one)), seed=5, go_on=lambda count: count < 50)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 40


def test_inputs_of_a_number_are_the_same_wherever_a_run_begins() -> None:
    target = TARGETS["framings"]
    from_the_first = list(islice(cases_of(target, 5), 400))
    assert list(islice(cases_of(target, 5, 30), 370)) == from_the_first[30:]
    assert list(islice(cases_of(target, 5, 390), 10)) == from_the_first[390:]


def test_most_inputs_are_short_and_some_are_long_and_checked_for_all_laws() -> None:
    cases = list(islice(cases_of(TARGETS["streamed"], 5), 1500))[500:]
    assert all(len(case.input.body) <= (MOST_BYTES if case.all_laws else SHORT_BYTES) for case in cases)
    assert sum(case.all_laws for case in cases) == 1000 // ALL_LAWS_EVERY
    assert sum(case.counted for case in cases) == 1000 // COUNTED_EVERY
    assert any(len(case.input.body) > SHORT_BYTES for case in cases)


@pytest.mark.parametrize("body", [b"", b"a", b"some bytes", b"b" * 3000])
def test_the_cut_that_an_input_chooses_is_one_of_all(body: bytes) -> None:
    (chosen,) = Laws.of(body, all=False).cuts_of(body) or [[body]]
    every = list(Laws.of(body, all=True).cuts_of(body))
    assert chosen in every
    assert all(b"".join(pieces) == body for pieces in every)


def test_a_shortened_reply_keeps_its_beginning_and_its_end() -> None:
    events = b"\n\n".join(b"data: %d" % number for number in range(2000))
    assert shortened(events).startswith(b"data: 0\n\ndata: 1\n\n")
    assert shortened(events).endswith(b"\n\ndata: 1999")
    body = json.dumps({"text": "a" * 5000, "list": list(range(500)), "end": {"finish": "stop"}}).encode()
    assert json.loads(shortened(body)) == {"text": "a" * 24, "list": [0, 499], "end": {"finish": "stop"}}


def test_an_input_without_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(one: Input, _: Laws) -> None:
        while b"x" in one.body:
            pass

    monkeypatch.setitem(TARGETS, "made", made(check=read))
    monkeypatch.setattr("fuzzing.run._MINIMISING_TRIES", 0)
    outcome = run_batch("made", 1, 0, 20, most_seconds=0.05)
    assert outcome.inputs == 20
    assert {failure.error for failure in outcome.failures} == {"Broken: an input is read in a bounded time"}


def test_processes_check_as_many_inputs_as_were_asked_for() -> None:
    with open_pool(2) as pool:
        outcome = run_in_processes("framings", pool, seed=3, processes=2, most=230, seconds=None)
        assert (outcome.inputs, outcome.failures) == (230, ())
        assert run_in_processes("framings", pool, seed=3, processes=2, most=None, seconds=0).inputs == 0
    assert multiprocessing.active_children() == []


def test_the_command_says_how_many_inputs_each_target_took() -> None:
    command = [sys.executable, "-m", "fuzzing", "--target", "framings", "--inputs", "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("framings: 60 inputs, ")
    assert done.stdout.splitlines()[-1] == "all: 60 inputs, 0 failures"
