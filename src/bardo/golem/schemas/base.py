"""What the documents' answers have in common: a strict schema from the fields, checks of ranges and words, three ways to be read.

A field says what it may hold in its annotation: `Unit` is a number from 0 to 1, `Signed` from -1 to 1, `Words` a list of words. Ranges
are not in the schema, as in the documents: `validate` checks them, so that they hold for providers that enforce no ranges too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

import msgspec

from bardo.structured import Checker, Extraction, Failure, Json, ResponseSchema, UnusableAnswer, checker, extract
from bardo.structured.protocol import guidance


class Bounds(msgspec.Struct, frozen=True):
    """A number's range. `default` is taken where free text names no number."""

    low: float
    high: float
    default: float = 0.0


class Words(msgspec.Struct, frozen=True):
    """The words a string may be. `default` is taken where free text holds none.

    `listen` is the order in which words are listened for in free text: of "critical, although the risk was low" the first one counts.
    """

    words: tuple[str, ...]
    default: str
    listen: tuple[str, ...] = ()


class Text(msgspec.Struct, frozen=True):
    """A string that is free text. Where free text does not name it, its first `longest` characters are taken, or `default`."""

    longest: int = 0
    default: str = ""


Unit = Annotated[float, Bounds(0.0, 1.0)]
Confidence = Annotated[float, Bounds(0.0, 1.0, 0.5)]
Signed = Annotated[float, Bounds(-1.0, 1.0)]
Count = Annotated[int, Bounds(0, 2**32 - 1)]
Gist = Annotated[str, Text(longest=200)]
Unsaid = Annotated[str, Text(default="not stated")]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A typed answer of one subsystem; it fills the `StructuredOutput` protocol. Parts of answers are Answers too."""

    @classmethod
    def schema(cls) -> ResponseSchema:
        """Return the schema to ask for: every member required, and no others."""
        return _schema(cls)

    @classmethod
    def prompt_guidance(cls) -> str:
        """Return what to add to a prompt where the schema cannot be enforced."""
        return guidance(cls.schema().schema)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read JSON that conforms to the schema. Raises UnusableAnswer for any other text."""
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError) as problem:
            raise UnusableAnswer(_refused("no_json", f"not JSON: {problem}", text)) from problem
        return cls.from_value(value, text=text)

    @classmethod
    def from_value(cls, value: Json, *, text: str | bytes = "") -> Self:
        """Take a decoded JSON value that conforms to the schema. Raises UnusableAnswer for any other value."""
        failures = _checker(cls).failures(value)
        if failures:
            raise UnusableAnswer(_refused("invalid", f"not a {cls.__name__}: {failures[0]}", text, failures))
        return msgspec.convert(value, cls)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read an answer out of free text: JSON in it if there is any that conforms, else its own words as well as they can be read.

        Reading words loses much: what is not said takes a careful default. Raises UnusableAnswer for a text without words.
        """
        from bardo.golem.schemas.spoken import from_words

        found = extract(text, _checker(cls))
        if found.ok:
            return msgspec.convert(found.value, cls)
        if not re.search(r"[^\W_]", text):
            raise UnusableAnswer(found)
        return msgspec.convert(from_words(cls, text, found.value), cls)

    def validate(self, issues: list[str]) -> None:
        """Add one line to `issues` for each number out of its range and each word that is not in its list, parts included."""
        _validate(self, "", issues)


class FieldKind(msgspec.Struct, frozen=True):
    """What one field holds: a Python type, the rule of its annotation, and whether it may be null."""

    name: str
    kind: Any
    rule: Bounds | Words | Text | None = None
    nullable: bool = False


@cache
def fields_of(kind: type[Answer]) -> tuple[FieldKind, ...]:
    """Return the fields of an answer, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_field(name, hints[name]) for name in kind.__struct_fields__)


def _field(name: str, hint: Any) -> FieldKind:
    nullable = get_origin(hint) is UnionType or NoneType in get_args(hint)
    if nullable:
        hint = next(arm for arm in get_args(hint) if arm is not NoneType)
    rule = next(iter(getattr(hint, "__metadata__", ())), None)
    return FieldKind(name, get_args(hint)[0] if rule is not None else hint, rule, nullable)


# Schema

_TYPES = {str: "string", float: "number", int: "integer", bool: "boolean"}


def _schema(kind: type[Answer]) -> ResponseSchema:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    return ResponseSchema(name=name, schema=_object(kind), strict=True)


@cache
def _checker(kind: type[Answer]) -> Checker:
    return checker(_object(kind))


def _object(kind: type[Answer]) -> dict[str, Json]:
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
    if issubclass(field.kind, Answer):
        return _object(field.kind)
    plain = _TYPES[field.kind]
    written: dict[str, Json] = {"type": [plain, "null"] if field.nullable else plain}
    if isinstance(field.rule, Words):
        written["enum"] = [*field.rule.words, *((None,) if field.nullable else ())]
    return written


# Checks


def _validate(answer: Answer, path: str, issues: list[str]) -> None:
    for field in fields_of(type(answer)):
        value = getattr(answer, field.name)
        place = f"{path}{field.name}"
        issues.extend(_issues(place, value, field.rule))
        parts = value if isinstance(value, list) else [value]
        for number, part in enumerate(parts):
            if isinstance(part, Answer):
                _validate(part, f"{place}[{number}]." if isinstance(value, list) else f"{place}.", issues)


def _issues(place: str, value: Json, rule: Bounds | Words | Text | None) -> Iterator[str]:
    if isinstance(rule, Bounds) and value is not None and not rule.low <= value <= rule.high:
        yield f"{place} {value} out of range [{rule.low:g},{rule.high:g}]"
    if isinstance(rule, Words) and value is not None and value not in rule.words:
        yield f"{place} {value!r} is none of {', '.join(rule.words)}"


def _refused(code: Any, message: str, text: str | bytes, failures: tuple[Failure, ...] = ()) -> Extraction:
    said = text if isinstance(text, str) else text.decode(errors="replace")
    return Extraction(error=code, message=message, failures=failures, text=said)
