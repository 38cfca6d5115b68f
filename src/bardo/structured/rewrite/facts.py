"""What can be proved of a schema without a value: which types it admits, and whether two schemas exclude each other.

Every answer is on the safe side: "may be" unless proved otherwise.
"""

from __future__ import annotations

from typing import Any

from bardo.structured.bounds import resolve
from bardo.structured.rewrite.entries import Schema
from bardo.structured.rewrite.words import TYPES, json_type, same

_ALL = frozenset(TYPES)
_DEEPEST = 12
_MOST_VALUES = 200


def types_of(schema: Any, root: Schema, depth: int = 0) -> frozenset[str]:
    """Return the types a value may have. "number" stands for numbers that are not whole."""
    if schema is False:
        return frozenset()
    if schema is True or depth > _DEEPEST:
        return _ALL
    admitted = _said(schema)
    values = constants(schema)
    if values is not None:
        admitted &= {json_type(value) for value in values}
    if isinstance(schema.get("$ref"), str):
        admitted &= types_of(_target(schema["$ref"], root), root, depth + 1)
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            admitted &= frozenset().union(*(types_of(arm, root, depth + 1) for arm in schema[word]))
    for part in schema.get("allOf", ()):
        admitted &= types_of(part, root, depth + 1)
    return admitted


def rejects_null(schema: Any, root: Schema) -> bool:
    """Return whether null is certainly invalid."""
    return "null" not in types_of(schema, root)


def accepts_null(schema: Any, root: Schema) -> bool:
    """Return whether null is certainly valid: the schema says so in `type` or `enum`, alone or as an arm of `anyOf`."""
    if schema is True or schema == {}:
        return True
    if not isinstance(schema, dict):
        return False
    words = set(schema) - {"title", "description", "default", "examples"}
    if words == {"anyOf"}:
        return any(accepts_null(arm, root) for arm in schema["anyOf"])
    if "enum" in words and words <= {"enum", "type"}:
        return None in schema["enum"] and "null" in _said(schema)
    # Rules about other types say nothing about null.
    return not words & {
        "$ref",
        "$dynamicRef",
        "allOf",
        "oneOf",
        "not",
        "if",
        "const",
        "enum",
        "anyOf",
    } and "null" in _said(schema)


def disjoint(left: Any, right: Any, root: Schema, depth: int = 0) -> bool:
    """Return whether certainly no value is valid under both: by type, by enum, by range, or by a member both require."""
    if depth > _DEEPEST:
        return False
    shared = types_of(left, root) & types_of(right, root)
    if not shared:
        return True
    left, right = _opened(left, root), _opened(right, root)
    if not isinstance(left, dict) or not isinstance(right, dict):
        return False
    ours, theirs = constants(left), constants(right)
    if ours is not None and theirs is not None and len(ours) * len(theirs) <= _MOST_VALUES**2:
        return not any(same(one, other) for one in ours for other in theirs)
    return shared == {"object"} and _members_exclude(left, right, root, depth)


def _members_exclude(left: Schema, right: Schema, root: Schema, depth: int) -> bool:
    required = {name for schema in (left, right) for name in schema.get("required", ())}
    return any(_excludes(left, right, name, root, depth) for name in required)


def _excludes(left: Schema, right: Schema, name: str, root: Schema, depth: int) -> bool:
    ours, theirs = (member(schema, name) for schema in (left, right))
    return ours is False or theirs is False or disjoint(ours, theirs, root, depth + 1)


def member(schema: Schema, name: str) -> Any:
    """Return what an object schema by itself says of one member."""
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    return True if schema.get("patternProperties") else schema.get("additionalProperties", True)


def constants(schema: Any) -> list[Any] | None:
    """Return the values `const` or `enum` leave; None where neither is there."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _said(schema: Schema) -> frozenset[str]:
    said = schema.get("type")
    if said is None:
        return _ALL
    listed = frozenset([said] if isinstance(said, str) else said)
    return listed | {"integer"} if "number" in listed else listed


def _target(reference: str, root: Schema) -> Any:
    found = resolve(root, reference)
    return True if found is None else found


def _opened(schema: Any, root: Schema, depth: int = 0) -> Any:
    """Return the target of a schema that is only a reference."""
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and depth < _DEEPEST:
        target = _target(schema["$ref"], root)
        if not isinstance(target, dict):
            return schema
        schema, depth = {**target, **{word: value for word, value in schema.items() if word != "$ref"}}, depth + 1
    return schema
