"""Opaque state of a tool call or of text, in dialects that have no field for it: it travels in a thinking block of its own.

The block names what its state belongs to: the id of a call, or which text. Clients move such blocks (Claude Code puts all
thinking before the calls), so a call is looked for in the whole message, before the block and behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.dialects.signed_blocks import AFTER, EMPTY, NEXT
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock


class Carrier(msgspec.Struct, frozen=True):
    """State on its way back. `thinking` is what its block is read as where the owner is gone."""

    states: tuple[Opaque, ...]
    owner: str
    thinking: ReasoningBlock


def settled(blocks: Sequence[Block | Carrier]) -> tuple[Block, ...]:
    """Return the blocks of a message, with the state of its carriers given back."""
    if not any(isinstance(block, Carrier) for block in blocks):
        return tuple(block for block in blocks if not isinstance(block, Carrier))
    blocks = _texts_with_state(blocks)
    calls = {block.id for block in blocks if isinstance(block, ToolCallBlock)}
    owned: dict[str, tuple[Opaque, ...]] = {}
    for block in blocks:
        if isinstance(block, Carrier) and block.owner in calls:
            owned[block.owner] = (*owned.get(block.owner, ()), *block.states)
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolCallBlock) and block.id in owned:
            found.append(msgspec.structs.replace(block, opaque=(*block.opaque, *owned.pop(block.id))))
        elif not isinstance(block, Carrier):
            found.append(block)
        elif not block.owner:
            # Clients leave out text that is empty.
            last = found.pop() if found and isinstance(found[-1], TextBlock) else TextBlock("")
            assert isinstance(last, TextBlock)
            found.append(msgspec.structs.replace(last, opaque=(*last.opaque, *block.states)))
        elif block.owner not in calls:
            found.append(block.thinking)
    return tuple(found)


def _texts_with_state(blocks: Sequence[Block | Carrier]) -> list[Block | Carrier]:
    """Return the texts behind their carriers the state, and make the empty texts that clients leave out."""
    found: list[Block | Carrier] = []
    following: tuple[Opaque, ...] = ()
    behind: list[TextBlock] = []
    for block in blocks:
        if isinstance(block, Carrier) and block.owner in (NEXT, AFTER, EMPTY):
            if block.owner == NEXT:
                following = (*following, *block.states)
            else:
                (behind if block.owner == AFTER else found).append(TextBlock("", block.states))
        elif isinstance(block, TextBlock):
            found += [msgspec.structs.replace(block, opaque=(*block.opaque, *following)), *behind]
            following, behind = (), []
        else:
            found.append(block)
    return [*found, *([TextBlock("", following)] if following else ()), *behind]
