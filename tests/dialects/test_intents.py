"""What clients write of their needs: in the body, in a header, and what becomes of anything else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.options import LONGEST_HEADER, read_intent, read_intent_header, read_options, read_profile
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile
from bardo.values.request import Intent


def test_the_bardo_object_holds_an_intent_and_a_profile() -> None:
    options = read_options(
        {
            "bardo": {
                "intent": {"require": ["vision"], "cost_sensitivity": 0.5},
                "profile": {"temperature": 0.1},
                "private": True,
            }
        }
    )
    assert options.intent == Intent(require=("vision",))
    assert options.intent_fields == ("require", "cost_sensitivity")
    assert (options.profile, options.private) == (InferenceProfile(temperature=0.1), True)


@pytest.mark.parametrize(
    "written",
    [
        "quality=high; require=vision, citations;max_latency_ms=500; cost_sensitivity = 0.25;diem_available=true",
        '{"quality": "high", "require": ["vision", "citations"], "max_latency_ms": 500, "cost_sensitivity": 0.25, "diem_available": true}',
    ],
)
def test_a_header_holds_an_intent_in_either_form(written: str) -> None:
    read, fields = read_intent(read_intent_header(written, "X-Bardo-Intent"), "X-Bardo-Intent")
    assert read == Intent(
        quality="high",
        require=("vision", "citations"),
        max_latency_ms=500,
        cost_sensitivity=0.25,
        diem_available=True,
    )
    assert set(fields) == {"quality", "require", "max_latency_ms", "cost_sensitivity", "diem_available"}


@pytest.mark.parametrize(
    ("asked", "param", "fix"),
    [
        (["vision"], "bardo.intent", "its keys are"),
        ({"requires": []}, "bardo.intent.requires", "bardo.intent.require?"),
        ({"require": "vision"}, "bardo.intent.require", "a list of strings"),
        ({"require": [1]}, "bardo.intent.require[0]", "a string"),
        ({"require": ["x"] * 40}, "bardo.intent.require", "at most 32"),
        ({"quality": "best"}, "bardo.intent.quality", "minimum, low, medium, high, maximum"),
        ({"cost_sensitivity": -1}, "bardo.intent.cost_sensitivity", "at least 0"),
        ({"cost_sensitivity": float("nan")}, "bardo.intent.cost_sensitivity", "at least 0"),
        ({"cost_sensitivity": 1.01}, "bardo.intent.cost_sensitivity", "at most 1"),
        ({"max_latency_ms": 0}, "bardo.intent.max_latency_ms", "at least 1"),
        ({"max_latency_ms": 1.5}, "bardo.intent.max_latency_ms", "a whole number"),
    ],
)
def test_what_is_wrong_is_named_with_the_fix(asked: Any, param: str, fix: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_intent(asked, "bardo.intent")
    assert caught.value.param == param
    assert fix in caught.value.hint


def test_a_profile_names_what_is_wrong_in_it() -> None:
    with pytest.raises(InvalidRequest, match=r"bardo knows no bardo\.profile\.temprature") as caught:
        read_profile({"temprature": 1}, "bardo.profile")
    assert "bardo.profile.temperature?" in caught.value.hint
    with pytest.raises(InvalidRequest) as caught:
        read_profile({"reasoning_effort": "much"}, "bardo.profile")
    assert "minimal" in caught.value.hint


@pytest.mark.parametrize(
    "written", ["quality", "quality=high;quality=low", "{", "{]", "[" * 1000, "x" * (LONGEST_HEADER + 1), '{"a":' * 600]
)
def test_a_header_that_is_no_intent_is_refused(written: str) -> None:
    with pytest.raises(InvalidRequest, match="X-Bardo-Intent"):
        read_intent(read_intent_header(written, "X-Bardo-Intent"), "X-Bardo-Intent")


@given(st.text(max_size=200))
def test_any_header_is_an_intent_or_refused(written: str) -> None:
    with suppress(InvalidRequest):
        read, _ = read_intent(read_intent_header(written, "X-Bardo-Intent"), "X-Bardo-Intent")
        assert isinstance(read, Intent)
