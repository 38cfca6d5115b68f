"""Reading JSON from clients: the value, or an error that names the field."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from bardo.dialects.bounded_json import MAX_DEPTH, decode_bounded
from bardo.dialects.repeated_items import REPEATED_ITEMS
from bardo.values.errors import InvalidRequest

T = TypeVar("T")


def decode_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object a client sent. Raises InvalidRequest for anything else, hostile nesting included."""
    return REPEATED_ITEMS.decode(body, _parse_object)


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        value = decode_bounded(body)
    except RecursionError:
        hint = f"stay under {MAX_DEPTH} levels"
        raise InvalidRequest("the body is nested too deeply", hint=hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"the body is not valid JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise InvalidRequest(f"the body must be a JSON object, not {kind_of(value)}")
    return value


def take(value: Any, kind: type[T] | tuple[type[T], ...], param: str) -> T:
    """Return `value` where it is of `kind` (a bool is no number). Raises InvalidRequest naming `param`."""
    if type(value) is kind:
        return value
    if isinstance(value, kind) and type(value) is not bool:
        return value
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) is bool and bool in kinds:
        return value  # type: ignore[return-value]
    wanted = " or ".join(_NAMES.get(one, one.__name__) for one in kinds)
    raise InvalidRequest(f"{param} must be {wanted}, not {kind_of(value)}", param=param)


def optional(fields: dict[str, Any], name: str, kind: type[T] | tuple[type[T], ...], at: str = "") -> T | None:
    """Return `fields[name]` checked, or None where it is absent or null."""
    value = fields.get(name)
    if value is None or type(value) is kind:
        return value
    return take(value, kind, f"{at}{name}")


def number(fields: dict[str, Any], name: str, at: str = "") -> float | None:
    """Return a number, or None where it is absent or null."""
    return optional(fields, name, (int, float), at)


def required(fields: dict[str, Any], name: str, kind: type[T] | tuple[type[T], ...], at: str = "") -> T:
    """Return `fields[name]` checked. Raises InvalidRequest where it is missing."""
    value = fields.get(name)
    if type(value) is kind:
        return value
    if value is None:
        raise InvalidRequest(f"{at}{name} is required", param=f"{at}{name}")
    return take(value, kind, f"{at}{name}")


def header_value(text: str, param: str) -> str:
    """Return a text that is sent on as a header. Raises InvalidRequest where HTTP, or a proxy on the way, would not take it."""
    if not (text.isascii() and text.isprintable()):
        raise InvalidRequest(
            f"{param} holds a character that is not printable ASCII", hint="send it without", param=param
        )
    return text


def kind_of(value: Any) -> str:
    """Return what a JSON value is, in JSON's words."""
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)


_NAMES: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}
