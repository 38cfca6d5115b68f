"""The words of the Anthropic Messages dialect that more than one of its files needs."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.arguments import has_no_arguments
from bardo.values.errors import InvalidRequest
from bardo.values.events import FinishReason

NAME = "anthropic_messages"
FORMAT = "anthropic-claude-v1"

INVALID_JSON = "INVALID_JSON"
"""The key under which text that is no JSON object stands where the dialect must have an object."""

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
}
"""The dialect's stop reasons in our words."""

encode_json = msgspec.json.Encoder().encode


def write_json(value: Any) -> bytes:
    """Return `value` as JSON. Raises InvalidRequest where it is nested too deeply to be written."""
    try:
        return encode_json(value)
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None


def without(fields: dict[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null: what has to be carried."""
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def arguments_of(value: Any) -> str:
    """Return a call's `input` as the JSON text of its arguments; some servers write them as text already."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(INVALID_JSON), str):
        return str(value[INVALID_JSON])
    return write_json(value).decode()


def is_object(text: str) -> bool:
    """Whether `text` is one JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def input_of(arguments: str) -> msgspec.Raw:
    """Return the arguments as the object `input` must be; text that is none is wrapped."""
    if has_no_arguments(arguments):
        return msgspec.Raw(b"{}")
    if is_object(arguments):
        return msgspec.Raw(arguments.encode())
    return msgspec.Raw(encode_json({INVALID_JSON: arguments}))
