"""Turns that a client does not see, as they are kept for its next request."""

from __future__ import annotations

import msgspec

from bardo.values.blocks import Block, Opaque, Origin, ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.request import Message


def with_origin(turn: Message, origin: Origin) -> Message:
    """Return a turn whose opaque states say where they were made, so that only those who can read them get them back."""
    return msgspec.structs.replace(turn, blocks=tuple([_stamped(block, origin) for block in turn.blocks]))


def _stamped(block: Block, origin: Origin) -> Block:
    if not isinstance(block, TextBlock | ReasoningBlock | ToolCallBlock) or not block.opaque:
        return block
    return msgspec.structs.replace(block, opaque=tuple([_marked(state, origin) for state in block.opaque]))


def _marked(state: Opaque, origin: Origin) -> Opaque:
    return state if state.origin is not None else msgspec.structs.replace(state, origin=origin)
