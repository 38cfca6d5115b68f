"""Thinking that a client did not ask for, and thinking as text between tags."""

from __future__ import annotations

from bardo.replies.reply_stages import ThinkingInTags, WithoutUnasked, thinking_stage
from bardo.values.blocks import Opaque
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Finish,
    OpaqueState,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallStart,
    WithheldThought,
)
from bardo.values.request import BardoOptions, Request

STATE = OpaqueState(0, Opaque("signature", "c2ln", "anthropic-claude-v1"))


def tagged(*events: Event) -> list[Event]:
    stage = ThinkingInTags()
    return [*(passed for event in events for passed in stage.feed(event)), *stage.finish()]


def text_of(events: list[Event], choice: int = 0) -> str:
    return "".join(one.text for one in events if isinstance(one, ContentChunk) and one.choice == choice)


def test_thinking_becomes_text_between_tags() -> None:
    events = tagged(
        ThinkStart(0), ThinkChunk(0, "Let me "), ThinkChunk(0, "see."), STATE, ThinkEnd(0), ContentChunk(1, "Four.")
    )
    assert text_of(events) == "<think>\nLet me see.\n</think>\n\nFour."
    assert {type(one) for one in events} == {ContentChunk}


def test_the_tag_ends_before_a_tool_call_and_at_a_break() -> None:
    events = tagged(ThinkStart(0), ThinkChunk(0, "Look."), ToolCallStart(1, "c", "look"), Finish("tool_calls"))
    assert events == [
        ContentChunk(0, "<think>\nLook."),
        ContentChunk(0, "\n</think>\n\n"),
        ToolCallStart(1, "c", "look"),
        Finish("tool_calls"),
    ]
    assert text_of(tagged(ThinkStart(0), ThinkChunk(0, "Cut"))) == "<think>\nCut\n</think>\n\n"


def test_parts_of_a_summary_are_paragraphs_and_stretches_have_tags_of_their_own() -> None:
    events = tagged(ThinkChunk(0, "One.", 0), ThinkChunk(0, "Two.", 1), ThinkChunk(2, "Three."), ContentChunk(3, "So."))
    assert text_of(events) == "<think>\nOne.\n\nTwo.\n</think>\n\n<think>\nThree.\n</think>\n\nSo."


def test_choices_are_kept_apart_and_silent_thinking_leaves_no_tag() -> None:
    events = tagged(
        ThinkChunk(0, "A", choice=0), ThinkChunk(0, "B", choice=1), ContentChunk(1, "a"), ContentChunk(1, "b", 1)
    )
    assert text_of(events) == "<think>\nA\n</think>\n\na"
    assert text_of(events, 1) == "<think>\nB\n</think>\n\nb"
    assert tagged(ThinkStart(0), STATE, ThinkEnd(0), ContentChunk(1, "Hi.")) == [ContentChunk(1, "Hi.")]


def test_thinking_that_names_the_end_of_the_tag_does_not_end_it_wherever_it_is_cut() -> None:
    thought = "Close with </think>, then </think> again, </thin and <"
    expected = "<think>\nClose with </ think>, then </ think> again, </thin and <\n</think>\n\nSo."
    for size in range(1, len(thought) + 1):
        pieces = [ThinkChunk(0, thought[place : place + size]) for place in range(0, len(thought), size)]
        events = tagged(ThinkStart(0), *pieces, ThinkEnd(0), ContentChunk(1, "So."))
        assert text_of(events) == expected
        assert [one.degradation.what for one in events if isinstance(one, Degraded)] == ["reasoning"]
        assert all(one.text for one in events if isinstance(one, ContentChunk))
    parts = tagged(ThinkChunk(0, "One </", 0), ThinkChunk(0, "think> two", 1))
    assert text_of(parts) == "<think>\nOne </\n\nthink> two\n</think>\n\n"


def test_thinking_that_nobody_asked_for_is_left_out_and_reported_once() -> None:
    stage = WithoutUnasked()
    events: list[Event] = [
        ThinkStart(0),
        ThinkChunk(0, "Hm."),
        ThinkChunk(0, " So."),
        ThinkEnd(0),
        ContentChunk(1, "Four."),
    ]
    passed = [one for event in events for one in stage.feed(event)]
    assert [type(one) for one in passed] == [WithheldThought, Degraded, ContentChunk]


def test_a_provider_of_the_clients_own_dialect_answers_as_it_does() -> None:
    request = Request(model="m", messages=(), dialect="anthropic_messages", options=BardoOptions(omit_unasked=True))
    assert thinking_stage(request, "anthropic_messages") is None
    assert isinstance(thinking_stage(request, "openai_chat"), WithoutUnasked)
