"""Google's schema dialect (upper-case types, `nullable`) as JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

from bardo.dialects.gemini.constants import camel

_NODES = ("items", "anyOf", "properties")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


def json_schema(schema: Any) -> Any:
    """Return a schema in JSON Schema's words; one that already is comes back equal. Raises RecursionError on absurd nesting."""
    if not isinstance(schema, dict):
        return schema
    words = {name if name.startswith("$") else camel(name): value for name, value in schema.items()}
    nullable = words.pop("nullable", None) is True
    found = {_renamed(name): _converted(name, value) for name, value in words.items()}
    return _with_null(found) if nullable else found


def declared_parameters(body: dict[str, Any]) -> Iterator[Any]:
    """Yield the `parameters` of all functions that a client's body declares."""
    for tool in _listed(body.get("tools")):
        for declared in (value for name, value in tool.items() if camel(name) == "functionDeclarations"):
            yield from (one["parameters"] for one in _listed(declared) if one.get("parameters") is not None)


def _listed(value: Any) -> list[dict[str, Any]]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]


def untaken_word(schema: Any, known: Collection[str]) -> str:
    """Return a word of a schema that Google's own Schema, whose fields are `known`, does not take so; empty where it takes all."""
    waiting = [schema] if known else []
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            return json.dumps(one)
        for name, value in one.items():
            word = name if name.startswith("$") else camel(name)
            if word not in known or (word == "type" and not isinstance(value, str)):
                return str(name)
            if word in _NODES and isinstance(value, (dict, list)):
                is_node = word == "items"
                waiting += [value] if is_node else value.values() if isinstance(value, dict) else value
    return ""


def _renamed(name: str) -> str:
    return {"defs": "$defs", "ref": "$ref"}.get(name, name)


def _converted(name: str, value: Any) -> Any:
    if name in _CONVERT:
        return _CONVERT[name](value)
    if name in _COUNTS and isinstance(value, str) and value.isdecimal():
        # Google writes 64-bit numbers as strings.
        return int(value)
    return value


def _lower(value: Any) -> Any:
    if isinstance(value, list):
        return [_lower(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def _convert_items(value: Any) -> Any:
    return [json_schema(one) for one in value] if isinstance(value, list) else json_schema(value)


def _convert_members(value: Any) -> Any:
    return {name: json_schema(one) for name, one in value.items()} if isinstance(value, dict) else value


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "type": _lower,
    "items": _convert_items,
    "prefixItems": _convert_items,
    "anyOf": _convert_items,
    "oneOf": _convert_items,
    "allOf": _convert_items,
    "additionalProperties": json_schema,
    "properties": _convert_members,
    "defs": _convert_members,
    "$defs": _convert_members,
}


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if kind is None and isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return schema
