"""The `bardo` object of a request body."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.dialects.options import INCLUDABLE, ON_IMPOSSIBLE, policy_of, read_options
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, BardoOptions, ReasoningPolicy


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (None, BardoOptions()),
        ({}, BardoOptions()),
        ({"include": ["reasoning_chain", "receipt"]}, BardoOptions(include=("reasoning_chain", "receipt"))),
        ({"include": []}, BardoOptions()),
        ({"reasoning": "omit"}, BardoOptions(omit_reasoning=True)),
        ({"reasoning": "include"}, BardoOptions()),
        ({"reasoning": None}, BardoOptions()),
        ({"reasoning": "off"}, BardoOptions(reasoning=ReasoningPolicy(mode="off"))),
        ({"reasoning": "none"}, BardoOptions(reasoning=ReasoningPolicy(mode="off"))),
        ({"reasoning": "auto"}, BardoOptions(reasoning=ReasoningPolicy(mode="auto"))),
        ({"reasoning": "xhigh"}, BardoOptions(reasoning=ReasoningPolicy(mode="effort", effort="xhigh"))),
        ({"reasoning": 2048}, BardoOptions(reasoning=ReasoningPolicy(mode="budget", budget=2048))),
        ({"reasoning": 0}, BardoOptions(reasoning=ReasoningPolicy(mode="budget", budget=0))),
        ({"on_impossible": None}, BardoOptions(on_impossible="floor")),
        ({"on_impossible": "fail"}, BardoOptions(on_impossible="fail")),
        (
            {"on_impossible": "reroute", "reasoning": "off"},
            BardoOptions(on_impossible="reroute", reasoning=ReasoningPolicy(mode="off")),
        ),
    ],
)
def test_what_may_be_asked(asked: Any, options: BardoOptions) -> None:
    assert read_options({"bardo": asked, "model": "m"}) == options


def test_nothing_asked_is_nothing_special() -> None:
    assert read_options({"model": "m"}) == BardoOptions()


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ("omit", "bardo"),
        ({"include": "receipt"}, "bardo.include"),
        ({"include": ["receipts"]}, "bardo.include[0]"),
        ({"include": ["receipt", 1]}, "bardo.include[1]"),
        ({"reasoning": "hide"}, "bardo.reasoning"),
        ({"reasoning": True}, "bardo.reasoning"),
        ({"reasoning": -1}, "bardo.reasoning"),
        ({"reasoning": 1.5}, "bardo.reasoning"),
        ({"reasoning": ["low"]}, "bardo.reasoning"),
        ({"reasoning": {"effort": "low"}}, "bardo.reasoning"),
        ({"on_impossible": "despair"}, "bardo.on_impossible"),
        ({"on_impossible": True}, "bardo.on_impossible"),
    ],
)
def test_an_error_names_the_place(asked: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": asked})
    assert refusal.value.param == param
    assert param in refusal.value.message


def test_an_unknown_policy_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"reasoning": "deep"}})
    assert all(word in refusal.value.hint for word in ("off", "auto", *EFFORTS, "include", "omit", "tokens"))
    with pytest.raises(InvalidRequest) as elsewhere:
        policy_of("deep", "reasoning")
    assert "omit" not in elsewhere.value.hint


def test_an_unknown_choice_where_off_is_impossible_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"on_impossible": "despair"}})
    assert all(name in refusal.value.hint for name in ON_IMPOSSIBLE)


def test_an_unknown_part_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"include": ["x"]}})
    assert all(name in refusal.value.hint for name in INCLUDABLE)
