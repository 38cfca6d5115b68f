"""Schemas that name a draft before 2020-12, said in its words.

Without `$schema` a schema is taken for 2020-12, where `items` is one schema and siblings of `$ref` count.
"""

from __future__ import annotations

from typing import Any

from bardo.structured.rewrite.entries import Schema
from bardo.structured.rewrite.words import LISTED, NAMED, SINGLE

_IGNORES_SIBLINGS = ("draft-04", "draft-06", "draft-07")


def is_older(schema: Schema) -> bool:
    """Return whether a schema names an older draft."""
    named = schema.get("$schema")
    return isinstance(named, str) and any(draft in named for draft in (*_IGNORES_SIBLINGS, "2019-09"))


def modern(schema: Schema) -> Schema:
    """Return an older schema in the words of 2020-12."""
    said = _modern(schema, ignores=any(draft in schema["$schema"] for draft in _IGNORES_SIBLINGS))
    return {word: value for word, value in said.items() if word != "$schema"} if isinstance(said, dict) else {}


def _modern(schema: Any, *, ignores: bool) -> Any:
    if not isinstance(schema, dict):
        return schema
    if ignores and isinstance(schema.get("$ref"), str):
        schema = {word: schema[word] for word in ("$ref", "$defs", "definitions", "$schema") if word in schema}
    return {word: _inside(word, value, ignores=ignores) for word, value in _renamed(schema).items()}


def _inside(word: str, value: Any, *, ignores: bool) -> Any:
    if word in SINGLE:
        return _modern(value, ignores=ignores)
    if word in LISTED and isinstance(value, list):
        return [_modern(one, ignores=ignores) for one in value]
    if word in NAMED and isinstance(value, dict):
        return {name: _modern(one, ignores=ignores) for name, one in value.items()}
    return value


def _renamed(schema: Schema) -> Schema:
    said = dict(schema)
    if isinstance(said.get("items"), list):
        said["prefixItems"] = said.pop("items")
        if "additionalItems" in said:
            said["items"] = said["additionalItems"]
    said.pop("additionalItems", None)
    for name, needs in said.pop("dependencies", {}).items():
        word = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        said[word] = {**said.get(word, {}), name: needs}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(said.get(exclusive), bool):
            strict = said.pop(exclusive)
            if strict and bound in said:
                said[exclusive] = said.pop(bound)
    return said
