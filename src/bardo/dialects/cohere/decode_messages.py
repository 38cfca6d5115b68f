"""The messages of a Cohere request to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bardo.dialects.cohere.constants import NAME, PLAN, THINKING
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.sealing import unseal
from bardo.dialects.wire import without, write_json
from bardo.values.blocks import (
    Block,
    Carried,
    ImageBlock,
    Opaque,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}
_READ = ("role", "content", "tool_plan", "tool_calls", "tool_call_id")


def read_messages(messages: list[Any]) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    names: dict[str, str] = {}
    return tuple(
        _message(take(one, dict, f"messages[{place}]"), f"messages[{place}].", names)
        for place, one in enumerate(messages)
    )


def _message(fields: dict[str, Any], at: str, names: dict[str, str]) -> Message:
    wire_role = required(fields, "role", str, at)
    role = _ROLES.get(wire_role)
    if role is None:
        raise InvalidRequest(f"{at}role is {wire_role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    carried = _carried_fields(without(fields, *_READ))
    if wire_role == "tool":
        call_id = required(fields, "tool_call_id", str, at)
        content = tuple(_content(fields, at, _plain))
        return Message(role, (ToolResultBlock(call_id=call_id, name=names.get(call_id, ""), content=content),), carried)
    blocks: list[Block] = list(_content(fields, at, _block))
    if wire_role == "assistant":
        blocks = _with_plan(blocks, optional(fields, "tool_plan", str, at) or "")
        blocks += _calls(fields, at, names)
    return Message(role, tuple(blocks), carried)


def _with_plan(blocks: list[Block], plan: str) -> list[Block]:
    """Put the plan where a reply has it: behind the thinking, before what is said."""
    if not plan:
        return blocks
    place = next((n for n, block in enumerate(blocks) if not isinstance(block, ReasoningBlock)), len(blocks))
    return [*blocks[:place], ReasoningBlock(text=plan, format=PLAN), *blocks[place:]]


def _content(fields: dict[str, Any], at: str, read: Callable[[dict[str, Any], str], Any]) -> list[Any]:
    content = optional(fields, "content", (str, list), at)
    if isinstance(content, str):
        return [TextBlock(content)] if content else []
    return [read(take(item, dict, f"{at}content[{n}]"), f"{at}content[{n}].") for n, item in enumerate(content or ())]


def _block(item: dict[str, Any], at: str) -> Block:
    if required(item, "type", str, at) != "thinking":
        return _plain(item, at)
    text = required(item, "thinking", str, at)
    states, rest = _unseal(without(item, "type", "thinking"))
    form = states[0].format if states else THINKING
    return ReasoningBlock(text=text, format=form, opaque=states, carried=_carried_fields(rest))


def _plain(item: dict[str, Any], at: str) -> TextBlock | ImageBlock | UnknownBlock:
    """Return content that may stand in a tool's result too."""
    kind = required(item, "type", str, at)
    if kind == "text":
        states, rest = _unseal(without(item, "type", "text"))
        return TextBlock(required(item, "text", str, at), states, _carried_fields(rest))
    if kind == "image_url":
        return _image(item, at)
    if kind == "document":
        return _document(item)
    return UnknownBlock(NAME, item)


def _document(item: dict[str, Any]) -> TextBlock | UnknownBlock:
    """Return a document as text for other dialects, which goes back to Cohere as it was; one without data stays unknown."""
    document = item.get("document")
    data = document.get("data") if isinstance(document, dict) else document
    if not isinstance(data, str | dict) or not data:
        return UnknownBlock(NAME, item)
    text = data if isinstance(data, str) else write_json(data).decode()
    return TextBlock(text, carried=_carried_fields(without(item, "type")))


def _image(item: dict[str, Any], at: str) -> ImageBlock:
    image = required(item, "image_url", dict, at)
    url = required(image, "url", str, f"{at}image_url.")
    detail = optional(image, "detail", str, f"{at}image_url.") or ""
    carried = _carried_fields(without(item, "type", "image_url"))
    head, comma, data = url.partition(";base64,")
    if head.startswith("data:") and comma:
        return ImageBlock(media_type=head.removeprefix("data:"), data=data, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _calls(fields: dict[str, Any], at: str, names: dict[str, str]) -> list[Block]:
    given = optional(fields, "tool_calls", list, at) or []
    calls = [_call(take(one, dict, f"{at}tool_calls[{n}]"), f"{at}tool_calls[{n}].") for n, one in enumerate(given)]
    names |= {call.id: call.name for call in calls}
    return list(calls)


def _call(call: dict[str, Any], at: str) -> ToolCallBlock:
    function = required(call, "function", dict, at)
    states, rest = _unseal(without(call, "id", "type", "function"))
    more = without(function, "name", "arguments")
    return ToolCallBlock(
        id=required(call, "id", str, at),
        name=required(function, "name", str, f"{at}function."),
        arguments=optional(function, "arguments", str, f"{at}function.") or "",
        opaque=states,
        carried=_carried_fields({**rest, **({"function": more} if more else {})}),
    )


def _unseal(fields: dict[str, Any]) -> tuple[tuple[Opaque, ...], dict[str, Any]]:
    """Return the opaque state that bardo sealed, and the other fields."""
    signature = fields.get("signature")
    states = unseal(signature) if isinstance(signature, str) else None
    return ((), fields) if states is None else (states, without(fields, "signature"))


def _carried_fields(fields: dict[str, Any]) -> Carried | None:
    return Carried(NAME, fields) if fields else None
