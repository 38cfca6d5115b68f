"""Thinking is cut into steps that cover it exactly once, and each says what it does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning.steps import chain_fields, segment_steps, stepped, with_steps
from bardo.values.reasoning import ReasoningChain, ReasoningStep
from bardo.values.response import Response

pytestmark = pytest.mark.each_python

PIECES = [
    "wait",
    "So ",
    "因此",
    "等等",
    ". ",
    "。",
    "\n",
    "\n\n",
    "```",
    "~~~\n",
    "maybe",
    "x",
    " ",
    "！",
    '."',
    "1. ",
    "- ",
    "**",
    "’",
    "\u2028",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)


def said(text: str) -> list[tuple[str, str]]:
    """Return each step's kind and its text without the white space around it."""
    return [(step.kind.value, step.content.strip()) for step in segment_steps(text)]


@given(texts)
def test_steps_cover_the_text_exactly_once_and_in_order(text: str) -> None:
    steps = segment_steps(text)
    assert "".join(step.content for step in steps) == text
    assert [step.start for step in steps] == [0, *(step.end for step in steps[:-1])][: len(steps)]
    assert all(step.content == text[step.start : step.end] != "" for step in steps)


@given(texts)
def test_the_same_text_has_the_same_steps_and_no_confidence_is_invented(text: str) -> None:
    steps = segment_steps(text)
    assert segment_steps(text) == steps
    assert all(step.confidence is None for step in steps)


@given(texts, texts)
def test_what_follows_a_paragraph_does_not_change_the_steps_before_it(first: str, second: str) -> None:
    whole = segment_steps(f"{first}\n\nx{second}")
    alone = segment_steps(f"{first}\n\nx")
    assert whole[: len(alone) - 1] == alone[:-1]


ENGLISH = """Okay, so the user wants 27 * 43. First, 27 * 40 is 1080. Then 27 * 3 is 81.

Wait, is that right? Maybe I should try it another way.

Let me verify it. 1080 + 81 is 1161. So the answer is 1161."""
CHINESE = "首先，我需要计算27乘43。等等，我可能算错了。也许是1161？让我验证一下。因此答案是1161。"
GERMAN = "Zuerst rechne ich 27 mal 40. Moment, das war 1080. Vielleicht stimmt es. Daher ist die Antwort 1161."


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (ENGLISH, ["analysis", "planning", "reflection", "uncertainty", "evaluation", "decision"]),
        (CHINESE, ["planning", "reflection", "uncertainty", "evaluation", "decision"]),
        (GERMAN, ["planning", "reflection", "uncertainty", "decision"]),
        ("The sky is blue.", ["analysis"]),
        (" \n ", ["analysis"]),
        ("", []),
    ],
    ids=["English", "Chinese", "German", "no marker", "white space", "empty"],
)
def test_what_a_step_does_is_read_from_its_first_words(text: str, kinds: Sequence[str]) -> None:
    assert [step.kind for step in segment_steps(text)] == kinds


def test_a_paragraph_begins_a_step_and_a_line_does_not() -> None:
    assert said("One.\nTwo.\n\nThree.") == [("analysis", "One.\nTwo."), ("analysis", "Three.")]


def test_a_sentence_begins_a_step_only_where_what_is_done_changes() -> None:
    text = "Maybe it is 3. Perhaps 4. It has two sides. Wait, no. That is all."
    assert said(text) == [
        ("uncertainty", "Maybe it is 3. Perhaps 4. It has two sides."),
        ("reflection", "Wait, no. That is all."),
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Let me think", "analysis"),
        ("Let me check", "evaluation"),
        ("Let me double-check", "reflection"),
        ("Let me write", "planning"),
    ],
)
def test_of_markers_that_fit_the_longest_counts(text: str, kind: str) -> None:
    assert [step.kind for step in segment_steps(text)] == [kind]


@pytest.mark.parametrize("text", ["**Evaluating options**", "- But wait", "1. So, hmm, wait", "> “Wait", "WAIT"])
def test_ornaments_filler_words_and_case_stand_before_a_marker(text: str) -> None:
    assert {step.kind.value for step in segment_steps(text)} <= {"evaluation", "reflection"}


@pytest.mark.parametrize("text", ["Waiter!", "Plane tickets", "The user’s wait", "thenceforth"])
def test_a_marker_is_a_whole_word_at_the_beginning(text: str) -> None:
    assert [step.kind for step in segment_steps(text)] == ["analysis"]


def test_both_kinds_of_apostrophe_are_the_same() -> None:
    assert said("I’m not sure.")[0][0] == said("I'm not sure.")[0][0] == "uncertainty"


def test_code_is_not_cut() -> None:
    text = "Plan: this.\n\n```python\nx = 1\n\n# Wait. Maybe.\n```\nWait, no."
    assert said(text) == [
        ("planning", "Plan: this."),
        ("analysis", "```python\nx = 1\n\n# Wait. Maybe.\n```"),
        ("reflection", "Wait, no."),
    ]


@pytest.mark.parametrize(
    "unit",
    ["!", "\n", ". ", "\n ```", "- ", "so ", "“", "1.", '…""" ', "\n \n", " " * 50 + "x", "so, wait. "],
    ids=repr,
)
def test_hostile_repetition_is_read_to_the_end(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    steps = segment_steps(text)
    assert steps[-1].end == len(text)


def test_a_chain_finds_its_steps_when_asked_and_once() -> None:
    chain = stepped(ReasoningChain(content="Wait. Maybe."))
    assert [step.kind for step in chain.steps] == ["reflection", "uncertainty"]
    assert chain.steps is chain.steps
    assert ReasoningChain(content="Wait.").steps == ()
    assert stepped(ReasoningChain()).steps == ()


def test_a_changed_chain_finds_the_steps_of_its_own_text() -> None:
    chain = stepped(ReasoningChain(content="Wait."))
    assert chain.steps[0].content == "Wait."
    assert msgspec.structs.replace(chain, content="Maybe.").steps == (
        ReasoningStep(step_type=chain.steps[0].step_type.__class__("uncertainty"), content="Maybe.", start=0, end=6),
    )


def test_a_response_has_steps_in_its_alternatives_too() -> None:
    other = Response(reasoning=ReasoningChain(content="Maybe."))
    response = with_steps(Response(reasoning=ReasoningChain(content="Wait."), alternatives=(other,)))
    assert [step.kind for step in response.reasoning.steps] == ["reflection"]
    assert [step.kind for step in response.alternatives[0].reasoning.steps] == ["uncertainty"]


def test_the_fields_of_a_chain_hold_its_steps_whoever_made_it() -> None:
    fields = chain_fields(ReasoningChain(content="Wait."))
    assert fields["steps"] == [
        {"step_type": "reflection", "content": "Wait.", "confidence": None, "start": 0, "end": 5}
    ]
    assert fields["visibility"] == "none"
