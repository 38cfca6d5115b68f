"""What an account refused of one caller's state is left out of this caller's next turns, for a day, and of nobody else's."""

from __future__ import annotations

from bardo.reasoning.replay.restore import Refusers


def test_a_refused_state_is_known_to_its_caller_and_for_the_reader_that_refused_it() -> None:
    refusers = Refusers(lambda: 0.0)
    refusers.note("a", "one", {"x", "y"})
    assert refusers.among("a", ["x", "z"]) == {"one": {"x"}}
    assert refusers.among("b", ["x", "z"]) == {}
    assert refusers.among("a", ["z"]) == {}


def test_a_refusal_is_forgotten_after_a_day() -> None:
    now = [0.0]
    refusers = Refusers(lambda: now[0])
    refusers.note("a", "one", {"x"})
    now[0] = 86_399.0
    assert refusers.among("a", ["x"])
    now[0] = 86_400.0
    assert not refusers.among("a", ["x"])


def test_a_caller_with_many_refusals_loses_its_own_oldest_and_no_other_callers() -> None:
    refusers = Refusers(lambda: 0.0)
    refusers.note("b", "one", {"x"})
    for number in range(600):
        refusers.note("a", "one", {f"x{number}"})
    assert not refusers.among("a", ["x0"])
    assert refusers.among("a", ["x599"])
    assert refusers.among("b", ["x"])


def test_the_callers_that_were_refused_longest_ago_are_forgotten_first() -> None:
    refusers = Refusers(lambda: 0.0)
    for number in range(2_001):
        refusers.note(f"caller {number}", "one", {"x"})
    assert not refusers.among("caller 0", ["x"])
    assert refusers.among("caller 1", ["x"])
