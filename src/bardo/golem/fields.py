"""The types of fields of answers, the strict JSON Schema of those fields, and the checks beyond it.

A field says what it may hold in its annotation: `Unit` is a number from 0 to 1, `Signed` from -1 to 1, `Choices` a list of words. Ranges
are not in the schema, as in the documents: `issues_of` checks them, so that they hold for providers that enforce no ranges too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from bardo.structured import Json

AnswerType: TypeAlias = type[msgspec.Struct]
"""An answer, or a part of one: a Struct whose fields are annotated as below."""


class Bounds(msgspec.Struct, frozen=True):
    """A number's range. `default` is taken where free text names no number."""

    low: float
    high: float
    default: float = 0.0


class Choices(msgspec.Struct, frozen=True):
    """The words a string may be. `default` is taken where free text holds none.

    `priority` is the order in which words are looked for in free text: of "critical, although the risk was low" the first one counts.
    """

    words: tuple[str, ...]
    default: str
    priority: tuple[str, ...] = ()


class Text(msgspec.Struct, frozen=True):
    """A string that is free text. Where free text does not name it, its first `longest` characters are taken, or `default`."""

    longest: int = 0
    default: str = ""


Unit = Annotated[float, Bounds(0.0, 1.0)]
Confidence = Annotated[float, Bounds(0.0, 1.0, 0.5)]
Signed = Annotated[float, Bounds(-1.0, 1.0)]
Count = Annotated[int, Bounds(0, 2**32 - 1)]
Summary = Annotated[str, Text(longest=200)]
Stated = Annotated[str, Text(default="not stated")]


class FieldKind(msgspec.Struct, frozen=True):
    """The kind of one field: a Python type, the rule of its annotation, and whether it may be null."""

    name: str
    kind: Any
    rule: Bounds | Choices | Text | None = None
    nullable: bool = False


@cache
def fields_of(kind: AnswerType) -> tuple[FieldKind, ...]:
    """Return the fields of an answer, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_field(name, hints[name]) for name in kind.__struct_fields__)


def _field(name: str, hint: Any) -> FieldKind:
    nullable = get_origin(hint) is UnionType or NoneType in get_args(hint)
    if nullable:
        hint = next(arm for arm in get_args(hint) if arm is not NoneType)
    rule = next(iter(getattr(hint, "__metadata__", ())), None)
    return FieldKind(name, get_args(hint)[0] if rule is not None else hint, rule, nullable)


_TYPES = {str: "string", float: "number", int: "integer", bool: "boolean"}


def object_schema(kind: AnswerType) -> dict[str, Json]:
    """Return the JSON Schema of an answer: every member required, and no others."""
    fields = fields_of(kind)
    return {
        "type": "object",
        "properties": {field.name: _member(field) for field in fields},
        "required": [field.name for field in fields],
        "additionalProperties": False,
    }


def _member(field: FieldKind) -> dict[str, Json]:
    if get_origin(field.kind) is list:
        return {"type": "array", "items": _member(FieldKind("", get_args(field.kind)[0]))}
    if issubclass(field.kind, msgspec.Struct):
        return object_schema(field.kind)
    plain = _TYPES[field.kind]
    written: dict[str, Json] = {"type": [plain, "null"] if field.nullable else plain}
    if isinstance(field.rule, Choices):
        written["enum"] = [*field.rule.words, *((None,) if field.nullable else ())]
    return written


def issues_of(answer: msgspec.Struct, path: str = "") -> Iterator[str]:
    """Yield one line for each number out of its range and each word that is not in its list, parts included."""
    for field in fields_of(type(answer)):
        value = getattr(answer, field.name)
        place = f"{path}{field.name}"
        if isinstance(field.rule, Bounds) and value is not None and not field.rule.low <= value <= field.rule.high:
            yield f"{place} {value} out of range [{field.rule.low:g},{field.rule.high:g}]"
        if isinstance(field.rule, Choices) and value is not None and value not in field.rule.words:
            yield f"{place} {value!r} is none of {', '.join(field.rule.words)}"
        parts = value if isinstance(value, list) else [value]
        for number, part in enumerate(parts):
            if isinstance(part, msgspec.Struct):
                yield from issues_of(part, f"{place}[{number}]." if isinstance(value, list) else f"{place}.")
