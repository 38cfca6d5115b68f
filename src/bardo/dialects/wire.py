"""JSON helpers that the dialects share: writing it, checking a provider's frames, and the arguments of tool calls."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from bardo.dialects.jsonfield import kind_of
from bardo.values.blocks import has_no_arguments
from bardo.values.errors import InvalidRequest

INVALID_JSON = "INVALID_JSON"
NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for a call that another model made: it says that there is no signature, and is none itself."""
"""The key under which text that is no JSON object stands where a dialect must have an object."""

T = TypeVar("T")
encode_json = msgspec.json.Encoder().encode


class WrongShape(Exception):
    """A provider's frame is JSON, but does not have the shape that its type demands."""


def want(value: Any, kind: type[T] | tuple[type[T], ...], what: str) -> T:
    """Return `value` where it is of `kind` (a bool is no int). Raises WrongShape, which names the field `what`."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise WrongShape(f"{what} is {kind_of(value)}")


def write_json(value: Any) -> bytes:
    """Return `value` as JSON. Raises InvalidRequest where it cannot be written: it is nested too deeply."""
    try:
        return encode_json(value)
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None
    except msgspec.MsgspecError as problem:
        raise InvalidRequest("the request cannot be written as JSON") from problem


def without(fields: dict[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are neither `known` nor null: those that have to be carried."""
    return {name: value for name, value in fields.items() if name not in known and value is not None}


# Long text is read without making values, in a fiftieth of the time; that a number is too large shows only as a value.
_UNREAD = msgspec.json.Decoder(msgspec.Raw)
LONG_TEXT = 64 * 1024


def is_object(text: str) -> bool:
    """Whether `text` is one JSON object. In a long one a number may be too large for `object_in`."""
    if len(text) < LONG_TEXT:
        return object_in(text) is not None
    try:
        return text.lstrip().startswith("{") and bool(_UNREAD.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is; None where it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return _OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


_OBJECT = msgspec.json.Decoder(dict[str, Any])


def arguments_of(value: Any) -> str:
    """Return the arguments of a call as JSON text. Some servers give them as text; what `input_of` wrapped is unwrapped."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(INVALID_JSON), str):
        return str(value[INVALID_JSON])
    return write_json(value).decode()


def input_of(arguments: str) -> msgspec.Raw:
    """Return the arguments of a call as an object; text that is no JSON object is wrapped."""
    if has_no_arguments(arguments):
        return msgspec.Raw(b"{}")
    if is_object(arguments):
        return msgspec.Raw(arguments.encode())
    return msgspec.Raw(encode_json({INVALID_JSON: arguments}))
