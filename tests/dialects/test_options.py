"""The `bardo` object of a request body."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.dialects.options import INCLUDABLE, read_options
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (None, BardoOptions()),
        ({}, BardoOptions()),
        ({"include": ["reasoning_chain", "receipt"]}, BardoOptions(include=("reasoning_chain", "receipt"))),
        ({"include": []}, BardoOptions()),
        ({"reasoning": "omit"}, BardoOptions(omit_reasoning=True)),
        ({"reasoning": "include"}, BardoOptions()),
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
    ],
)
def test_an_error_names_the_place(asked: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": asked})
    assert refusal.value.param == param
    assert param in refusal.value.message


def test_an_unknown_part_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_options({"bardo": {"include": ["x"]}})
    assert all(name in refusal.value.hint for name in INCLUDABLE)
