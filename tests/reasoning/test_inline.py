"""Thinking inside the content of a reply, separated from it event by event."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning.inline import InlineReasoning
from bardo.reasoning.registry import UnknownFormat, find_format
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    ContentChunk,
    Event,
    Failed,
    Finish,
    FinishReason,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.response import Response
from bardo.values.usage import Usage

STOP = Finish("stop", "stop")
THOUGHT = ReasoningBlock(text="plan", format="think-tags")


def through(events: Sequence[Event], stage: InlineReasoning | None = None) -> list[Event]:
    stage = stage or InlineReasoning.of("think")
    return [given for event in events for given in stage.feed(event)] + list(stage.finish())


def content(text: str, *, block: int = 0, choice: int = 0) -> ContentChunk:
    return ContentChunk(block, text, choice)


def cut(events: Sequence[Event], places: Sequence[int]) -> list[Event]:
    """Cut the text of every content chunk."""
    pieces: list[Event] = []
    for event in events:
        if isinstance(event, ContentChunk):
            edges = [0, *sorted(place % (len(event.text) + 1) for place in places), len(event.text)]
            pieces += [
                ContentChunk(event.block, event.text[begin:end], event.choice)
                for begin, end in itertools.pairwise(edges)
                if end > begin
            ]
        else:
            pieces.append(event)
    return pieces


CALL: list[Event] = [ToolCallStart(1, "c", "f"), ToolCallChunk(1, "{}"), ToolCallEnd(1)]
CALL_BLOCK = ToolCallBlock(id="c", name="f", arguments="{}")

CASES: dict[str, tuple[list[Event], tuple[object, ...]]] = {
    "thinking, then the answer": ([content("<think>plan</think>Hi"), STOP], (THOUGHT, TextBlock("Hi"))),
    "no thinking": ([content("Hi <b>you</b>"), STOP], (TextBlock("Hi <b>you</b>"),)),
    "white space before": (
        [content("\n<think>plan</think>\n\nHi"), STOP],
        (TextBlock("\n"), THOUGHT, TextBlock("\n\nHi")),
    ),
    "thinking that never ends": ([content("<think>plan"), Finish("length")], (THOUGHT,)),
    "a closer that never ends": (
        [content("<think>plan</th"), Finish("length")],
        (ReasoningBlock(text="plan</th", format="think-tags"),),
    ),
    "an opener that never ends": ([content("<thi"), STOP], (TextBlock("<thi"),)),
    "a stream without finish": ([content("<think>plan</think>Hi <thi")], (THOUGHT, TextBlock("Hi <thi"))),
    "a call after thinking": ([content("<think>plan</think>"), *CALL, STOP], (THOUGHT, CALL_BLOCK)),
    "a call ends what was held": (
        [content("<think>plan</th"), *CALL, STOP],
        (ReasoningBlock(text="plan</th", format="think-tags"), CALL_BLOCK),
    ),
    "text after a call, with thinking of its own": (
        [content("<think>plan</think>a"), *CALL, content("<think>again</think>b", block=2), STOP],
        (THOUGHT, TextBlock("a"), CALL_BLOCK, ReasoningBlock(text="again", format="think-tags"), TextBlock("b")),
    ),
    "the same block after a call is not split anew": (
        [content("<think>plan</think>a"), *CALL, content("<think>b"), STOP],
        (THOUGHT, TextBlock("a<think>b"), CALL_BLOCK),
    ),
    "thinking of the wire's own": (
        [ThinkStart(0, "reasoning"), ThinkChunk(0, "x"), ThinkEnd(0), content("<think>plan</think>Hi", block=1), STOP],
        (ReasoningBlock(text="x", format="reasoning"), THOUGHT, TextBlock("Hi")),
    ),
    "opaque state of the text": (
        [content("<think>plan</think>Hi"), OpaqueState(0, Opaque("signature", "s")), STOP],
        (THOUGHT, TextBlock("Hi", (Opaque("signature", "s"),))),
    ),
}


@pytest.mark.parametrize(("events", "blocks"), CASES.values(), ids=CASES.keys())
def test_blocks(events: list[Event], blocks: tuple[object, ...]) -> None:
    assert fold(through(events)).blocks == blocks


@pytest.mark.parametrize("events", [events for events, _ in CASES.values()], ids=CASES.keys())
@given(places=st.lists(st.integers(0, 40), max_size=5))
def test_no_cut_of_the_content_changes_the_reply(events: list[Event], places: list[int]) -> None:
    assert fold(through(cut(events, places))) == fold(through(events))


@pytest.mark.parametrize("events", [events for events, _ in CASES.values()], ids=CASES.keys())
def test_character_by_character(events: list[Event]) -> None:
    assert fold(through(cut(events, range(40)))) == fold(through(events))


@pytest.mark.parametrize("events", [events for events, _ in CASES.values()], ids=CASES.keys())
def test_blocks_are_numbered_as_they_appear_and_thinking_is_closed(events: list[Event]) -> None:
    out = through(cut(events, [3, 8, 15]))
    numbers = [event.block for event in out if hasattr(event, "block")]
    first_seen = list(dict.fromkeys(numbers))
    assert first_seen == list(range(len(first_seen)))
    begun = [event.block for event in out if isinstance(event, ThinkStart)]
    assert begun == [event.block for event in out if isinstance(event, ThinkEnd)]
    chunks = {event.block for event in out if isinstance(event, ThinkChunk)}
    assert chunks <= set(begun)


def test_thinking_arrives_as_it_is_thought() -> None:
    stage = InlineReasoning.of("think")
    assert list(stage.feed(content("<think>pl"))) == [ThinkStart(0, "think-tags"), ThinkChunk(0, "pl")]
    assert list(stage.feed(content("an</thi"))) == [ThinkChunk(0, "an")]
    assert list(stage.feed(content("nk>Hi"))) == [ThinkEnd(0), ContentChunk(1, "Hi")]


def test_what_is_held_comes_before_the_finish_and_the_failure() -> None:
    for last in (STOP, Failed(BrokenStream("cut"))):
        stage = InlineReasoning.of("think")
        assert list(stage.feed(content("<thi"))) == []
        assert list(stage.feed(last)) == [ContentChunk(0, "<thi"), last]
        assert list(stage.finish()) == []


def test_choices_are_split_apart_even_when_their_pieces_alternate() -> None:
    events: list[Event] = [
        content("<thi", choice=0),
        content("no ", choice=1),
        content("nk>plan</think>Hi", choice=0),
        content("thinking", choice=1),
        STOP,
        Finish("stop", choice=1),
    ]
    first: Response = fold(through(events))
    assert first.blocks == (THOUGHT, TextBlock("Hi"))
    assert [other.blocks for other in first.alternatives] == [(TextBlock("no thinking"),)]


@pytest.mark.parametrize(
    "event",
    [
        ReplyStart(id="r"),
        UsageUpdate(Usage(output_tokens=1)),
        ReplyFields("d", {"a": 1}),
        ReplyFields("d", {"a": 1}, 0),
    ],
)
def test_what_belongs_to_no_block_passes_at_once(event: Event) -> None:
    stage = InlineReasoning.of("think")
    stage.feed(content("<thi"))
    assert list(stage.feed(event)) == [event]
    assert list(stage.feed(content("nk>plan"))) == [ThinkStart(0, "think-tags"), ThinkChunk(0, "plan")]


def test_only_the_beginning_of_a_reply_continues_the_prompt() -> None:
    events: list[Event] = [content("plan</think>a"), *CALL, content("b", block=2), STOP]
    for stage in (
        InlineReasoning(find_format("deepseek_r1")),
        InlineReasoning(find_format("think"), starts_inside=True),
    ):
        assert fold(through(events, stage)).blocks == (THOUGHT, TextBlock("a"), CALL_BLOCK, TextBlock("b"))


def test_a_format_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownFormat):
        InlineReasoning.of("no such format")


@pytest.mark.parametrize("pieces", [1, 3], ids=["one piece", "three pieces"])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_an_opener_that_nothing_closes_is_the_prompts_where_a_reply_has_a_reason_not_to_think(
    pieces: int, reason: FinishReason
) -> None:
    text = "<think>\nThe answer."
    edges = [place * len(text) // pieces for place in range(pieces + 1)]
    events: list[Event] = [content(text[begin:end]) for begin, end in itertools.pairwise(edges)]
    whole = InlineReasoning(find_format("think"), undecided=True, explained=True)
    folded = fold(through([*events, Finish(reason, reason)], whole))
    said = (folded.reasoning.content or "", folded.text)
    assert said == (("", "\nThe answer.") if reason == "stop" else ("\nThe answer.", ""))


def test_an_opener_that_nothing_closes_is_thinking_and_the_answer_in_a_stream() -> None:
    events: list[Event] = [content("<think>\nThe answer."), STOP]
    folded = fold(through(events, InlineReasoning(find_format("think"), undecided=True, limit=100, explained=True)))
    assert folded.text == "\nThe answer."
    assert [one.what for one in folded.degraded] == ["inline_reasoning"]


def test_an_opener_that_nothing_closes_is_thinking_where_nothing_explains_it() -> None:
    events: list[Event] = [content("<think>\nThe answer."), STOP]
    folded = fold(through(events, InlineReasoning(find_format("think"), undecided=True)))
    assert folded.text == ""


@pytest.mark.parametrize("undecided", [False, True])
def test_a_thought_that_is_closed_is_one_whatever_was_asked(undecided: bool) -> None:
    events: list[Event] = [content("<think>\nplan</think>The answer."), STOP]
    folded = fold(through(events, InlineReasoning(find_format("think"), undecided=undecided, explained=True)))
    assert folded.text == "The answer."
    assert (folded.reasoning.content or "").strip() == "plan"
