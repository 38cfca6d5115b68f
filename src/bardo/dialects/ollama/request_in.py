"""An Ollama chat request, as a client sends it, to a Request.

Calls may have no ids, and results may name only the tool: then they are numbered through the conversation, and a result answers the first
open call of its tool. The numbers stay the same as the conversation grows.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from bardo.dialects.ollama import wire
from bardo.dialects.ollama.sealed import open_signature, restore
from bardo.dialects.ollama.wire import NAME, SAMPLING
from bardo.dialects.shared.control_fields import decode_sampling, whole_number
from bardo.dialects.shared.json_values import JsonObject, arguments_of, decode_object, required, take, without
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.structs import carried, carried_fields, names_of, read
from bardo.values.blocks import Block, Carried, ImageBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Message, OutputFormat, ReasoningPolicy, Request, Role, Tool
from bardo.values.wire import Arrival

_READ = names_of(wire.Request)
_APART = ("model", "bardo")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field. The answer is a stream unless the client says no."""
    try:
        fields = decode_object(body)
        # Fields that are only carried are not looked at: where one is unknown, the messages need no second look.
        fields_read = {name: value for name, value in fields.items() if name in _READ}
        if arrival.stream is not None:
            fields_read.pop("stream", None)
        options: JsonObject = {}
        if isinstance(fields_read.get("options"), dict):
            options = fields_read["options"]
            fields_read["options"] = {name: value for name, value in options.items() if name in _OPTIONS}
        request = read(fields_read, wire.Request, "")
        limit = whole_number(options, "num_predict", "options.")
        # Below 1 it is no limit: -1 is until the end, -2 until the context is full.
        limited = limit is not None and limit >= 1
        left = {
            name: value
            for name, value in options.items()
            if value is not None and (name not in _OPTIONS or (name == "num_predict" and not limited))
        }
        extra = {
            name: value
            for name, value in fields.items()
            if name not in _READ and name not in _APART and value is not None
        }
        return Request(
            model=arrival.model or required(fields, "model", str),
            messages=_messages(request.messages or ()),
            tools=tuple([_tool(tool, fields["tools"][place], place) for place, tool in enumerate(request.tools or ())]),
            max_output_tokens=limit if limited else None,
            sampling=decode_sampling(options, SAMPLING, "options.", one_stop=True),
            reasoning=_reasoning(request.think) if request.think is not None and request.think != "" else None,
            output_format=_output_format(request.format)
            if request.format is not None and request.format != ""
            else None,
            stream=(request.stream if arrival.stream is None else arrival.stream) is not False,
            dialect=NAME,
            extra=extra | ({"options": left} if left else {}),
            body={name: value for name, value in fields.items() if name != "bardo"},
            body_bytes=body,
            options=read_options(fields),
        )
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


_OPTIONS = frozenset((*SAMPLING.values(), "num_predict"))


def _messages(messages: Sequence[wire.Message]) -> tuple[Message, ...]:
    calls = _Calls()
    turns: list[Message] = []
    for place, message in enumerate(messages):
        wire_role = message.role.lower()
        role = _ROLES.get(wire_role)
        if role is None:
            param = f"messages[{place}].role"
            raise InvalidRequest(f"{param} is {wire_role!r}", hint=f"use {', '.join(_ROLES)}", param=param)
        blocks: list[Block] = [TextBlock(message.content)] if message.content else []
        blocks += [_image(picture) for picture in message.images or ()]
        rest = carried(carried_fields(message, _MISPLACED[wire_role]), NAME)
        if wire_role == "tool":
            requested_id = message.tool_call_id or None
            call_id, name = calls.answer(message.tool_name or "", requested_id)
            # A field that the client left out is left out where the result is sent on in this dialect.
            unnamed = None if requested_id else Carried(NAME, {"tool_call_id": None})
            blocks = [ToolResultBlock(call_id=call_id, name=name, content=tuple(blocks), carried=unnamed)]  # type: ignore[arg-type]
        elif wire_role == "assistant":
            signature = message.signature
            owned = open_signature(take("" if signature is None else signature, str, f"messages[{place}].signature"))
            if owned and rest is not None:
                rest = carried(without(rest.fields, "signature"), NAME)
            called: list[Block] = [_call(call, calls) for call in message.tool_calls or ()]
            blocks = restore(message.thinking or "", blocks, called, owned)
        turns.append(Message(role, tuple(blocks), rest))
    return tuple(turns)


