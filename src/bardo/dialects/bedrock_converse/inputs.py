"""The inputs of a whole reply's tool calls, as the text they stood in."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import msgspec

from bardo.dialects.wire import INVALID_JSON, arguments_of


class _Use(msgspec.Struct, frozen=True):
    input: msgspec.Raw = msgspec.Raw(b"")


class _Block(msgspec.Struct, rename="camel"):
    tool_use: _Use = _Use()


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block] = []


class _Output(msgspec.Struct, frozen=True):
    message: _Message = _Message()


class _Inputs(msgspec.Struct):
    """The tool inputs of a whole reply, as the text they stood in."""

    output: _Output = _Output()


_decode_inputs = msgspec.json.Decoder(_Inputs).decode


def read_arguments(data: bytes, blocks: list[Any]) -> list[str]:
    """Return, for each block, its input as it was written, where the block is a tool call."""
    values = [_input_of(block) for block in blocks]
    if not any(values):
        return ["" if value is None else arguments_of(value) for value in values]
    try:
        raws = [block.tool_use.input for block in _decode_inputs(data).output.message.content]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raws = []
    pairs = zip_longest(values, raws[: len(values)], fillvalue=msgspec.Raw(b""))
    return [_written(value, raw) for value, raw in pairs]


def _input_of(block: Any) -> Any:
    use = block.get("toolUse") if isinstance(block, dict) else None
    return use.get("input") if isinstance(use, dict) else None


def _written(value: Any, raw: msgspec.Raw) -> str:
    # Text that is no JSON object stands in a string, or where bardo wrapped it.
    if value is None or isinstance(value, str):
        return value or ""
    wrapped = isinstance(value, dict) and INVALID_JSON in value
    return arguments_of(value) if wrapped or not bytes(raw) else bytes(raw).decode("utf-8", "replace")
