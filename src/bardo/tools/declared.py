"""The tools a request declares: which names are known, and what type each parameter has.

Formats that write parameters as text say nothing of types; the declared JSON Schema does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bardo.tools.literals import PYTHON, pass_literal
from bardo.tools.scanner import Malformed, Scanner
from bardo.values.request import Tool

SCHEMA_DEPTH = 20
TEXT = frozenset({"string"})
_KINDS = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


class DeclaredTools:
    """The tools of one request. Without any, every name is known and every parameter is text."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._schemas = {tool.name: tool.schema or {} for tool in tools if not tool.hosted}

    def knows(self, name: str) -> bool:
        """Whether a tool of this name may be called."""
        return not self._schemas or name in self._schemas

    def types(self, name: str, parameter: str) -> frozenset[str]:
        """Return the JSON types the parameter may have; `string` where nothing is said."""
        root = self._schemas.get(name, {})
        properties = root.get("properties")
        schema = properties.get(parameter) if isinstance(properties, dict) else None
        return _types(schema, root, SCHEMA_DEPTH) or TEXT


def as_json(text: str, types: frozenset[str]) -> str | None:
    """Return a parameter's text as JSON of one of the types; None where it is of none of them.

    Numbers stay as they were written. Words and containers in Python's notation are understood.
    """
    bare = text.strip()
    for candidate in (bare, _from_python(bare)):
        if _kinds(candidate) & types:
            return candidate
    return json.dumps(text, ensure_ascii=False) if "string" in types else None


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
    """Return the names of the JSON types that `text` is of; none where it is no JSON."""
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
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(each for each in named if isinstance(each, str))
    if "const" in schema:
        return _kinds_of([schema["const"]])
    if isinstance(schema.get("enum"), list):
        return _kinds_of(schema["enum"])
    branches = [branch for word in ("anyOf", "oneOf", "allOf") for branch in _listed(schema.get(word))]
    return frozenset().union(
        *(_types(each, root, depth - 1) for each in [*branches, _referred(schema.get("$ref"), root)])
    )


def _kinds_of(values: Sequence[Any]) -> frozenset[str]:
    return frozenset(_KINDS.get(type(value), "string") for value in values)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference within the schema points to, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
