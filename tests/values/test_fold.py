"""Events to one Response."""

from __future__ import annotations

import pytest

from bardo.values.blocks import (
    Carried,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
)
from bardo.values.degradation import Degradation
from bardo.values.errors import BrokenStream
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Extension,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.fold import ResponseFold, fold
from bardo.values.response import ToolInvocation
from bardo.values.usage import Usage

pytestmark = pytest.mark.each_python

SIGNATURE = Opaque("signature", "sig", "anthropic-claude-v1")


def test_a_reply_with_everything_in_order() -> None:
    response = fold(
        [
            ReplyStart(id="r1", model="m-2", created=7),
            ThinkStart(0, "anthropic-claude-v1"),
            ThinkChunk(0, "pl"),
            ThinkChunk(0, "an"),
            OpaqueState(0, SIGNATURE),
            ThinkEnd(0),
            ContentChunk(1, "Hel"),
            ContentChunk(1, "lo"),
            ToolCallStart(2, "c1", "weather"),
            ToolCallChunk(2, '{"city":'),
            ToolCallChunk(2, '"Paris"}'),
            ToolCallEnd(2),
            UnknownContent(3, "x", {"type": "map"}),
            RefusalChunk(4, "No."),
            UsageUpdate(Usage(output_tokens=9, reasoning_tokens=4)),
            Finish("tool_calls", "tool_use"),
        ],
        provider="p",
        model="m",
    )
    assert response.blocks == (
        ReasoningBlock(text="plan", format="anthropic-claude-v1", opaque=(SIGNATURE,)),
        TextBlock("Hello"),
        ToolCallBlock(id="c1", name="weather", arguments='{"city":"Paris"}'),
        UnknownBlock("x", {"type": "map"}),
        RefusalBlock("No."),
    )
    assert (response.id, response.model, response.provider, response.created) == ("r1", "m-2", "p", 7)
    assert (response.text, response.refusal) == ("Hello", "No.")
    assert response.tool_calls == [ToolInvocation("c1", "weather", {"city": "Paris"}, '{"city":"Paris"}')]
    assert response.reasoning_blocks == [response.blocks[0]]
    assert response.finish == Finish("tool_calls", "tool_use")
    assert response.reasoning.content == "plan"
    assert response.usage.answer_tokens == 5


def test_pieces_of_two_blocks_may_alternate() -> None:
    events: list[Event] = [ContentChunk(1, "a"), ThinkChunk(0, "x"), ContentChunk(1, "b"), ThinkChunk(0, "y")]
    assert fold(events).blocks == (TextBlock("ab"), ReasoningBlock(text="xy"))


def test_parts_of_a_summary_are_told_apart() -> None:
    events: list[Event] = [ThinkChunk(0, "b", 1), ThinkChunk(0, "a", 0), ThinkChunk(0, "!", 1)]
    assert fold(events).blocks == (ReasoningBlock(summary=("a", "b!")),)


@pytest.mark.parametrize(
    ("states", "kept"),
    {
        "a later ciphertext replaces a provisional one": (
            [Opaque("encrypted", "short"), Opaque("encrypted", "long")],
            (Opaque("encrypted", "long"),),
        ),
        "kinds stand beside each other": ([Opaque("id", "i"), SIGNATURE], (Opaque("id", "i"), SIGNATURE)),
        "redacted pieces add up": (
            [Opaque("redacted", "1"), Opaque("redacted", "2")],
            (Opaque("redacted", "1"), Opaque("redacted", "2")),
        ),
    }.values(),
)
def test_opaque_state(states: list[Opaque], kept: tuple[Opaque, ...]) -> None:
    [block] = fold([ThinkStart(0, "f"), *(OpaqueState(0, state) for state in states)]).reasoning_blocks
    assert block.opaque == kept


def test_opaque_state_may_come_after_its_block() -> None:
    response = fold([ThinkChunk(0, "x"), ThinkEnd(0), ContentChunk(1, "a"), OpaqueState(0, SIGNATURE)])
    assert response.blocks == (ReasoningBlock(text="x", opaque=(SIGNATURE,)), TextBlock("a"))


def test_opaque_state_alone_makes_a_text_that_carries_it() -> None:
    assert fold([OpaqueState(0, SIGNATURE)]).blocks == (TextBlock("", (SIGNATURE,)),)


def test_later_usage_replaces_earlier() -> None:
    usage = fold([UsageUpdate(Usage(output_tokens=1)), UsageUpdate(Usage(output_tokens=5))]).usage
    assert usage == Usage(output_tokens=5)


def test_choices_are_alternatives_in_order() -> None:
    events: list[Event] = [
        ContentChunk(0, "second", 1),
        ContentChunk(0, "first", 0),
        Finish("length", choice=1),
        Finish("stop", choice=0),
    ]
    response = fold(events)
    assert response.text == "first"
    assert [(other.text, other.finish.reason) for other in response.alternatives] == [("second", "length")]


