"""Tool calls: arguments are objects, and older servers give no ids."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.ollama.wire import NAME, object_of, text_of
from bardo.dialects.shared.json_values import without
from bardo.values.blocks import Carried, ToolCallBlock, fields_for


class _Function(msgspec.Struct, frozen=True):
    arguments: msgspec.Raw = msgspec.Raw(b"")


class _Call(msgspec.Struct, frozen=True):
    function: _Function = _Function()


class _Message(msgspec.Struct, frozen=True):
    tool_calls: tuple[_Call, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    """The arguments of a line, as the text they stood in."""

    message: _Message = _Message()


_decode_line = msgspec.json.Decoder(_Line).decode


def written_arguments(data: bytes, calls: list[Any]) -> list[bytes]:
    """Return the arguments of each call of a line as they were written; b"" where that cannot be told."""
    try:
        found = [bytes(call.function.arguments) for call in _decode_line(data).message.tool_calls]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = []
    return found if len(found) == len(calls) else [b""] * len(calls)


def read_call(call: dict[str, Any], raw: bytes) -> ToolCallBlock:
    """Return a call of a reply; its id is empty where it has none.

    What is carried says how it was written: `id` is null where there was none, and `function` holds its index.
    """
    function = call.get("function")
    fields: dict[str, Any] = function if isinstance(function, dict) else {}
    name, arguments = str(fields.get("name") or ""), text_of(fields.get("arguments"), raw)
    given = call.get("id")
    carried: dict[str, Any] = {"function": without(fields, "name", "arguments"), **without(call, "id", "function")}
    if not isinstance(given, str) or not given:
        carried["id"] = None
        given = ""
    return ToolCallBlock(id=given, name=name, arguments=arguments, carried=Carried(NAME, carried))


def write_call(call: ToolCallBlock, place: int) -> dict[str, Any]:
    """Return one entry of `tool_calls`, as it was written where it came in this dialect."""
    carried = {**(fields_for(NAME, call.carried) or {"function": {"index": place}})}
    function = carried.pop("function", {})
    unnamed = "id" in carried and carried.pop("id") is None
    return {
        **({} if unnamed else {"id": call.id}),
        "function": {**function, "name": call.name, "arguments": object_of(call.arguments)},
        **carried,
    }
