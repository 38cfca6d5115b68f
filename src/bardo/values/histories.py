"""What the messages of one request hold: found in one pass, and handed on to those who ask for it."""

from __future__ import annotations

import msgspec

from bardo.values.blocks import Block, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message

Messages = tuple[Message, ...]


class HistoryFacts(msgspec.Struct, frozen=True, gc=False):
    """The classes of all blocks of a conversation and of what stands in its tools' results, its calls, and their results."""

    parts: frozenset[type[Block]]
    calls: tuple[ToolCallBlock, ...]
    results: tuple[ToolResultBlock, ...]


def facts_of(messages: Messages) -> HistoryFacts:
    """Return what a conversation holds."""
    blocks = [block for message in messages for block in message.blocks]
    kinds: set[type[Block]] = {*map(type, blocks)}
    calls = [block for block in blocks if type(block) is ToolCallBlock] if ToolCallBlock in kinds else ()
    results: list[ToolResultBlock] = []
    if ToolResultBlock in kinds:
        results = [block for block in blocks if type(block) is ToolResultBlock]
        kinds.update([type(part) for result in results for part in result.content])
    return HistoryFacts(frozenset(kinds), tuple(calls), tuple(results))


def parts_of(messages: Messages) -> frozenset[type[Block]]:
    """Return the classes of all blocks of a conversation, and of what stands in results of tools."""
    return facts_of(messages).parts