def test_what_arrived_before_a_failure_is_kept() -> None:
    error = BrokenStream("cut")
    response = fold([ContentChunk(0, "half"), Failed(error)])
    assert (response.text, response.error, response.finish.reason) == ("half", error, "error")


def test_a_failure_after_a_finish_reason_leaves_the_reason() -> None:
    assert fold([Finish("stop", "stop"), Failed(BrokenStream("cut"))]).finish == Finish("stop", "stop")


def test_a_reply_without_a_finish_reason_ends_unknown() -> None:
    assert fold([]).finish == Finish("unknown")


def test_the_start_may_come_in_pieces() -> None:
    response = fold([ReplyStart(model="m"), ReplyStart(id="i"), ReplyStart(created=3)], model="asked")
    assert (response.id, response.model, response.created) == ("i", "m", 3)


def test_a_call_may_learn_its_name_later() -> None:
    response = fold([ToolCallStart(0, "c", ""), ToolCallStart(0, "", "f")])
    assert response.blocks == (ToolCallBlock(id="c", name="f", complete=False),)
    assert response.tool_calls == []


def test_each_difference_is_told_once() -> None:
    lost = Degradation("seed", asked=1, why="no such field")
    assert fold([Degraded(lost), Degraded(lost)]).degraded == (lost,)


def test_carried_fields_go_where_they_belong() -> None:
    response = fold(
        [
            ContentChunk(0, "a"),
            BlockFields(0, "d", {"citations": [1]}),
            BlockFields(0, "d", {"citations": [2], "note": "x"}),
            ReplyFields("d", {"tier": "a"}),
            ReplyFields("d", {"tier": "b"}),
            ReplyFields("d", {"logprobs": [1]}, 0),
        ]
    )
    assert response.blocks == (TextBlock("a", carried=Carried("d", {"citations": [1, 2], "note": "x"})),)
    assert response.carried == Carried("d", {"tier": "b"})
    assert response.choice_carried == Carried("d", {"logprobs": [1]})


def test_fields_of_another_dialect_take_the_place_of_earlier_ones() -> None:
    response = fold([ReplyFields("a", {"x": 1}), ReplyFields("b", {"y": 2})])
    assert response.carried == Carried("b", {"y": 2})


def test_merging_leaves_an_events_own_list_as_it_was() -> None:
    first = ReplyFields("a", {"list": [1]})
    assert fold([first, ReplyFields("a", {"list": [2]})]).carried == Carried("a", {"list": [1, 2]})
    assert first.fields == {"list": [1]}


@pytest.mark.parametrize(
    ("pieces", "text", "thinking", "whole"),
    [
        ([ThinkChunk(0, "plan"), ContentChunk(1, "hello")], "hello", "plan", True),
        ([ThinkChunk(0, "plan"), ContentChunk(1, "hello"), ContentChunk(1, "!")], "hello", "plan", False),
        ([ThinkChunk(0, "ten letters"), ContentChunk(1, "!")], "", "", False),
    ],
    ids=["just fits", "one letter too many", "thinking alone is too long"],
)
def test_no_more_text_is_held_than_there_is_room_for(
    pieces: list[Event], text: str, thinking: str, whole: bool
) -> None:
    held = ResponseFold(most_text=9)
    for piece in [ThinkStart(0, ""), *pieces]:
        held.feed(piece)
    response = held.response()
    assert (response.text, response.reasoning.content or "", held.whole) == (text, thinking, whole)


def test_the_extension_is_bardos_own() -> None:
    assert fold([Extension({"a": 1}), Extension({"b": 2})]).bardo == {"a": 1, "b": 2}


def test_a_reply_can_be_read_while_it_arrives() -> None:
    collector = ResponseFold()
    collector.feed(ContentChunk(0, "a"))
    early = collector.response()
    collector.feed(ContentChunk(0, "b"))
    assert (early.text, collector.response().text) == ("a", "ab")
    assert collector.finish() == (collector.response(),)


@pytest.mark.parametrize(
    ("arguments", "parsed", "malformed"),
    [
        ('{"a": 1}', {"a": 1}, False),
        ("", {}, False),
        ("  ", {}, False),
        ('{"a": ', {}, True),
        ("[1]", {}, True),
        ("null", {}, False),
        ("7", {}, True),
    ],
)
def test_arguments_of_a_call(arguments: str, parsed: dict[str, object], malformed: bool) -> None:
    call = ToolInvocation.of(ToolCallBlock(id="c", name="f", arguments=arguments))
    assert (call.arguments, call.malformed, call.raw_arguments) == (parsed, malformed, arguments)
