"""The subset of JSON Schema that each kind of target takes: one row each, kept in `catalog/data/schema_subsets.toml`.

A row says which words a target knows and which shapes it demands. `rewrite` brings a caller's schema into that form. "Takes" is not
"enforces": whatever the row says, the answer is judged by the caller's own schema afterwards.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import tomli

from bardo.values.errors import ConfigError, InternalError

Recursion = Literal["keep", "optional", "unroll", "refuse"]
PatternRule = Literal["any", "no_lookaround", "simple", "anchored"]
JsonType = Literal["null", "boolean", "integer", "number", "string", "array", "object"]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of each a schema may hold, counted after the rewrites. `None`: no known limit."""

    properties: int | None = None
    """Properties of all objects together."""
    depth: int | None = None
    """Objects and arrays inside one another."""
    enum_values: int | None = None
    """Values of all enums together."""
    characters: int | None = None
    """Characters of all property names, definition names and enum values together."""
    long_enum: int | None = None
    """From how many values on an enum of strings counts as long."""
    long_enum_characters: int | None = None
    """Characters of the values of one long enum."""
    optional: int | None = None
    """Properties that are not required, of all objects together."""
    unions: int | None = None
    """Places with `anyOf` or several types."""
    arms: int | None = None
    """Arms of one `anyOf`."""


class Subset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The subset that one kind of target takes. The defaults describe a target that takes only plain, closed, typed schemas."""

    id: str
    source: str
    """Where the facts are from, and when they were read."""
    verbatim: bool = False
    """Whether the schema goes as it is: the target does not compile it, so at most its root is wrapped."""
    keywords: frozenset[str] = frozenset()
    """Rules that are taken beside the words of shape (type, properties, required, items, enum, anyOf), which all targets take."""
    annotations: frozenset[str] = frozenset({"title", "description"})
    stripped: frozenset[str] = frozenset()
    """Words of the root that a verbatim target refuses."""
    formats: frozenset[str] = frozenset()
    pattern: PatternRule = "any"
    min_items_most: int | None = None
    """The largest `minItems` that is taken."""
    enum_types: frozenset[JsonType] = frozenset({"null", "boolean", "integer", "number", "string"})
    type_arrays: bool = True
    """Whether `type` may be an array."""
    nullable: bool = False
    """Whether null is said with `nullable: true`."""
    root_object: bool = True
    """Whether the root must be an object rather than a union or a scalar."""
    closed: bool = True
    """Whether every object with properties must be closed."""
    all_required: bool = False
    """Whether every property must be required."""
    free_objects: bool = False
    """Whether an object may hold anything."""
    maps: bool = False
    """Whether additional properties may have a schema."""
    untyped: bool = False
    """Whether a place may hold any value."""
    refs: bool = True
    """Whether `$ref` into `$defs` is taken."""
    recursion: Recursion = "keep"
    """The treatment of recursion; "optional": kept where it passes a property that is not required, else unrolled."""
    unroll: int = 3
    """How many levels of recursion an unrolled schema has."""
    limits: Limits = Limits()


@cache
def subsets() -> dict[str, Subset]:
    """Return the built-in rows by id. Raises ConfigError naming the row and the field."""
    text = files("bardo.catalog").joinpath("data/schema_subsets.toml").read_text(encoding="utf-8")
    rows = [_row(table) for table in tomli.loads(text)["subset"]]
    return {row.id: row for row in rows}


def subset(name: str) -> Subset:
    """Return one row. Raises InternalError for a name that has none."""
    row = subsets().get(name)
    if row is None:
        raise InternalError(f"no schema subset is called {name!r}", hint=f"one of {', '.join(sorted(subsets()))}")
    return row


def _row(table: dict[str, Any]) -> Subset:
    try:
        return msgspec.convert(table, Subset)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"schema subset {table.get('id', '?')!r}: {problem}") from problem
