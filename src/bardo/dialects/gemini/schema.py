"""Google's schema dialect (upper-case types, `nullable`) as JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bardo.dialects.gemini.constants import camel

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


def json_schema(schema: Any) -> Any:
    """Return a schema in JSON Schema's words; one that already is comes back equal. Raises RecursionError on absurd nesting."""
    if not isinstance(schema, dict):
        return schema
    words = {name if name.startswith("$") else camel(name): value for name, value in schema.items()}
    nullable = words.pop("nullable", None) is True
    found = {_renamed(name): _converted(name, value) for name, value in words.items()}
    return _with_null(found) if nullable else found


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
