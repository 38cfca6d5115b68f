"""What a client gives back of a turn, and what is kept of it, become the turn as its model said it."""

from __future__ import annotations

import random
from operator import is_

import pytest

from bardo.reasoning.replay.keys import digest
from bardo.reasoning.replay.memory import (
    CallRecord,
    Part,
    ReplyRecord,
    TextRecord,
    ThinkingRecord,
    lacks_nothing,
    merged,
)
from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock, UnknownBlock

STATE = Opaque("signature", "s" * 40, "anthropic-claude-v1")
THOUGHT = ReasoningBlock(text="Look first.", format="anthropic-claude-v1", opaque=(STATE,))
BLOCKS: tuple[Block, ...] = (
    THOUGHT,
    ReasoningBlock(text="Look first."),
    TextBlock("I look."),
    ToolCallBlock(id="a", name="f", arguments="{}"),
    ToolCallBlock(id="b", name="f", arguments="{}"),
    UnknownBlock("anthropic_messages", {"type": "server_tool_use", "id": "s"}),
)
PARTS: tuple[Part, ...] = (
    ThinkingRecord(THOUGHT),
    TextRecord(7, (), digest("I look.")),
    TextRecord(7, (STATE,), digest("I look.")),
    CallRecord("a", (), own_id=True),
    CallRecord("b", (STATE,)),
    CallRecord("b"),
)


def test_a_turn_that_lacks_nothing_is_one_that_would_be_merged_into_itself() -> None:
    chance, whole_turns = random.Random(3), 0
    for _ in range(3000):
        count = chance.randint(0, 4)
        blocks, parts = tuple(chance.choices(BLOCKS, k=count)), tuple(chance.choices(PARTS, k=count))
        record = ReplyRecord(Origin(provider="p", platform="p", model="m", dialect="d"), parts)
        for at_home in (False, True):
            whole = merged(blocks, record, with_others=at_home)
            same = len(whole) == len(blocks) and all(map(is_, whole, blocks))
            assert same or not lacks_nothing(blocks, record, at_home=at_home), (blocks, parts)
            whole_turns += lacks_nothing(blocks, record, at_home=at_home)
    assert whole_turns > 100


@pytest.mark.parametrize(
    ("blocks", "parts"),
    [
        ((THOUGHT, BLOCKS[3]), (PARTS[0], PARTS[3])),
        ((THOUGHT, BLOCKS[2], BLOCKS[3], BLOCKS[4]), (PARTS[0], PARTS[1], PARTS[3], PARTS[5])),
    ],
    ids=["call", "text and calls"],
)
def test_a_turn_that_a_client_gives_back_whole_lacks_nothing(
    blocks: tuple[Block, ...], parts: tuple[Part, ...]
) -> None:
    record = ReplyRecord(Origin(provider="p", platform="p", model="m", dialect="d"), parts)
    assert lacks_nothing(blocks, record, at_home=False)
    assert not lacks_nothing(blocks, record, at_home=True)


def test_calls_of_one_id_are_put_in_the_order_they_were_made_in() -> None:
    blocks, parts = (BLOCKS[4], BLOCKS[3], BLOCKS[4]), (PARTS[5], PARTS[3], PARTS[5])
    record = ReplyRecord(Origin(provider="p", platform="p", model="m", dialect="d"), parts)
    assert merged(blocks, record, with_others=False) == (BLOCKS[3], BLOCKS[4], BLOCKS[4])
    assert not lacks_nothing(blocks, record, at_home=False)
