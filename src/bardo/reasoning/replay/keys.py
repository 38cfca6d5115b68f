"""Under which keys the reasoning of a reply is found again, whatever a client keeps of it.

A turn is known by what was said and called in it, and what stood right before; each call by its id and what it calls; opaque state by
its own bytes. Ids alone would not do: some providers number their calls, and the next conversation begins at 0 again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from bardo.values.blocks import Block, Opaque, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Message, Request

_STATEFUL = (TextBlock, ToolCallBlock, ReasoningBlock)
_encode = msgspec.json.Encoder(order="sorted").encode


def digest(*parts: str) -> str:
    """Return a short digest of texts; where one ends matters."""
    made = hashlib.blake2b(digest_size=15)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        made.update(len(raw).to_bytes(8, "big") + raw)
    return made.hexdigest()


def canonical(arguments: str) -> str:
    """Return arguments as JSON in one spelling, since clients write them anew; text that is no JSON stays."""
    try:
        return _encode(msgspec.json.decode(arguments or "{}")).decode()
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return arguments


def call_key(call: ToolCallBlock) -> str:
    """Return the key of the reply that made a call."""
    return "c" + digest(call.id, call.name, canonical(call.arguments))


def state_key(state: Opaque) -> str:
    """Return the key of the reply that held a piece of opaque state."""
    return "s" + digest(state.data)


def turn_key(before: Message | None, blocks: Iterable[Block]) -> str:
    """Return the key of a turn behind a message. Ids are left out: some dialects have none."""
    text, calls = [], []
    for block in blocks:
        if isinstance(block, TextBlock):
            text.append(block.text)
        elif isinstance(block, ToolCallBlock):
            calls += [block.name, canonical(block.arguments)]
    return "m" + digest(_said_before(before), "".join(text).strip(), *calls)


def _said_before(message: Message | None) -> str:
    if message is None:
        return ""
    results = [block.text for block in message.blocks if isinstance(block, ToolResultBlock)]
    return "\n".join([message.text, *results])


def keys_of(before: Message | None, blocks: Sequence[Block]) -> list[str]:
    """Return the keys under which one turn may be found, the surest first."""
    return [turn_key(before, blocks), *(call_key(block) for block in blocks if isinstance(block, ToolCallBlock))]


def states_of(block: Block) -> tuple[Opaque, ...]:
    """Return the opaque state of a block of any kind."""
    return block.opaque if isinstance(block, _STATEFUL) else ()


def wanted(request: Request) -> list[str]:
    """Return every key that may be needed to send a request; nothing where no model has spoken yet."""
    keys: dict[str, None] = {}
    before: Message | None = None
    for message in request.messages:
        if message.role == "assistant":
            keys |= dict.fromkeys(keys_of(before, message.blocks))
            keys |= {state_key(state): None for block in message.blocks for state in states_of(block)}
        before = message
    return list(keys)
