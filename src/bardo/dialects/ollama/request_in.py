"""An Ollama chat request, as a client sends it, to a Request.

The messages of an Ollama request to ours.

Calls may have no ids, and results may name only the tool: then they are numbered through the conversation, and a result answers the first
open call of its tool. The numbers stay the same as the conversation grows.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.ollama import wire
from bardo.dialects.ollama.sealed import open_signature, restore
from bardo.dialects.ollama.wire import NAME, SAMPLING, text_of
from bardo.dialects.shared.control_fields import decode_sampling, whole_number
from bardo.dialects.shared.json_values import decode_object, optional, required, take, without
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.structs import carried_fields, read
from bardo.dialects.shared.tools import read_tool
from bardo.values.blocks import Block, Carried, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Message, OutputFormat, ReasoningPolicy, Request, Role
from bardo.values.wire import Arrival

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}
# How base64 of a picture begins.
_PICTURES = {"/9j/": "image/jpeg", "iVBORw0KGgo": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def read_messages(messages: list[Any]) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    calls = _Calls()
    return tuple(
        [
            _message(read(one, wire.Message, f"messages[{place}]"), f"messages[{place}].", calls)
            for place, one in enumerate(messages)
        ]
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


def _message(message: wire.Message, at: str, calls: _Calls) -> Message:
    wire_role = message.role.lower()
    role = _ROLES.get(wire_role)
    if role is None:
        raise InvalidRequest(f"{at}role is {wire_role!r}", hint=f"use {', '.join(_ROLES)}", param=f"{at}role")
    images = [_image(picture) for picture in message.images or ()]
    carried = carried_fields(message)
    if wire_role == "tool":
        return Message(role, (_result(message, images, calls),), _carried(carried))
    text: list[Block] = [TextBlock(message.content)] if message.content else []
    if wire_role != "assistant":
        return Message(role, (*text, *images), _carried(carried))
    signature = message.signature
    owned = open_signature(take("" if signature is None else signature, str, f"{at}signature"))
    called: list[Block] = [_call(call, calls) for call in message.tool_calls or ()]
    blocks = restore(message.thinking or "", [*text, *images], called, owned)
    if owned and carried is not None:
        carried = without(carried, "signature")
    return Message(role, tuple(blocks), _carried(carried))


def _image(data: str) -> ImageBlock:
    kind = next((kind for head, kind in _PICTURES.items() if data.startswith(head)), "")
    return ImageBlock(media_type=kind, data=data)


def _call(call: wire.Call, calls: _Calls) -> ToolCallBlock:
    function, requested_id = call.function, call.id or None
    more = carried_fields(function)
    carried: dict[str, Any] = {**({"function": more} if more else {}), **(carried_fields(call) or {})}
    if requested_id is None:
        carried["id"] = None
    return ToolCallBlock(
        id=calls.add(function.name, requested_id),
        name=function.name,
        arguments=text_of(function.arguments or {}),
        carried=Carried(NAME, carried),
    )


def _result(message: wire.Message, images: list[ImageBlock], calls: _Calls) -> ToolResultBlock:
    requested_id = message.tool_call_id or None
    call_id, name = calls.answer(message.tool_name or "", requested_id)
    text = [TextBlock(message.content)] if message.content else []
    # A field that the client left out is left out where the result is sent on in this dialect.
    carried = None if requested_id else Carried(NAME, {"tool_call_id": None})
    return ToolResultBlock(call_id=call_id, name=name, content=(*text, *images), carried=carried)


def _carried(fields: dict[str, Any] | None) -> Carried | None:
    return Carried(NAME, fields) if fields else None


READ = frozenset(("model", "messages", "tools", "options", "format", "think", "stream", "bardo"))


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field. A stream is what is answered unless the client says no."""
    try:
        return _read(decode_object(body), body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _read(fields: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    options = optional(fields, "options", dict) or {}
    limit = whole_number(options, "num_predict", "options.")
    # Below 1 it is no limit: -1 is until the end, -2 until the context is full.
    limited = limit is not None and limit >= 1
    read = {*SAMPLING.values(), "num_predict"} if limited else {*SAMPLING.values()}
    left = {name: value for name, value in options.items() if name not in read and value is not None}
    stream = optional(fields, "stream", bool) if arrival.stream is None else arrival.stream
    return Request(
        model=arrival.model or required(fields, "model", str),
        messages=read_messages(optional(fields, "messages", list) or []),
        tools=tuple(
            read_tool(tool, f"tools[{place}]", NAME) for place, tool in enumerate(optional(fields, "tools", list) or ())
        ),
        max_output_tokens=limit if limited else None,
        sampling=decode_sampling(options, SAMPLING, "options.", one_stop=True),
        reasoning=_reasoning(fields.get("think")),
        output_format=_output_format(fields.get("format")),
        stream=stream is not False,
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in READ and value is not None}
        | ({"options": left} if left else {}),
        body={name: value for name, value in fields.items() if name != "bardo"},
        body_bytes=raw,
        options=read_options(fields),
    )


def _reasoning(think: Any) -> ReasoningPolicy | None:
    if think is None or think == "":
        return None
    value = take(think, (bool, str), "think")
    raw_fields = {"think": think}
    if isinstance(value, bool):
        return ReasoningPolicy(mode="auto" if value else "off", raw_fields=raw_fields)
    for level in EFFORTS:
        if value == level:
            return ReasoningPolicy(mode="effort", effort=level, raw_fields=raw_fields)
    raise InvalidRequest(f"think is {value!r}", hint="use true, false, low, medium, high or max", param="think")


def _output_format(wanted: Any) -> OutputFormat | None:
    if wanted is None or wanted == "":
        return None
    value = take(wanted, (str, dict), "format")
    if isinstance(value, dict):
        return OutputFormat(mode="json_schema", name="answer", schema=value)
    if value != "json":
        raise InvalidRequest(f"format is {value!r}", hint="use json or a JSON schema", param="format")
    return OutputFormat(mode="json_object")