_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "user"}
_MISPLACED: dict[str, tuple[str, ...]] = dict.fromkeys(_ROLES, ("thinking", "tool_calls", "tool_name", "tool_call_id"))
_MISPLACED |= {"assistant": ("tool_name", "tool_call_id"), "tool": ("thinking", "tool_calls")}
"""The fields read in messages of other roles only."""


class _Calls:
    """The calls of the conversation so far, and which of them were not answered: by ids, and by names in their order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: OrderedDict[int, tuple[str, str]] = OrderedDict()
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        self._count = 0

    def add(self, name: str, requested_id: str | None) -> str:
        """Note a call; return its id, or the number it gets."""
        number, self._count = self._count, self._count + 1
        call_id = requested_id or f"call_{number}"
        self._names[call_id] = name
        self._open[number] = call_id, name
        self._by_id.setdefault(call_id, deque()).append(number)
        self._by_name.setdefault(name, deque()).append(number)
        return call_id

    def answer(self, name: str, requested_id: str | None) -> tuple[str, str]:
        """Return the id and the name of the call that a result answers: of several the one that has waited longest.

        One without an id answers a call of its tool, and where there is none, or it names none, any other.
        """
        if requested_id:
            number = self._first_open(self._by_id.get(requested_id))
        else:
            number = self._first_open(self._by_name.get(name)) if name else None
            if number is None:
                number = next(iter(self._open), None)
        if number is None:
            return requested_id or "", name or self._names.get(requested_id or "", "")
        call_id, called = self._open.pop(number)
        return call_id, name or called

    def _first_open(self, numbers: deque[int] | None) -> int | None:
        """Return the first call of these that was not answered; those before it are forgotten."""
        while numbers and numbers[0] not in self._open:
            numbers.popleft()
        return numbers[0] if numbers else None


def _call(call: wire.Call, calls: _Calls) -> ToolCallBlock:
    function, requested_id = call.function, call.id or None
    fields: JsonObject = {}
    if more := carried_fields(function):
        fields["function"] = more
    fields |= carried_fields(call) or {}
    if requested_id is None:
        fields["id"] = None
    return ToolCallBlock(
        id=calls.add(function.name, requested_id),
        name=function.name,
        arguments=arguments_of(function.arguments or {}),
        carried=Carried(NAME, fields),
    )


# How base64 of a picture begins.
_PICTURES = {"/9j/": "image/jpeg", "iVBORw0KGgo": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}


def _image(data: str) -> ImageBlock:
    kind = next((kind for head, kind in _PICTURES.items() if data.startswith(head)), "")
    return ImageBlock(media_type=kind, data=data)


def _tool(tool: wire.Tool, whole: JsonObject, place: int) -> Tool:
    """Return a function, or a tool of another type, which is carried whole."""
    kind, function = tool.type or "function", tool.function
    if kind != "function":
        return Tool(name=kind, carried=Carried(NAME, whole), hosted=True)
    if function is None:
        param = f"tools[{place}].function"
        raise InvalidRequest(f"{param} is required", param=param)
    rest = carried_fields(tool) or {}
    if more := carried_fields(function):
        rest["function"] = more
    return Tool(
        name=function.name,
        description=function.description or "",
        schema=function.parameters,
        carried=carried(rest, NAME),
    )


def _reasoning(think: bool | str) -> ReasoningPolicy:
    raw_fields = {"think": think}
    if isinstance(think, bool):
        return ReasoningPolicy(mode="auto" if think else "off", raw_fields=raw_fields)
    for level in EFFORTS:
        if think == level:
            return ReasoningPolicy(mode="effort", effort=level, raw_fields=raw_fields)
    raise InvalidRequest(f"think is {think!r}", hint="use true, false, low, medium, high or max", param="think")


def _output_format(wanted: str | JsonObject) -> OutputFormat:
    if isinstance(wanted, dict):
        return OutputFormat(mode="json_schema", name="answer", schema=wanted)
    if wanted != "json":
        raise InvalidRequest(f"format is {wanted!r}", hint="use json or a JSON schema", param="format")
    return OutputFormat(mode="json_object")
