"""Schemas and answers for the tests of rewriting, drawn from a random source: cheap, and reproducible by its seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from bardo.structured.bounds import resolve

NAMES = ("a", "b", "c")
_SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, 5, -3, 0.5, 1.0, 2.5, "", "x", "ab", "abc1", "b", "2024-01-01")
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_DEEPEST = 4

_SCALAR_WORDS: dict[str, tuple[Any, ...]] = {
    "minimum": (0, 1, 1.5),
    "exclusiveMinimum": (0, 1, 1.5),
    "maximum": (2, 5),
    "exclusiveMaximum": (2, 3.5),
    "multipleOf": (1, 2, 3),
    "minLength": (0, 1, 2),
    "maxLength": (1, 3),
    "pattern": ("^a", "b", "(?=x)", r"\d$", "^[a-z]*$"),
    "format": ("date", "email", "regex", "uuid"),
    "description": ("told",),
    "default": _SCALARS,
    "x-own": (1,),
}


def value(random: Random, depth: int = 0) -> Any:
    """Return some JSON value."""
    pick = random.random()
    if depth > 2 or pick < 0.6:
        return random.choice(_SCALARS)
    if pick < 0.8:
        return [value(random, depth + 1) for _ in range(random.randint(0, 3))]
    return {name: value(random, depth + 1) for name in random.sample((*NAMES, "zz"), random.randint(0, 3))}


def schema(random: Random) -> dict[str, Any]:
    """Return a whole schema with definitions; it need not make sense."""
    root = _one(random, 0)
    return {**root, "$defs": {name: _inner(random, 1) for name in ("one", "two")}}


def _inner(random: Random, depth: int) -> Any:
    if depth >= _DEEPEST or random.random() < 0.3:
        leaves: list[Any] = [
            True,
            {},
            {"type": "string"},
            {"type": "integer"},
            {"type": ["string", "null"]},
            {"type": "null"},
        ]
        return random.choice(
            [*leaves, {"type": "boolean"}, {"type": "number"}, False] if random.random() < 0.3 else leaves[2:]
        )
    return _one(random, depth)


def _one(random: Random, depth: int) -> dict[str, Any]:
    return random.choice(_FORMS)(random, depth + 1)


def _some(random: Random, words: dict[str, Callable[[], Any]], most: int) -> dict[str, Any]:
    return {word: words[word]() for word in random.sample(sorted(words), min(len(words), random.randint(0, most)))}


def _scalar_words(random: Random) -> dict[str, Any]:
    return {
        word: random.choice(_SCALAR_WORDS[word]) for word in random.sample(sorted(_SCALAR_WORDS), random.randint(0, 2))
    }


def _array_words(random: Random, depth: int) -> dict[str, Any]:
    words: dict[str, Callable[[], Any]] = {
        "prefixItems": lambda: [_inner(random, depth) for _ in range(random.randint(1, 2))],
        "minItems": lambda: random.randint(0, 3),
        "maxItems": lambda: random.randint(0, 3),
        "uniqueItems": lambda: random.random() < 0.5,
        "contains": lambda: _inner(random, depth),
        "unevaluatedItems": lambda: random.random() < 0.5,
    }
    items = {"items": _inner(random, depth)} if random.random() < 0.8 else {}
    return {**items, **_some(random, words, 2)}


def _object_words(random: Random, depth: int) -> dict[str, Any]:
    names = random.sample(NAMES, random.randint(0, 3))
    words: dict[str, Callable[[], Any]] = {
        "additionalProperties": lambda: random.choice([False, _inner(random, depth)]),
        "patternProperties": lambda: {random.choice(["^a", "b|c"]): _inner(random, depth)},
        "propertyNames": lambda: {"maxLength": 1},
        "minProperties": lambda: random.randint(0, 3),
        "maxProperties": lambda: random.randint(0, 3),
        "unevaluatedProperties": lambda: random.random() < 0.3,
        "dependentRequired": lambda: {"a": ["b"]},
    }
    shape: dict[str, Any] = {"properties": {name: _inner(random, depth) for name in names}} if names else {}
    required = random.sample(NAMES, random.randint(0, 2)) if random.random() < 0.2 else names[: random.randint(0, 2)]
    return {**shape, **({"required": required} if required else {}), **_some(random, words, 2)}


def _combined_words(random: Random, depth: int) -> dict[str, Any]:
    def arms() -> list[Any]:
        return [_inner(random, depth) for _ in range(random.randint(1, 3))]

    words: dict[str, Callable[[], Any]] = {
        "anyOf": arms,
        "oneOf": arms,
        "allOf": arms,
        "not": lambda: _inner(random, depth),
    }
    words |= (
        {"if": lambda: _inner(random, depth), "then": lambda: _inner(random, depth)} if random.random() < 0.1 else {}
    )
    return _some(random, words, 2)


def _object(random: Random, depth: int) -> dict[str, Any]:
    return {"type": "object", **_object_words(random, depth)}


def _array(random: Random, depth: int) -> dict[str, Any]:
    return {"type": "array", **_array_words(random, depth)}


def _scalar(random: Random, depth: int) -> dict[str, Any]:
    return {"type": random.choice(_TYPES[1:5]), **_scalar_words(random)}


def _loose(random: Random, depth: int) -> dict[str, Any]:
    said = random.sample(_TYPES, random.randint(0, 3))
    words = {**_scalar_words(random), **random.choice([_array_words, _object_words])(random, depth)}
    return {**words, "type": said} if said else words


def _combined(random: Random, depth: int) -> dict[str, Any]:
    return {**random.choice([_object, _scalar, _array, lambda *_: {}])(random, depth), **_combined_words(random, depth)}


def _reference(random: Random, depth: int) -> dict[str, Any]:
    beside = random.choice([{}, {}, _scalar_words(random), _object_words(random, depth)])
    return {**beside, "$ref": random.choice(["#/$defs/one", "#/$defs/two", "#"])}


def _constants(random: Random, depth: int) -> dict[str, Any]:
    if random.random() < 0.4:
        return {"const": value(random)}
    return {"enum": [value(random) for _ in range(random.randint(1, 4))]}


_FORMS: tuple[Callable[[Random, int], dict[str, Any]], ...] = (
    _object,
    _object,
    _array,
    _scalar,
    _scalar,
    _loose,
    _combined,
    _combined,
    _reference,
    _constants,
)


def answer(random: Random, said: Any, root: Any = None, depth: int = 0) -> Any:
    """Return a value that mostly fits a rewritten schema, which says its shape plainly."""
    root = said if root is None else root
    if not isinstance(said, dict) or depth > 8:
        return value(random, depth)
    if "$ref" in said:
        return answer(random, resolve(root, said["$ref"]), root, depth + 1)
    if said.get("anyOf"):
        return answer(random, random.choice(said["anyOf"]), root, depth + 1)
    if said.get("enum"):
        return random.choice(said["enum"])
    kind = said.get("type")
    kind = random.choice(kind) if isinstance(kind, list) and kind else kind
    if kind == "object":
        return _members(random, said, root, depth)
    if kind == "array":
        first = [answer(random, one, root, depth + 1) for one in said.get("prefixItems", ())]
        return first + [answer(random, said.get("items", True), root, depth + 1) for _ in range(random.randint(0, 2))]
    return random.choice(_OF_KIND[kind]) if kind in _OF_KIND else value(random, depth)


def _members(random: Random, said: dict[str, Any], root: Any, depth: int) -> dict[str, Any]:
    required = said.get("required", ())
    wanted = [name for name in said.get("properties", {}) if name in required or (depth < 5 and random.random() < 0.5)]
    members = {name: answer(random, said["properties"][name], root, depth + 1) for name in wanted}
    further = said.get("additionalProperties", True)
    if further is not False and depth < 5 and random.random() < 0.4:
        members[random.choice(("a", "b", "zz"))] = answer(random, further, root, depth + 1)
    return members


_OF_KIND: dict[Any, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "integer": (-3, 0, 1, 2, 3, 5),
    "number": (-3, 0, 1, 2.5, 1.5),
    "string": ("", "x", "ab", "abc1", "b", "2024-01-01"),
}
