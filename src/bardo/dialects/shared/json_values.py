"""JSON as it comes from clients and providers, and as it is written.

What a client sends is read strictly: the value, or an error that names the field. Providers' JSON is not always quite JSON: seen in replies
were lone surrogates, control characters inside strings, NaN, and bytes that are no UTF-8. They are mended, so that the rest of the reply
survives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES, decode_bounded, is_too_deep, words_of
from bardo.values.blocks import has_no_arguments
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.events import Degraded, Event

T = TypeVar("T")
JsonObject: TypeAlias = dict[str, Any]
"""An object that is arbitrary JSON by nature: a schema, arguments, fields that are only carried."""
JsonValue: TypeAlias = Any
"""A value that is arbitrary JSON by nature: bardo carries it and does not look into it."""


def decode_object(body: bytes, *, checks_depth: bool = True) -> JsonObject:
    """Return the JSON object a client sent. Raises InvalidRequest for anything else, hostile nesting included.

    Without `checks_depth` the levels of a short one are not counted: who reads it into structs knows most of them, and asks `check_depth`
    where the rest may have many.
    """
    try:
        value = decode_bounded(body) if checks_depth or len(body) >= SLICED_BYTES else _decode(body)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"the body is not valid JSON: {words_of(problem, body)}") from problem
    if not isinstance(value, dict):
        raise InvalidRequest(f"the body must be a JSON object, not {kind_of(value)}")
    return value


def check_depth(fields: JsonObject, body: bytes) -> None:
    """Raise InvalidRequest where an object that was read of `body` is nested too deeply."""
    if is_too_deep(fields, body):
        raise _too_deep()


def _too_deep() -> InvalidRequest:
    return InvalidRequest("the body is nested too deeply", hint=f"stay under {MAX_DEPTH} levels")


def take(value: object, kind: type[T] | tuple[type[T], ...], param: str) -> T:
    """Return `value` where it is of `kind` (a bool is no number). Raises InvalidRequest naming `param`."""
    if type(value) is kind:
        return value
    if isinstance(value, kind) and type(value) is not bool:
        return value
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) is bool and bool in kinds:
        return value  # type: ignore[return-value]
    wanted = " or ".join(dict.fromkeys(_NAMES.get(kind, kind.__name__) for kind in kinds))
    raise InvalidRequest(f"{param} must be {wanted}, not {kind_of(value)}", param=param)


def optional(fields: JsonObject, name: str, kind: type[T] | tuple[type[T], ...], at: str = "") -> T | None:
    """Return `fields[name]` checked, or None if it is absent or null."""
    value = fields.get(name)
    if value is None or type(value) is kind:
        return value
    return take(value, kind, f"{at}{name}")


def number(fields: JsonObject, name: str, at: str = "") -> float | None:
    """Return a number, or None if it is absent or null."""
    return optional(fields, name, (int, float), at)


def required(fields: JsonObject, name: str, kind: type[T] | tuple[type[T], ...], at: str = "") -> T:
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


def kind_of(value: object) -> str:
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


REPAIRED = Degraded(Degradation("reply.bytes", why="the provider sent JSON that strict readers refuse; it was mended"))

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode


def decode_leniently(data: bytes, report: list[Event] | None = None) -> Any:
    """Return the JSON value of `data`; `report` takes the event that tells of mending.

    Raises ValueError where there is none, too deep nesting included.
    """
    mended = False

    def decode(part: bytes) -> Any:
        nonlocal mended
        try:
            return _decode(part)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            mended = True
            text = part.decode("utf-8", "replace")
            value = json.loads(text, strict=False, parse_constant=_no_number, parse_float=_finite, parse_int=_whole)
            return without_surrogates(value)

    try:
        value = decode_bounded(data, decode=decode)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if mended and report is not None:
        report.append(REPAIRED)
    return value


def _no_number(constant: str) -> None:
    """NaN and the infinities, which some servers write for scores, are no values."""


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _whole(digits: str) -> int | float | None:
    return int(digits) if len(digits) < 4000 else _finite(digits)


def without_surrogates(value: object) -> object:
    """Return a JSON value that can be written as UTF-8."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
    return value


def excerpt(data: bytes, limit: int = 300) -> str:
    """Return the beginning of `data` as one line of text, for an error message."""
    text = " ".join(data[: limit * 4].decode("utf-8", "replace").split())
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return text if len(text) <= limit else text[:limit] + "…"


def as_text(value: object) -> str:
    """Return a string as it is, nothing for null, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


INVALID_JSON = "INVALID_JSON"
"""The key under which text that is no JSON object stands where a dialect must have an object."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""Google's documented value for a call that another model made: it says that there is no signature, and is none itself."""
NO_SIGNATURES = frozenset({NO_SIGNATURE, "context_engineering_is_the_way_to_go"})
"""Both words for it that Google documents, which clients write."""
encode_json = msgspec.json.Encoder().encode


class WrongShape(Exception):
    """A provider's frame is JSON, but does not have the shape that its type demands."""


def want(value: object, kind: type[T] | tuple[type[T], ...], what: str) -> T:
    """Return `value` where it is of `kind` (a bool is no int). Raises WrongShape, which names the field `what`."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise WrongShape(f"{what} is {kind_of(value)}")


def write_json(value: object) -> bytes:
    """Return `value` as JSON. Raises InvalidRequest where it cannot be written: it is nested too deeply."""
    try:
        return encode_json(value)
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply") from None
    except msgspec.MsgspecError as problem:
        raise InvalidRequest("the request cannot be written as JSON") from problem


def without(fields: JsonObject, *known: str) -> JsonObject:
    """Return the fields that are neither `known` nor null: those that have to be carried."""
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def inner_fields(
    body: JsonObject, known: Mapping[tuple[str, ...], Collection[str]]
) -> dict[tuple[str, ...], JsonValue]:
    """Return the values inside objects of a body that are neither null nor `known`, by their paths. `known` are the names in each."""
    fields: dict[tuple[str, ...], JsonValue] = {}
    for path, names in known.items():
        held: JsonValue = body.get(path[0]) if path else body
        for name in path[1:] if held is not None else ():
            held = held.get(name) if isinstance(held, dict) else None
        if isinstance(held, dict):
            fields |= {(*path, name): value for name, value in held.items() if name not in names and value is not None}
    return fields


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


def object_in(text: str) -> JsonObject | None:
    """Return the JSON object that `text` is, or None if it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return _OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


_OBJECT = msgspec.json.Decoder(JsonObject)


def arguments_of(value: object) -> str:
    """Return the arguments of a call as JSON text. Some servers give them as text; what `input_of` wrapped is unwrapped."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(INVALID_JSON), str):
        return str(value[INVALID_JSON])
    return write_json(value).decode()


def written_arguments(raw: msgspec.Raw, levels: int = MAX_DEPTH) -> str:
    """Return the arguments of a call as JSON text, as they were written; a text and what `input_of` wrapped are taken out.

    Raises what `decode_bounded` raises.
    """
    written = bytes(raw)
    if not written:
        return ""
    value = decode_bounded(written, levels)
    if value is None or isinstance(value, str) or (isinstance(value, dict) and value.keys() == {INVALID_JSON}):
        return arguments_of(value)
    return written.decode()


def input_of(arguments: str) -> msgspec.Raw:
    """Return the arguments of a call as an object; text that is no JSON object is wrapped."""
    if has_no_arguments(arguments):
        return msgspec.Raw(b"{}")
    if is_object(arguments):
        return msgspec.Raw(arguments.encode())
    return msgspec.Raw(encode_json({INVALID_JSON: arguments}))
