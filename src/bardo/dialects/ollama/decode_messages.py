"""The messages of an Ollama request to ours.

Calls may have no ids, and results may name only the tool: then they are numbered through the conversation, and a result answers the first
open call of its tool. The numbers stay the same as the conversation grows.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.ollama.constants import NAME, text_of
from bardo.dialects.ollama.sealed import open_signature, restore
from bardo.dialects.wire import without
from bardo.values.blocks import Block, Carried, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}
_READ = ("role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id")
# How base64 of a picture begins.
_PICTURES = {"/9j/": "image/jpeg", "iVBORw0KGgo": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def read_messages(messages: list[Any]) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    calls = _Calls()
    return tuple(
        _message(take(one, dict, f"messages[{place}]"), f"messages[{place}].", calls)
        for place, one in enumerate(messages)
    )


class _Calls:
    """The calls of the conversation so far that were not answered."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[str, str]] = []
        self._names: dict[str, str] = {}

    def add(self, name: str, requested_id: str | None) -> str:
        """Note a call; return its id, or the number it gets."""
        call_id = requested_id or f"call_{self._count}"
        self._count += 1
        self._open.append((call_id, name))
        self._names[call_id] = name
        return call_id

    def answer(self, name: str, requested_id: str | None) -> tuple[str, str]:
        """Return the id and the name of the call that a result answers."""
        fitting = [one for one in self._open if one[0] == requested_id] if requested_id else []
        fitting = fitting or ([] if requested_id else [one for one in self._open if one[1] == name or not name])
        fitting = fitting or ([] if requested_id else self._open[:1])
        if not fitting:
            return requested_id or "", name or self._names.get(requested_id or "", "")
        self._open.remove(fitting[0])
        return fitting[0][0], name or fitting[0][1]


def _message(fields: dict[str, Any], at: str, calls: _Calls) -> Message:
    wire_role = required(fields, "role", str, at).lower()
    role = _ROLES.get(wire_role)
    if role is None:
        raise InvalidRequest(f"{at}role is {wire_role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    content = optional(fields, "content", str, at) or ""
    images = _images(fields, at)
    if wire_role == "tool":
        return Message(role, (_result(fields, content, images, at, calls),), _carried_fields(without(fields, *_READ)))
    text: list[Block] = [TextBlock(content)] if content else []
    if wire_role != "assistant":
        return Message(role, (*text, *images), _carried_fields(without(fields, *_READ)))
    owned = open_signature(optional(fields, "signature", str, at) or "")
    thinking = optional(fields, "thinking", str, at) or ""
    blocks = restore(thinking, [*text, *images], _tool_calls(fields, at, calls), owned)
    rest = without(fields, *_READ, *(("signature",) if owned else ()))
    return Message(role, tuple(blocks), _carried_fields(rest))


def _images(fields: dict[str, Any], at: str) -> list[ImageBlock]:
    pictures = optional(fields, "images", list, at) or []
    return [_image(take(one, str, f"{at}images[{place}]")) for place, one in enumerate(pictures)]


def _image(data: str) -> ImageBlock:
    kind = next((kind for head, kind in _PICTURES.items() if data.startswith(head)), "")
    return ImageBlock(media_type=kind, data=data)


def _tool_calls(fields: dict[str, Any], at: str, calls: _Calls) -> list[Block]:
    requested_id = optional(fields, "tool_calls", list, at) or []
    return [
        _call(take(one, dict, f"{at}tool_calls[{n}]"), f"{at}tool_calls[{n}].", calls)
        for n, one in enumerate(requested_id)
    ]


def _call(call: dict[str, Any], at: str, calls: _Calls) -> ToolCallBlock:
    function = required(call, "function", dict, at)
    name = required(function, "name", str, f"{at}function.")
    requested_id = optional(call, "id", str, at) or None
    more = without(function, "name", "arguments")
    carried: dict[str, Any] = {**({"function": more} if more else {}), **without(call, "id", "function")}
    if requested_id is None:
        carried["id"] = None
    return ToolCallBlock(
        id=calls.add(name, requested_id),
        name=name,
        arguments=text_of(optional(function, "arguments", dict, f"{at}function.") or {}),
        carried=Carried(NAME, carried),
    )


def _result(fields: dict[str, Any], content: str, images: list[ImageBlock], at: str, calls: _Calls) -> ToolResultBlock:
    name = optional(fields, "tool_name", str, at) or ""
    requested_id = optional(fields, "tool_call_id", str, at) or None
    call_id, name = calls.answer(name, requested_id)
    text = [TextBlock(content)] if content else []
    # A field that the client left out is left out where the result is sent on in this dialect.
    carried = None if requested_id else Carried(NAME, {"tool_call_id": None})
    return ToolResultBlock(call_id=call_id, name=name, content=(*text, *images), carried=carried)


def _carried_fields(fields: dict[str, Any]) -> Carried | None:
    return Carried(NAME, fields) if fields else None
