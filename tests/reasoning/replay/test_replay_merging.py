"""What a client gives back of a turn, and what is kept of it, become the turn as its model said it."""

from __future__ import annotations

from operator import is_

import pytest

from bardo.reasoning.replay.keys import digest
from bardo.reasoning.replay.memory import (
    CallRecord,
    OtherRecord,
    Part,
    ReplyRecord,
    TextRecord,
    ThinkingRecord,
    merged,
)
from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock

STATE = Opaque("signature", "s" * 40, "anthropic-claude-v1")
THOUGHT = ReasoningBlock(text="Look first.", format="anthropic-claude-v1", opaque=(STATE,))
TEXT = TextBlock("I look.")
SAID = TextRecord(7, (), digest("I look."))
CALL = ToolCallBlock(id="a", name="f", arguments="{}")
OTHER = ToolCallBlock(id="b", name="f", arguments="{}")
FOREIGN = UnknownBlock("anthropic_messages", {"type": "server_tool_use", "id": "s"})


def record(*parts: Part) -> ReplyRecord:
    return ReplyRecord(Origin(provider="p", platform="p", model="m", dialect="d"), parts)


@pytest.mark.parametrize(
    ("blocks", "parts"),
    [
        ((THOUGHT, CALL), (ThinkingRecord(THOUGHT), CallRecord("a"))),
        ((THOUGHT, TEXT, CALL, OTHER), (ThinkingRecord(THOUGHT), SAID, CallRecord("a"), CallRecord("b"))),
        ((THOUGHT, TEXT, FOREIGN), (ThinkingRecord(THOUGHT), SAID)),
    ],
    ids=["call", "text and calls", "block of the client's dialect"],
)
def test_a_turn_that_its_client_gives_back_whole_is_left_as_it_is(
    blocks: tuple[Block, ...], parts: tuple[Part, ...]
) -> None:
    whole = merged(blocks, record(*parts), with_others=False)
    assert len(whole) == len(blocks)
    assert all(map(is_, whole, blocks))


def test_thinking_that_was_dropped_stands_where_it_stood() -> None:
    kept = record(SAID, ThinkingRecord(THOUGHT), CallRecord("a"))
    assert merged((TEXT, CALL), kept) == (TEXT, THOUGHT, CALL)
    assert merged((CALL,), kept) == (THOUGHT, CALL)
    # What the client says in other words takes the place of what is kept only where it is the same thought.
    assert merged((ReasoningBlock(text="Look first."), TEXT, CALL), kept) == (TEXT, THOUGHT, CALL)


def test_words_that_the_client_added_stand_before_the_calls() -> None:
    kept = record(ThinkingRecord(THOUGHT), CallRecord("a"))
    assert merged((CALL, TEXT), kept) == (THOUGHT, TEXT, CALL)


def test_state_and_ids_of_its_own_are_put_back_into_a_call() -> None:
    kept = record(CallRecord("a", (STATE,), own_id=True), CallRecord("b", own_id=True))
    first, second = merged((CALL, OTHER), kept, with_others=True)
    assert isinstance(first, ToolCallBlock)
    assert isinstance(second, ToolCallBlock)
    assert (first.opaque, first.own_id, second.own_id) == ((STATE,), True, True)
    first, second = merged((CALL, OTHER), kept, with_others=False)
    assert second is OTHER


def test_calls_of_one_id_are_put_in_the_order_they_were_made_in() -> None:
    kept = record(CallRecord("b"), CallRecord("a"), CallRecord("b"))
    assert merged((OTHER, CALL, OTHER), kept, with_others=False) == (CALL, OTHER, OTHER)


def test_all_state_of_a_reply_is_told_in_order() -> None:
    more = Opaque("encrypted", "e" * 30, "openai-responses-v1")
    kept = record(OtherRecord(FOREIGN), ThinkingRecord(THOUGHT), TextRecord(7, (more,)), CallRecord("a", (STATE,)))
    assert kept.states == [STATE, more, STATE]
