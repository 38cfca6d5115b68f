"""Keeps thinking from being sent after a prefix that it was not made after, to models that verify it.

The first difference is looked for before anything is sent. Where it is the order of the tools, that order is restored; otherwise the
thinking that was made after it is left out, and all thinking that follows, since that is bound to it in turn. Or the provider is asked to
drop it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.replay import Binding
from bardo.reasoning.replay.keys import states_of
from bardo.reasoning.replay.memory import ReplyRecord
from bardo.reasoning.replay.prefix import Prefix, prefix_of, prompt_length, tool_digest, up_to
from bardo.values.blocks import Block, ReasoningBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request
from bardo.values.wire import WireRequest

OnChange = Literal["restore", "drop", "drop_block"]
"""The action if a prefix has changed: restore state where possible and else drop it, only drop it, or have the provider drop it."""


class GuardedRequest(msgspec.Struct, frozen=True):
    """A request whose thinking may go out, what had to differ, and whether the provider must be asked to leave some out."""

    request: Request
    degraded: tuple[Degradation, ...] = ()
    asks: bool = False


def guard(
    request: Request, records: Mapping[int, ReplyRecord], binding: Binding, on_change: OnChange
) -> GuardedRequest:
    """Return what may be sent. `records` tells of the messages, by their place, the facts about how they were made."""
    bound = {
        place: record.prefix
        for place, record in records.items()
        if record.prefix and _bound(request.messages[place], binding)
    }
    if not bound:
        return GuardedRequest(request)
    told: tuple[Degradation, ...] = ()
    if on_change == "restore":
        request, told = _with_tools_in_order(request, bound[min(bound)])
    place, part = _first_difference(request, bound)
    if not part:
        return GuardedRequest(request, told)
    asked = f"the thinking in message {place - prompt_length(request)}, and all after it"
    why = f"the {part} is not what that thinking was made behind"
    if on_change == "drop_block":
        lost = Degradation("reasoning", asked=asked, sent="drop_block", why=why)
        return GuardedRequest(request, (*told, lost), asks=True)
    return GuardedRequest(
        _without_thinking(request, place, binding), (*told, Degradation("reasoning", asked=asked, why=why))
    )


def _first_difference(request: Request, bound: Mapping[int, Prefix]) -> tuple[int, str]:
    now, leading = prefix_of(request), prompt_length(request)
    for place in sorted(bound):
        if part := bound[place].difference(up_to(now, place - leading)):
            return place, part
    return -1, ""


def _with_tools_in_order(request: Request, records: Prefix) -> tuple[Request, tuple[Degradation, ...]]:
    """Return the request with the same tools in the order that the thinking was made behind."""
    by_digest = {tool_digest(tool): tool for tool in request.tools}
    now = tuple(by_digest)
    if now == records.tools or len(now) != len(request.tools) or sorted(now) != sorted(records.tools):
        return request, ()
    why = "the thinking so far is bound to that order"
    told = Degradation("tools", asked="another order than before", sent="the order of before", why=why)
    return msgspec.structs.replace(request, tools=tuple(by_digest[digest] for digest in records.tools)), (told,)


def _without_thinking(request: Request, begin: int, binding: Binding) -> Request:
    messages = (
        msgspec.structs.replace(message, blocks=tuple(part for part in message.blocks if not _is_bound(part, binding)))
        if place >= begin and message.role == "assistant"
        else message
        for place, message in enumerate(request.messages)
    )
    return msgspec.structs.replace(request, messages=tuple(messages))


def _bound(message: Message, binding: Binding) -> bool:
    return any(_is_bound(block, binding) for block in message.blocks)


def _is_bound(block: Block, binding: Binding) -> bool:
    return isinstance(block, ReasoningBlock) and any(state.format == binding.format for state in states_of(block))


def amended(wire: WireRequest, binding: Binding) -> WireRequest:
    """Return the request with the fields and headers that `binding` asks by."""
    body = merge_fields(merge_fields(binding.defaults, msgspec.json.decode(wire.body)), binding.ask)
    return msgspec.structs.replace(
        wire, body=msgspec.json.encode(body), headers=_headers(wire.headers, binding.headers)
    )


def _headers(held: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    headers = dict(held)
    for name, value in asked.items():
        named = [item.strip() for item in headers.get(name, "").split(",") if item.strip()]
        headers[name] = ",".join(dict.fromkeys([*named, value]))
    return headers
