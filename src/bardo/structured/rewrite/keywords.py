"""The keywords of JSON Schema 2020-12: what each is about, and where schemas stand inside schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

_SINGLE = frozenset(
    ["items", "not", "if", "then", "else", "contains", "contentSchema", "propertyNames", "additionalProperties"]
)
_SINGLE |= {"unevaluatedItems", "unevaluatedProperties"}
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas judge the same value as the schema they stand in."""

_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_STRINGS = frozenset({"minLength", "maxLength", "pattern", "format"})
_ARRAYS = frozenset(
    ["items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"]
)
_ARRAYS |= {"unevaluatedItems"}
_OBJECTS = frozenset(["properties", "required", "patternProperties", "propertyNames", "minProperties", "maxProperties"])
_OBJECTS |= {"additionalProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas"}
_ANY_TYPE = frozenset(
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "type"]
)
RULES = _NUMBERS | _STRINGS | _ARRAYS | _OBJECTS | _ANY_TYPE
"""Keywords that can make a value invalid. Every other keyword is an annotation."""
TITLES = ("title", "description")
TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

TYPES_OF_RULE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_NUMBERS, ("integer", "number")),
    **dict.fromkeys(_STRINGS, ("string",)),
    **dict.fromkeys(_ARRAYS, ("array",)),
    **dict.fromkeys(_OBJECTS, ("object",)),
}
"""The types a rule is about. A rule that is missing here is about values of any type."""


def parts(schema: Schema) -> Iterator[tuple[str, str | int, Any]]:
    """Yield the schemas that stand directly inside a schema, each with its keyword and its name or index there."""
    for keyword, value in schema.items():
        if keyword in _SINGLE:
            yield keyword, "", value
        elif keyword in _LISTED and isinstance(value, list):
            yield from ((keyword, index, part) for index, part in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            yield from ((keyword, name, part) for name, part in value.items())


def with_parts(schema: Schema, change: Callable[[Any], Any]) -> Schema:
    """Return a schema with every schema directly inside it replaced by what `change` returns for it."""
    return {keyword: _with_part(keyword, value, change) for keyword, value in schema.items()}


def _with_part(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if keyword in _SINGLE:
        return change(value)
    if keyword in _LISTED and isinstance(value, list):
        return [change(part) for part in value]
    if keyword in _NAMED and isinstance(value, dict):
        return {name: change(part) for name, part in value.items()}
    return value


def rules_of(schema: Schema) -> Schema:
    """Return the keywords of a schema that can make a value invalid."""
    return {keyword: value for keyword, value in schema.items() if keyword in RULES}


def without(schema: Schema, *keywords: str) -> Schema:
    """Return a schema without some of its keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def json_type(value: Any) -> str:
    """Return the JSON type of a value; a whole number is an integer however it is written."""
    kind = _JSON_TYPES.get(type(value), "object")
    return "integer" if kind == "number" and value.is_integer() else kind


_JSON_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: 1 is 1.0, and true is no number."""
    return bool(left == right) and comparable(left) == comparable(right)


def comparable(value: Any) -> Any:
    """Return a value that can stand in a set, and that equals another's where the two JSON values are equal."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, list):
        return list, tuple(map(comparable, value))
    if isinstance(value, dict):
        return dict, frozenset((name, comparable(member)) for name, member in value.items())
    return value


# Drafts before 2020-12. Without `$schema` a schema is taken for 2020-12, where `items` is one schema and siblings of `$ref` count.
_IGNORES_SIBLINGS = ("draft-04", "draft-06", "draft-07")


def is_older(schema: Schema) -> bool:
    """Return whether a schema names an older draft."""
    named = schema.get("$schema")
    return isinstance(named, str) and any(draft in named for draft in (*_IGNORES_SIBLINGS, "2019-09"))


def modern(schema: Schema) -> Schema:
    """Return a schema of an older draft in the keywords of 2020-12."""
    ignores = any(draft in schema["$schema"] for draft in _IGNORES_SIBLINGS)
    return without(_modern(schema, ignores_siblings=ignores), "$schema")


def in_new_words(schema: Any) -> Any:
    """Return a schema without what only older drafts write so, whatever draft it names."""
    return _modern(schema, ignores_siblings=False)


def _modern(schema: Any, *, ignores_siblings: bool) -> Any:
    if not isinstance(schema, dict):
        return schema
    if ignores_siblings and isinstance(schema.get("$ref"), str):
        schema = {word: schema[word] for word in ("$ref", "$defs", "definitions", "$schema") if word in schema}
    return with_parts(_renamed(schema), lambda part: _modern(part, ignores_siblings=ignores_siblings))


def _renamed(schema: Schema) -> Schema:
    renamed = dict(schema)
    if isinstance(renamed.get("items"), list):
        renamed["prefixItems"] = renamed.pop("items")
        if "additionalItems" in renamed:
            renamed["items"] = renamed["additionalItems"]
    renamed.pop("additionalItems", None)
    dependencies = renamed.pop("dependencies", None)
    for name, needs in dependencies.items() if isinstance(dependencies, dict) else ():
        keyword = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        renamed[keyword] = {**renamed.get(keyword, {}), name: needs}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(renamed.get(exclusive), bool) and renamed.pop(exclusive) and bound in renamed:
            renamed[exclusive] = renamed.pop(bound)
    return renamed
