"""What of a reply is kept for the turns to come: opaque state always, readable thinking where tools are being called.

Providers ask for plain thinking back in the turns of a tool loop only; a conversation without tools costs nothing here. Of a reply with
calls and without thinking, which another conversation's reply may be mistaken for, it is kept that there is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bardo.catalog.replay import Reader, ReplayRules, builtin_replay
from bardo.reasoning.replay.call_ids import DIALECTS_WITHOUT_IDS, is_globally_unique, stated_id
from bardo.reasoning.replay.kept import Called, Kept, Memory, Other, Part, Said, Thought
from bardo.reasoning.replay.keys import digest, reply_keys, state_key
from bardo.reasoning.replay.prefix import Prefix, prefix_of
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import Request
from bardo.values.response import Response


def remember(
    response: Response,
    request: Request,
    sent: Request,
    reader: Reader,
    rules: ReplayRules | None = None,
    fields: Mapping[int, dict[str, Any]] | None = None,
) -> list[Memory]:
    """Return what is kept of each choice of a reply; nothing for most.

    `request` is the client's, `sent` what the provider got: with what was restored. `reader` made the reply. `fields` are those that
    the provider takes back unmodified, by choice.
    """
    known = rules or builtin_replay()
    choices = enumerate((response, *response.alternatives))
    worth = [
        (choice, one.blocks)
        for choice, one in choices
        if _worth(one.blocks, request) or _mistakable(one.blocks, request)
    ]
    if not worth or response.error is not None:
        return []
    prefix = prefix_of(sent) if known.binding(reader) is not None else None
    return [
        _memory(blocks, choice, request, reader, prefix, (fields or {}).get(choice, {})) for choice, blocks in worth
    ]


def _worth(blocks: Sequence[ReplyBlock], request: Request) -> bool:
    calls = thinks = False
    for block in blocks:
        if isinstance(block, ReasoningBlock | TextBlock | ToolCallBlock) and block.opaque:
            return True
        calls = calls or isinstance(block, ToolCallBlock)
        thinks = thinks or isinstance(block, ReasoningBlock)
    return thinks and (calls or _answers_tools(request))


def _mistakable(blocks: Sequence[ReplyBlock], request: Request) -> bool:
    """Whether a reply without thinking has keys that a reply of another conversation may have too: no unique id is in them."""
    calls = [block for block in blocks if isinstance(block, ToolCallBlock)]
    if not calls and not _answers_tools(request):
        return False
    if calls and request.dialect in DIALECTS_WITHOUT_IDS:
        return True
    said = [*calls, *(one for message in request.messages for one in message.blocks if isinstance(one, ToolCallBlock))]
    return not any(is_globally_unique(stated_id(call), call.name) for call in said)


def _answers_tools(request: Request) -> bool:
    last = request.messages[-1:]
    return any(isinstance(block, ToolResultBlock) for message in last for block in message.blocks)


def _memory(
    blocks: Sequence[ReplyBlock],
    choice: int,
    request: Request,
    reader: Reader,
    prefix: Prefix | None,
    fields: dict[str, Any],
) -> Memory:
    parts = [part for block in blocks if (part := _part(block)) is not None] if _worth(blocks, request) else []
    kept = Kept(reader.origin(prefix.whole if prefix else ""), tuple(parts), prefix, fields)
    keys = [*reply_keys(request, blocks), *(state_key(state) for state in kept.states)]
    return Memory(tuple(dict.fromkeys(keys)), kept, choice)


def _part(block: ReplyBlock) -> Part | None:
    match block:
        case ReasoningBlock():
            return Thought(msgspec.structs.replace(block, opaque=_unstamped(block.opaque)))
        case TextBlock():
            return Said(len(block.text), _unstamped(block.opaque), digest(block.text))
        case ToolCallBlock():
            return Called(block.id, _unstamped(block.opaque))
        case UnknownBlock():
            return Other(block)
        case _:
            return None


def _unstamped(states: tuple[Opaque, ...]) -> tuple[Opaque, ...]:
    """Leave the stamps out: what is kept has one for all."""
    return tuple(msgspec.structs.replace(state, origin=None) for state in states)
