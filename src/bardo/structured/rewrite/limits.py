"""How much a rewritten schema holds, held against what the target allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bardo.structured.rewrite.entries import Inexpressible, Schema
from bardo.structured.rewrite.words import parts
from bardo.structured.subsets import Limits


@dataclass(slots=True)
class Size:
    """What a schema holds, by the words of `Limits`."""

    properties: int = 0
    depth: int = 0
    enum_values: int = 0
    characters: int = 0
    long_enum_characters: int = 0
    optional: int = 0
    unions: int = 0
    arms: int = 0


def check_limits(schema: Schema, limits: Limits) -> None:
    """Raise Inexpressible for the first limit that is passed."""
    size = size_of(schema, limits)
    for name, words in _WORDS.items():
        allowed, found = getattr(limits, name), getattr(size, name)
        if allowed is not None and found > allowed:
            raise Inexpressible("", f"{found:,} {words}, and {allowed:,} are allowed")


_WORDS = {
    "properties": "properties",
    "depth": "levels of objects and arrays",
    "enum_values": "values in enums",
    "characters": "characters of names and values",
    "long_enum_characters": "characters in one long enum",
    "optional": "optional properties",
    "unions": "places with several types",
    "arms": "arms in one anyOf",
}


def size_of(schema: Schema, limits: Limits) -> Size:
    """Return what a schema holds. Definitions count once, where they stand."""
    size = Size()
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        one, depth = waiting.pop()
        if not isinstance(one, dict):
            continue
        depth += one.get("type") in ("object", "array")
        size.depth = max(size.depth, depth)
        _count(one, size, limits)
        waiting.extend((part, 0 if way[0] == "$defs" else depth) for way, part in parts(one))
    return size


def _count(one: Schema, size: Size, limits: Limits) -> None:
    properties, values = one.get("properties", {}), one.get("enum", [])
    size.properties += len(properties)
    size.optional += len(properties.keys() - set(one.get("required", ())))
    size.unions += "anyOf" in one or isinstance(one.get("type"), list)
    size.arms = max(size.arms, len(one.get("anyOf", ())))
    size.enum_values += len(values)
    written = sum(len(value) if isinstance(value, str) else len(str(value)) for value in values)
    size.characters += written + sum(map(len, properties)) + sum(map(len, one.get("$defs", ())))
    if limits.long_enum is not None and len(values) > limits.long_enum:
        size.long_enum_characters = max(size.long_enum_characters, written)
