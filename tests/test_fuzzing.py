"""Each target of the fuzzer holds its laws for its seeds and for a fixed number of broken inputs; a broken law is found and made small."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fuzzing.inputs import Input, corpus_of
from fuzzing.laws import Broken, hold, linear
from fuzzing.run import failure_of, run
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


def refuse_two_letters(one: Input) -> None:
    hold(not (b"x" in one.body and b"y" in one.body), "no x with a y")


def quadratic(one: Input) -> int:
    return sum(1 for _ in one.body for _ in one.body)


def made(check: object = lambda _: None, work: object = lambda _: None) -> Target:
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
    failure = failure_of(made(check=lambda one: {}[one.variant]), Input("v", b""), counted=False)
    assert failure is not None
    assert failure.error.startswith("KeyError")


def test_work_that_grows_with_the_square_is_found() -> None:
    linear(lambda: quadratic(Input("v", b"a" * 10)), 10, per_byte=100)
    with pytest.raises(Broken, match="linear work"):
        linear(lambda: quadratic(Input("v", b"a" * 2000)), 2000, per_byte=100)


def test_the_same_seed_gives_the_same_inputs() -> None:
    seen: list[list[Input]] = [[], []]
    for inputs in seen:
        run(made(check=inputs.append), seed=5, go_on=lambda count: count < 50)
    assert seen[0] == seen[1]
    assert len(set(seen[0])) > 40


def test_the_command_says_how_many_inputs_each_target_took() -> None:
    command = [sys.executable, "-m", "fuzzing", "--target", "framings", "--inputs", "60"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("framings: 60 inputs, ")
    assert done.stdout.splitlines()[-1] == "all: 60 inputs, 0 failures"
