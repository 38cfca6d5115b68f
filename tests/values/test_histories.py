"""What a history holds is found once, and told of no other history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.values.blocks import Block, Carried, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Message, facts_of

MARK = Carried("anthropic_messages", {"cache_control": {"type": "ephemeral"}})
CALL = ToolCallBlock(id="a", name="f")
RESULT = ToolResultBlock(call_id="a", content=(TextBlock("4"), ImageBlock(url="http://x/a.png")))
PLAIN = (Message("user", (TextBlock("Hi"),)), Message("assistant", (CALL,)), Message("user", (RESULT,)))


def test_the_calls_the_results_and_the_kinds_of_all_parts_are_found() -> None:
    facts = facts_of(PLAIN)
    assert (facts.calls, facts.results) == ((CALL,), (RESULT,))
    assert facts.parts == {TextBlock, ToolCallBlock, ToolResultBlock, ImageBlock}


def test_facts_of_other_messages_are_not_taken_for_those_at_hand() -> None:
    facts = facts_of(PLAIN)
    assert facts_of(PLAIN, facts) is facts
    assert facts_of(PLAIN[:1], facts).calls == ()


def marked(block: Any) -> Block:
    held: Block = msgspec.structs.replace(block, carried=MARK)
    return held


@pytest.mark.parametrize(
    "messages",
    [
        (*PLAIN[:2], msgspec.structs.replace(PLAIN[2], carried=MARK)),
        (*PLAIN[:1], Message("assistant", (marked(CALL),)), PLAIN[2]),
        (*PLAIN[:2], Message("user", (msgspec.structs.replace(RESULT, content=(marked(TextBlock("4")),)),))),
        (*PLAIN, Message("user", (UnknownBlock("anthropic_messages", {"type": "odd"}),))),
    ],
    ids=["a message", "a block", "a part of a result", "a block of one dialect alone"],
)
def test_fields_of_a_dialect_are_found_wherever_they_stand(messages: tuple[Message, ...]) -> None:
    assert facts_of(messages).carries_fields
    assert not facts_of(PLAIN).carries_fields
