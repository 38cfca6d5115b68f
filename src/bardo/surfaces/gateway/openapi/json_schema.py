"""JSON Schemas in a few words: the parts that descriptions of requests and replies are put together from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

ANY: Schema = {}
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NULL: Schema = {"type": "null"}


def ref(name: str, kind: str = "schemas") -> Schema:
    """Return a reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def array(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def either(*schemas: Schema) -> Schema:
    """Return the schema of a value that fits at least one of several."""
    return {"anyOf": list(schemas)}


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return either(schema, NULL)


def one_of(*values: str) -> Schema:
    """Return the schema of a text that is one of some."""
    return {"enum": list(values)}


def just(value: str) -> Schema:
    """Return the schema of one text."""
    return {"const": value}


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with a description."""
    return {**schema, "description": description}


def fields(*required: str, **properties: Schema) -> Schema:
    """Return the schema of an object that may have further fields. `required` are names among `properties`."""
    return structure(properties, required)


def structure(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object that may have further fields."""
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": True}
    return {**schema, "required": list(required)} if required else schema
