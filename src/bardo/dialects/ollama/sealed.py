"""Opaque state in a dialect without a place for it: one `signature` beside the message's content.

A client that sends the message back as it came returns the state of other providers with it. The seal says of which block each state is:
of a stretch of the thinking, of a call by its place, or of the text. Signatures of others stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bardo.dialects.ollama.wire import FORMAT
from bardo.dialects.shared.states import seal, unseal
from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock

_OWNER = "bardo-block"


class BlockStates(msgspec.Struct, frozen=True):
    """The states of one block, and which one it is: `thinking:begin:end`, `call:place` or `text`."""

    owner: str
    states: tuple[Opaque, ...] = ()


def stretch(begin: int, end: int, states: Iterable[Opaque] = ()) -> BlockStates:
    """Return a stretch of the message's thinking with its states."""
    return BlockStates(f"thinking:{begin}:{end}", tuple(states))


def seal_owned(owned: Sequence[BlockStates]) -> str:
    """Return the signature, "" where there is no state at all."""
    if not any(owner.states for owner in owned):
        return ""
    return seal([state for owner in owned for state in (Opaque("id", owner.owner, _OWNER), *owner.states)])


def open_signature(signature: str) -> list[BlockStates]:
    """Return what `seal_owned` put in; nothing where the signature is somebody's own."""
    owners: list[BlockStates] = []
    for state in unseal(signature) or ():
        if state.format == _OWNER:
            owners.append(BlockStates(state.data))
        elif owners:
            owners[-1] = BlockStates(owners[-1].owner, (*owners[-1].states, state))
    return owners


def restore(thinking: str, text: list[Block], calls: list[Block], owned: Sequence[BlockStates]) -> list[Block]:
    """Return the blocks of a message with their states. Thinking that was changed has none: a signature is of the exact text."""
    held = {owner.owner: owner.states for owner in owned}
    calls = [_with(block, held.get(f"call:{place}", ())) for place, block in enumerate(calls)]
    if "text" in held:
        text = [_with(block, held["text"]) for block in text[-1:] or [TextBlock("")]]
    return [*_thoughts(thinking, [owner for owner in owned if owner.owner.startswith("thinking:")]), *text, *calls]


def _thoughts(thinking: str, owned: Sequence[BlockStates]) -> list[Block]:
    blocks: list[Block] = []
    end = 0
    try:
        for owner in owned:
            begin, end = (int(edge) for edge in owner.owner.split(":")[1:])
            blocks.append(_reasoning_block(thinking[begin:end], owner.states))
    except ValueError:
        blocks.clear()
    if blocks and end == len(thinking):
        return blocks
    return [ReasoningBlock(text=thinking, format=FORMAT)] if thinking else []


def _reasoning_block(text: str, states: tuple[Opaque, ...]) -> ReasoningBlock:
    return ReasoningBlock(text=text, format=states[0].format if states else FORMAT, opaque=states)


def _with(block: Block, states: tuple[Opaque, ...]) -> Block:
    held = isinstance(block, TextBlock | ToolCallBlock) and states
    return msgspec.structs.replace(block, opaque=states) if held else block
