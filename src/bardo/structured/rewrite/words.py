"""The words of JSON Schema, by what they are about, and where schemas stand inside schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bardo.structured.rewrite.entries import Schema

SINGLE = (
    "additionalProperties",
    "items",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Words whose schemas judge the same value as the schema they stand in."""

NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
TEXTS = frozenset({"minLength", "maxLength", "pattern", "format"})
ARRAYS = frozenset(
    {
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
    }
)
OBJECTS = frozenset(
    {
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
    }
)
ANY_TYPE = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "type"}
)
RULES = NUMBERS | TEXTS | ARRAYS | OBJECTS | ANY_TYPE
"""Words that can make a value invalid. Every other word is an annotation."""
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

_OF = {**dict.fromkeys(TEXTS, "string"), **dict.fromkeys(ARRAYS, "array"), **dict.fromkeys(OBJECTS, "object")}


def about(word: str) -> tuple[str, ...]:
    """Return the types a rule is about; none for a rule about any value."""
    if word in NUMBERS:
        return ("integer", "number")
    return (_OF[word],) if word in _OF else ()


def parts(schema: Schema) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the schemas that stand directly inside a schema, each with its way there."""
    for word in SINGLE:
        if isinstance(schema.get(word), dict | bool):
            yield (word,), schema[word]
    for word in LISTED:
        arms = schema.get(word)
        if isinstance(arms, list):
            yield from (((word, index), arm) for index, arm in enumerate(arms))
    for word in NAMED:
        named = schema.get(word)
        if isinstance(named, dict):
            yield from (((word, name), one) for name, one in named.items())


def rules_of(schema: Schema) -> Schema:
    """Return the words of a schema that can make a value invalid."""
    return {word: value for word, value in schema.items() if word in RULES}


def json_type(value: Any) -> str:
    """Return the JSON type of a value; a whole number is an integer however it is written."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: 1 is 1.0, and true is no number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and bool(left == right)
