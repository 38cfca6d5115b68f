"""The tools a request declares: which names are known, and what type each parameter has.

Formats that write parameters as text say nothing of types; the declared JSON Schema does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bardo.tools.jsontext import PYTHON, pass_literal
from bardo.tools.scanner import Malformed, Scanner
from bardo.values.request import Tool

SCHEMA_DEPTH = 20
TEXT = frozenset({"string"})
CONTAINERS = frozenset({"array", "object"})
_KINDS = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
# Types that tools written in Python declare by mistake.
_PYTHON_NAMES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}


class DeclaredTools:
    """The tools of one request. Without any, every name is known and every parameter is text."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._schemas = {tool.name: tool.schema or {} for tool in tools if not tool.hosted}

    def knows(self, name: str) -> bool:
        """Whether a tool of this name may be called."""
        return not self._schemas or name in self._schemas

    def parameter(self, name: str, key: str) -> Place:
        """Return the declared schema of a parameter."""
        root = self._schemas.get(name, {})
        return Place(root, root).property(key)

    def has(self, name: str, key: str) -> bool:
        """Whether the tool declares a parameter of this name."""
        return key in self.keys(name)

    def keys(self, name: str) -> Collection[str]:
        """Return the names of the parameters that the tool declares."""
        properties = self._schemas.get(name, {}).get("properties")
        return properties.keys() if isinstance(properties, dict) else ()


class Place:
    """One place in a schema, of which `root` is the whole; nothing is known of a place that is not declared."""

    __slots__ = ("_root", "_schema")

    def __init__(self, schema: Any, root: Mapping[str, Any]) -> None:
        self._schema = schema
        self._root = root

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that may stand here, or none if the schema names none."""
        return _types(self._schema, self._root, SCHEMA_DEPTH)

    def property(self, key: str) -> Place:
        """Return the place of a member of the object."""
        for branch in _branches(self._schema, self._root, SCHEMA_DEPTH):
            properties = branch.get("properties")
            if isinstance(properties, dict) and key in properties:
                return Place(properties[key], self._root)
        return Place(None, self._root)

    def item(self) -> Place:
        """Return the place of an item of the list."""
        listed = (branch.get("items") for branch in _branches(self._schema, self._root, SCHEMA_DEPTH))
        return Place(next((items for items in listed if isinstance(items, dict)), None), self._root)


def as_json(text: str, types: frozenset[str]) -> str | None:
    """Return a parameter's text as JSON of one of the types, or None if it is of none of them.

    Numbers stay as they were written. Words and containers in Python's notation are understood.
    """
    bare = text.strip()
    for candidate in _readings(bare, types):
        if _kinds(candidate) & types:
            return candidate
    return json.dumps(text, ensure_ascii=False) if "string" in types else None


def _readings(text: str, types: frozenset[str]) -> Iterator[str]:
    """Yield what a text may mean as JSON: itself, Python's notation, and a list or an object with its quotes escaped once too often."""
    yield text
    yield _from_python(text)
    if '\\"' in text and types & CONTAINERS and "string" not in types:
        yield _unescaped(text)


def _unescaped(text: str) -> str:
    """Return a text without one level of JSON's escapes; nothing where it is no inside of a JSON string."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return ""


def _from_python(text: str) -> str:
    if not text:
        return ""
    scanner, parts = Scanner(len(text) + 1), list[str]()
    scanner.feed(text)
    scanner.ended = True
    try:
        for _ in pass_literal(scanner, parts.append, PYTHON):
            break
    except Malformed:
        return ""
    return "" if scanner.unread.strip() else "".join(parts)


def _kinds(text: str) -> frozenset[str]:
    """Return the names of the JSON types that `text` is of, or none if it is no JSON."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return frozenset()
    kind = _KINDS[type(value)]
    whole = kind == "integer" or (isinstance(value, float) and value.is_integer())
    return frozenset({kind, "number", "integer"}) if whole else frozenset({kind})


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _types(schema: Any, root: Mapping[str, Any], depth: int) -> frozenset[str]:
    if not isinstance(schema, dict) or depth == 0:
        return frozenset()
    named = schema.get("type")
    if isinstance(named, str | list):
        listed = [named] if isinstance(named, str) else named
        return frozenset(_PYTHON_NAMES.get(each, each) for each in listed if isinstance(each, str))
    if "const" in schema:
        return _kinds_of([schema["const"]])
    if isinstance(schema.get("enum"), list):
        return _kinds_of(schema["enum"])
    return frozenset().union(*(_types(each, root, depth - 1) for each in _alternatives(schema, root)))


def _branches(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    """Yield a schema, and what it consists of."""
    if not isinstance(schema, dict) or depth == 0:
        return
    yield schema
    for each in _alternatives(schema, root):
        yield from _branches(each, root, depth - 1)


def _alternatives(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    branches = [branch for word in ("anyOf", "oneOf", "allOf") for branch in _as_list(schema.get(word))]
    return [*branches, _referred(schema.get("$ref"), root)]


def _kinds_of(values: Sequence[Any]) -> frozenset[str]:
    return frozenset(_KINDS.get(type(value), "string") for value in values)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference within the schema points to, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    node: Any = root
    for step in reference[2:].split("/"):
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node
