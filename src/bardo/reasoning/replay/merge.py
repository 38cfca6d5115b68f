"""Puts what was kept of a reply back into the message a client made of it, each piece where it stood.

A client may have joined the texts, written the arguments anew or given calls other ids. Its own text and calls stay as they are; where a
text is not the one that was kept, its state is left out, because it would belong to other words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bardo.reasoning.replay.kept import Called, Kept, Said, Thought
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock


def merged(blocks: Sequence[Block], kept: Kept) -> tuple[Block, ...]:
    """Return the blocks of a message with the reasoning and the state of `kept`; thinking the client kept gives way to it."""
    texts = _texts([block for block in blocks if isinstance(block, TextBlock)], kept)
    calls = _calls([block for block in blocks if isinstance(block, ToolCallBlock)], kept)
    placed: list[Block] = []
    for part in kept.parts:
        match part:
            case Thought(block=block):
                placed.append(block)
            case Said():
                placed += texts.pop(0) if texts else ()
            case Called(opaque=opaque):
                call = next(calls, None)
                placed += [] if call is None else [_with(call, opaque)]
    others = [block for block in blocks if not isinstance(block, TextBlock | ToolCallBlock | ReasoningBlock)]
    placed += [*others, *(text for left in texts for text in left), *calls]
    return tuple(placed)


def _texts(texts: list[TextBlock], kept: Kept) -> list[list[Block]]:
    """Return the client's texts, cut as they were kept; where they are other texts, all of them in one place."""
    said = [part for part in kept.parts if isinstance(part, Said)]
    if [len(text.text) for text in texts] == [part.length for part in said]:
        return [[_with(text, part.opaque)] for text, part in zip(texts, said, strict=True)]
    whole = "".join(text.text for text in texts)
    if len(whole) == sum(part.length for part in said) and all(text.carried is None for text in texts):
        return [[piece] for piece in _cut(whole, said)]
    return [list(texts)] if texts else []


def _cut(whole: str, said: Sequence[Said]) -> Iterator[TextBlock]:
    begin = 0
    for part in said:
        yield TextBlock(whole[begin : begin + part.length], part.opaque)
        begin += part.length


def _calls(calls: list[ToolCallBlock], kept: Kept) -> Iterator[ToolCallBlock]:
    """Return the client's calls in the order they were made in: by id, else as they come."""
    order = {part.id: place for place, part in enumerate(kept.parts) if isinstance(part, Called)}
    if all(call.id in order for call in calls):
        calls = sorted(calls, key=lambda call: order[call.id])
    return iter(calls)


def _with(block: TextBlock | ToolCallBlock, opaque: tuple[Opaque, ...]) -> Block:
    return msgspec.structs.replace(block, opaque=opaque) if opaque and not block.opaque else block
