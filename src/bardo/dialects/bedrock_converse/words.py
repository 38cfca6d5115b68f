"""The words of the Bedrock Converse dialect that more than one of its files needs."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from bardo.dialects.arguments import has_no_arguments
from bardo.dialects.jsonfield import kind_of
from bardo.values.errors import InvalidRequest
from bardo.values.events import FinishReason

NAME = "bedrock_converse"

FIELD = "reasoningContent"
"""The field reasoning stands in, and so the format of a stretch of it: a reply does not say which model thought."""

FORMAT = "bedrock-v1"
"""Signatures and redacted thinking: Bedrock has no word for them, and only Bedrock takes them back, whoever's model made them."""

INVALID_JSON = "INVALID_JSON"
"""The key under which text that is no JSON object stands where the dialect must have an object."""

REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
"""The dialect's stop reasons in our words."""

PADDING = "p"
"""Letters Bedrock adds to each event so that its length tells nothing; they mean nothing."""

THOUGHT: dict[str, Any] = {FIELD: {"reasoningText": {"text": None, "signature": None}, "redactedContent": None}}
"""What is known of a block of reasoning."""

T = TypeVar("T")
encode_json = msgspec.json.Encoder().encode


class WrongShape(Exception):
    """The frame is JSON, but not what its name says."""


def want(value: Any, kind: type[T], what: str) -> T:
    """Return `value` where it is of `kind`. Raises WrongShape."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise WrongShape(f"{what} is {kind_of(value)}")


def string(fields: dict[str, Any], name: str) -> str:
    """Return a string, empty where there is none. Raises WrongShape."""
    value = fields.get(name)
    return "" if value is None else want(value, str, name)


def write_json(value: Any) -> bytes:
    """Return `value` as JSON. Raises InvalidRequest where it is nested too deeply to be written."""
    try:
        return encode_json(value)
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None


def without(fields: dict[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null: what has to be carried."""
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def beyond(value: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return what `value` holds beside `known`, which maps names to None or to what is known inside them."""
    left = without(value, *known)
    for name, inner in known.items():
        held = value.get(name)
        if isinstance(inner, dict) and isinstance(held, dict) and (more := beyond(held, inner)):
            left[name] = more
    return left


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
