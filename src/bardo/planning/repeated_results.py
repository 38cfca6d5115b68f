"""Results of tools that a client sent twice: a call has one result, and providers refuse a second one.

Only what is the same is left out. Where two results of one call differ, what the client meant is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from bardo.values.blocks import Block, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request

_WHY = "the same result of this call stands before it, and a call has one result"


def without_repeated_results(request: Request) -> Request:
    """Return the request without results that stand in it twice, which is reported."""
    found = _repeated(request.messages)
    if not found:
        return request
    messages = [_without(message, found.get(place, ())) for place, message in enumerate(request.messages)]
    place, places = next(iter(found.items()))
    twice = request.messages[place].blocks[places[0]]
    named = (twice.call_id or twice.name) if isinstance(twice, ToolResultBlock) else ""
    lost = Degradation("history.result_twice", asked=named, sent="once", why=_WHY)
    return msgspec.structs.replace(
        request,
        messages=tuple(message for message in messages if message is not None),
        body=None,
        body_bytes=b"",
        degraded=(*request.degraded, lost),
    )


def _repeated(messages: Sequence[Message]) -> dict[int, list[int]]:
    """Return the places of the blocks to leave out, by the place of their message."""
    found: dict[int, list[int]] = {}
    named = [block.call_id for message in messages for block in message.blocks if type(block) is ToolResultBlock]
    if len({*named}) == len(named) and "" not in named:
        return found
    # The results since the model last spoke, by their calls; those that name no call by their tool and text.
    by_call: dict[str, ToolResultBlock] = {}
    by_text: dict[tuple[str, str], ToolResultBlock] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant":
            by_call, by_text = {}, {}
            continue
        for at, block in enumerate(message.blocks):
            if type(block) is not ToolResultBlock:
                continue
            # A result that names no call answers none that is open: its tool has been answered.
            earlier = by_call.get(block.call_id) if block.call_id else by_text.get((block.name, block.text))
            if earlier is not None and (earlier.content, earlier.is_error) == (block.content, block.is_error):
                found.setdefault(place, []).append(at)
                continue
            by_call[block.call_id] = by_text[block.name, block.text] = block
    return found


def _without(message: Message, dropped: Collection[int]) -> Message | None:
    """Return a message without some blocks; None where nothing else was in it."""
    if not dropped:
        return message
    blocks: tuple[Block, ...] = tuple(block for at, block in enumerate(message.blocks) if at not in dropped)
    return msgspec.structs.replace(message, blocks=blocks) if blocks else None
