"""What the messages of one request hold: found in one pass, and handed on to those who ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from bardo.values.blocks import Block, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Message

Messages = tuple[Message, ...]
_carried_of = attrgetter("carried")


class HistoryFacts(msgspec.Struct, frozen=True, gc=False):
    """The blocks of a conversation, the classes of them and of what stands in its tools' results, its calls, and their results."""

    messages: Messages
    blocks: tuple[Block, ...]
    parts: frozenset[type[Block]]
    calls: tuple[ToolCallBlock, ...]
    results: tuple[ToolResultBlock, ...]

    @property
    def carries_fields(self) -> bool:
        """Whether a message, a block or a part of a result carries fields of its dialect, or is a block that only its dialect knows."""
        if UnknownBlock in self.parts or _any_carry(self.messages) or _any_carry(self.blocks):
            return True
        return bool(self.results) and _any_carry([part for result in self.results for part in result.content])


def _any_carry(parts: Iterable[Message | Block]) -> bool:
    # No step of Python for each.
    carried = [*map(_carried_of, parts)]
    return carried.count(None) < len(carried)


def facts_of(messages: Messages, known: HistoryFacts | None = None) -> HistoryFacts:
    """Return what a conversation holds: `known` where that is of these messages."""
    if known is not None and known.messages is messages:
        return known
    blocks = tuple([block for message in messages for block in message.blocks])
    kinds: set[type[Block]] = {*map(type, blocks)}
    calls = [block for block in blocks if type(block) is ToolCallBlock] if ToolCallBlock in kinds else ()
    results: list[ToolResultBlock] = []
    if ToolResultBlock in kinds:
        results = [block for block in blocks if type(block) is ToolResultBlock]
        kinds.update([type(part) for result in results for part in result.content])
    return HistoryFacts(messages, blocks, frozenset(kinds), tuple(calls), tuple(results))
