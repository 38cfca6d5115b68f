"""Which answers are good enough, and which lead to the next model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.routing.cascade import Verdict, builtin_rules, judge
from bardo.values.blocks import RefusalBlock, TextBlock, ToolCallBlock
from bardo.values.events import Finish
from bardo.values.response import Response


def said(text: str) -> Response:
    return Response(blocks=(TextBlock(text),), finish=Finish("stop"))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("It is 1161.", None),
        ("I'm not sure, but it may be 1161.", "unsure"),
        ("It may be 1161, although I DO NOT KNOW.", "unsure"),
        ("I cannot help with that.", "refuses"),
        ("   ", "empty"),
        ('{"action": "observe", "confidence": 0.9, "escalate": false}', None),
        ('{"action": "observe", "confidence": 0.4, "escalate": false}', "unsure"),
        ('{"action": "observe", "confidence": 0.9, "escalate": true}', "unsure"),
        ('{"why": "I do not know whom to ask, so I asked all"}', None),
        ('{"confidence": "low"}', None),
        (f"{'a' * 400} I don't know {'b' * 400}", None),
    ],
)
def test_an_answer_shows_whether_it_is_good_enough(text: str, verdict: Verdict | None) -> None:
    assert judge(said(text)) == verdict


def test_an_answer_that_does_not_fit_its_schema_is_not_good_enough() -> None:
    assert judge(said("{}"), fits_schema=False) == "fails_schema"


def test_a_refusal_of_the_provider_is_one() -> None:
    assert judge(Response(blocks=(RefusalBlock("No."),), finish=Finish("refusal"))) == "refuses"


def test_a_turn_of_tool_calls_is_not_judged() -> None:
    call = ToolCallBlock(id="c", name="f", arguments="{}")
    assert judge(Response(blocks=(call,), finish=Finish("tool_calls"))) is None


@given(st.text(max_size=2000))
def test_any_text_is_judged(text: str) -> None:
    assert judge(said(text)) in (None, "unsure", "refuses", "empty")


def test_phrases_are_in_small_letters() -> None:
    rules = builtin_rules()
    assert all(phrase == phrase.lower() for phrase in (*rules.unsure, *rules.refuses))
