"""Results of tools that a client sent twice: a call has one result, and providers refuse a second one.

Only what is the same is left out. Where two results of one call differ, what the client meant is not known.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from bardo.values.blocks import Block, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.histories import Messages, fold_history
from bardo.values.request import Message, Request

_REPEATED = "results.repeated"
_WHY = "the same result of this call stands before it, and a call has one result"


class _Repeated(msgspec.Struct, frozen=True):
    """The blocks to leave out, by the place of their message and their own; and the results since the model last spoke."""

    places: tuple[tuple[int, int], ...] = ()
    since: tuple[ToolResultBlock, ...] = ()


def without_repeated_results(request: Request) -> Request:
    """Return the request without results that stand in it twice, which is reported."""
    found = fold_history(request.messages, _REPEATED, None, _Repeated(), _with_repeated)
    if not found.places:
        return request
    dropped: dict[int, set[int]] = {}
    for place, at in found.places:
        dropped.setdefault(place, set()).add(at)
    messages = [_without(message, dropped.get(place, ())) for place, message in enumerate(request.messages)]
    place, at = found.places[0]
    twice = request.messages[place].blocks[at]
    named = (twice.call_id or twice.name) if isinstance(twice, ToolResultBlock) else ""
    lost = Degradation("history.result_twice", asked=named, sent="once", why=_WHY)
    return msgspec.structs.replace(
        request,
        messages=tuple(message for message in messages if message is not None),
        body=None,
        body_bytes=b"",
        degraded=(*request.degraded, lost),
    )


def _with_repeated(found: _Repeated, messages: Messages, begin: int) -> _Repeated:
    places, since = [*found.places], [*found.since]
    by_call = {block.call_id: block for block in since}
    by_text = {(block.name, block.text): block for block in since}
    for place in range(begin, len(messages)):
        message = messages[place]
        if message.role == "assistant":
            since.clear()
            by_call.clear()
            by_text.clear()
        elif ToolResultBlock in message.kinds:
            for at, block in enumerate(message.blocks):
                if not isinstance(block, ToolResultBlock):
                    continue
                # A result that names no call answers none that is open: its tool has been answered.
                earlier = by_call.get(block.call_id) if block.call_id else by_text.get((block.name, block.text))
                if earlier is not None and (earlier.content, earlier.is_error) == (block.content, block.is_error):
                    places.append((place, at))
                    continue
                since.append(block)
                by_call[block.call_id] = by_text[block.name, block.text] = block
    return _Repeated(tuple(places), tuple(since))


def _without(message: Message, dropped: Collection[int]) -> Message | None:
    """Return a message without some blocks; None where nothing else was in it."""
    if not dropped:
        return message
    blocks: tuple[Block, ...] = tuple(block for at, block in enumerate(message.blocks) if at not in dropped)
    return msgspec.structs.replace(message, blocks=blocks) if blocks else None
