"""The order of thinking, text and calls in a message, whose fields say it only for the thinking."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.dialects.openai_chat.details import Placed
from bardo.values.blocks import Block, TextBlock


def interleaved(thoughts: Sequence[Placed], said: Sequence[Block], calls: Sequence[Block]) -> list[Block]:
    """Return the blocks of a message, each stretch of thinking behind as much text and as many calls as it says."""
    blocks: list[Block] = []
    rest, characters, called = list(said), 0, 0
    for one in thoughts:
        before, rest = _cut(rest, one.characters - characters)
        blocks += before
        characters += sum(_length(block) for block in before)
        upto = min(max(called, one.calls), len(calls))
        blocks += calls[called:upto]
        called = upto
        blocks.append(one.block)
    return [*blocks, *rest, *calls[called:]]


def _cut(blocks: Sequence[Block], characters: int) -> tuple[list[Block], list[Block]]:
    """Return the blocks that hold the first characters of the text, and the others. Text with state or fields is not cut."""
    first: list[Block] = []
    for place, block in enumerate(blocks):
        if characters <= 0:
            return first, list(blocks[place:])
        length = _length(block)
        if length > characters and isinstance(block, TextBlock) and not block.opaque and block.carried is None:
            first.append(TextBlock(block.text[:characters]))
            return first, [TextBlock(block.text[characters:]), *blocks[place + 1 :]]
        first.append(block)
        characters -= length
    return first, []


def _length(block: Block) -> int:
    return len(block.text) if isinstance(block, TextBlock) else 0
