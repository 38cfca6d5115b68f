"""Tool calls inside the content of a reply, separated from it event by event."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import find_format
from bardo.reasoning.inline import InlineReasoning
from bardo.tools import InlineToolCalls, find_tool_call_format
from bardo.values.blocks import Opaque, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
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
from bardo.values.usage import Usage
from tools.support import TOOLS

STOP = Finish("stop", "stop")
WRITTEN = '<tool_call>\n{"name": "clock", "arguments": {"a": 1}}\n</tool_call>'


def stage(name: str = "hermes") -> InlineToolCalls:
    numbers = itertools.count(1)
    return InlineToolCalls(find_tool_call_format(name), tools=TOOLS, make_id=lambda: f"#{next(numbers)}")


def through(events: Sequence[Event], chosen: InlineToolCalls | None = None) -> list[Event]:
    chosen = chosen or stage()
    return [given for event in events for given in chosen.feed(event)] + list(chosen.finish())


def content(text: str, *, block: int = 0, choice: int = 0) -> ContentChunk:
    return ContentChunk(block, text, choice)


def call(number: int = 1) -> ToolCallBlock:
    return ToolCallBlock(id=f"#{number}", name="clock", arguments='{"a": 1}')


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


OWN_CALL: list[Event] = [ToolCallStart(1, "c", "f"), ToolCallChunk(1, "{}"), ToolCallEnd(1)]
OWN_BLOCK = ToolCallBlock(id="c", name="f", arguments="{}")
THOUGHT: list[Event] = [ThinkStart(0, "x"), ThinkChunk(0, WRITTEN), ThinkEnd(0)]

CASES: dict[str, tuple[list[Event], tuple[object, ...]]] = {
    "no call": ([content("Hi <b>you</b>"), STOP], (TextBlock("Hi <b>you</b>"),)),
    "a call": ([content(WRITTEN), STOP], (call(),)),
    "text around a call": ([content(f"a\n{WRITTEN}\nb"), STOP], (TextBlock("a\n"), call(), TextBlock("\nb"))),
    "two calls, and white space that is layout": (
        [content(f"\n\n{WRITTEN}\n{WRITTEN}\n"), STOP],
        (call(1), call(2)),
    ),
    "white space alone": ([content(" \n "), STOP], (TextBlock(" \n "),)),
    "white space before text": ([content(" \n Hi"), STOP], (TextBlock(" \n Hi"),)),
    "a call in a thought": (
        [*THOUGHT, content("Hi", block=1), STOP],
        (ReasoningBlock(text=WRITTEN, format="x"), TextBlock("Hi")),
    ),
    "text that is none": ([content("<tool_call>so"), STOP], (TextBlock("<tool_call>so"),)),
    "a marker that never ends": ([content("a<tool_c"), STOP], (TextBlock("a<tool_c"),)),
    "a stream without finish": ([content(WRITTEN[:50])], (ToolCallBlock(id="#1", name="clock", arguments='{"a": 1'),)),
    "a call of the wire's own": (
        [content("a"), *OWN_CALL, content(WRITTEN, block=2), STOP],
        (TextBlock("a"), OWN_BLOCK, call()),
    ),
    "the same block again is not read anew": (
        [content(f"{WRITTEN}a"), *OWN_CALL, content(WRITTEN), STOP],
        (call(), TextBlock("a" + WRITTEN), OWN_BLOCK),
    ),
    "opaque state of the text": (
        [content(f"Hi{WRITTEN}"[:2]), OpaqueState(0, Opaque("signature", "s")), STOP],
        (TextBlock("Hi", (Opaque("signature", "s"),)),),
    ),
}


@pytest.mark.parametrize(("events", "blocks"), CASES.values(), ids=CASES.keys())
def test_blocks(events: list[Event], blocks: tuple[object, ...]) -> None:
    assert fold(through(events)).blocks == blocks


@pytest.mark.parametrize("events", [events for events, _ in CASES.values()], ids=CASES.keys())
@given(places=st.lists(st.integers(0, 80), max_size=5))
def test_no_cut_of_the_content_changes_the_reply(events: list[Event], places: list[int]) -> None:
    assert fold(through(cut(events, places))) == fold(through(events))


@pytest.mark.parametrize("events", [events for events, _ in CASES.values()], ids=CASES.keys())
def test_character_by_character(events: list[Event]) -> None:
    assert fold(through(cut(events, range(200)))) == fold(through(events))


@pytest.mark.parametrize("events", [events for events, _ in CASES.values()], ids=CASES.keys())
def test_blocks_are_numbered_as_they_appear_and_calls_are_ended(events: list[Event]) -> None:
    out = through(cut(events, [3, 8, 15, 40]))
    numbers = [event.block for event in out if hasattr(event, "block")]
    first_seen = list(dict.fromkeys(numbers))
    assert first_seen == list(range(len(first_seen)))
    begun = [event.block for event in out if isinstance(event, ToolCallStart)]
    assert begun == [event.block for event in out if isinstance(event, ToolCallEnd)]


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (WRITTEN, STOP, Finish("tool_calls", "stop")),
        (WRITTEN, Finish("length", "length"), Finish("length", "length")),
        ("Hi", STOP, STOP),
        ("<tool_call>so", STOP, STOP),
    ],
    ids=["a call", "cut off", "text", "no call after all"],
)
def test_a_reply_that_calls_says_so_and_keeps_the_providers_word(text: str, given: Finish, expected: Finish) -> None:
    assert fold(through([content(text), given])).finish == expected


def test_arguments_arrive_as_they_are_written() -> None:
    chosen = stage()
    assert list(chosen.feed(content('Hi<tool_call>{"name": "clock", '))) == [ContentChunk(0, "Hi")]
    assert list(chosen.feed(content('"arguments": {"a"'))) == [
        ToolCallStart(1, "#1", "clock"),
        ToolCallChunk(1, '{"a"'),
    ]
    assert list(chosen.feed(content(": 1}}</tool_call>"))) == [ToolCallChunk(1, ": 1}"), ToolCallEnd(1)]
    assert list(chosen.feed(content("Bye"))) == [ContentChunk(2, "Bye")]


def test_what_is_no_call_is_told() -> None:
    events = through([content("<tool_call>so</tool_call>"), STOP])
    assert [event.degradation for event in events if isinstance(event, Degraded)] == [
        Degradation("tool_calls", asked="<tool_call>", sent="text", why="what follows is no call")
    ]


def test_a_malformed_call_is_told_and_none_of_it_is_lost() -> None:
    response = fold(through([content('<tool_call>{"name": "clock", "arguments": {"a": 1</tool_call>'), STOP]))
    (invocation,) = response.tool_calls
    assert (invocation.raw_arguments, invocation.malformed) == ('{"a": 1', True)
    assert response.degraded == (
        Degradation("tool_calls", asked=None, sent="a tool call", why="the arguments are not valid JSON"),
    )


def test_what_is_held_comes_before_the_finish_and_the_failure() -> None:
    for last in (STOP, Failed(BrokenStream("cut"))):
        chosen = stage()
        assert list(chosen.feed(content("a<tool"))) == [ContentChunk(0, "a")]
        assert list(chosen.feed(last)) == [ContentChunk(0, "<tool"), last]
        assert list(chosen.finish()) == []


def test_choices_are_read_apart_even_when_their_pieces_alternate() -> None:
    events: list[Event] = [
        content(WRITTEN[:20], choice=0),
        content("no ", choice=1),
        content(WRITTEN[20:], choice=0),
        content("call", choice=1),
        STOP,
        Finish("stop", choice=1),
    ]
    first = fold(through(events))
    assert first.blocks == (call(),)
    assert [(other.blocks, other.finish.reason) for other in first.alternatives] == [((TextBlock("no call"),), "stop")]


@pytest.mark.parametrize(
    "event",
    [
        ReplyStart(id="r"),
        UsageUpdate(Usage(output_tokens=1)),
        ReplyFields("d", {"a": 1}),
        ReplyFields("d", {"a": 1}, 0),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_belongs_to_no_block_passes_at_once(event: Event) -> None:
    chosen = stage()
    chosen.feed(content(WRITTEN[:20]))
    assert list(chosen.feed(event)) == [event]
    assert [type(each) for each in chosen.feed(content(WRITTEN[20:]))] == [ToolCallStart, ToolCallChunk, ToolCallEnd]


def test_a_call_that_ends_a_thought_is_read_after_it() -> None:
    thinking, calls = InlineReasoning(find_format("qwen3"), starts_inside=True), stage("qwen")
    events: list[Event] = [*thinking.feed(content(f"plan{WRITTEN}")), *thinking.feed(STOP)]
    response = fold(through(events, calls))
    assert response.blocks == (ReasoningBlock(text="plan", format="think-tags"), call())
    assert response.finish == Finish("tool_calls", "stop")
