"""JSON Schemas whose references stand alone, as Gemini wants them.

"$ref was set alongside unsupported fields. If a schema node has $ref set, then only description and default can be set alongside it"
(answers of Google to users' tools, 2026). What a reference points to is written in its place, with what stood beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

import msgspec

Schema = dict[str, Any]

_BESIDE = frozenset({"$ref", "description", "default"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_SINGLE = frozenset(
    ["items", "not", "if", "then", "else", "contains", "contentSchema", "propertyNames", "additionalProperties"]
) | {"unevaluatedItems", "unevaluatedProperties", "additionalItems"}
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"}) | _DEFINITIONS
_ANNOTATIONS = frozenset(
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id"]
) | {"$anchor", *_DEFINITIONS}
# Keywords that are judged together: one of them says something else beside another.
_TOGETHER = {
    **dict.fromkeys(
        ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"), "additionalProperties"
    ),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "unevaluatedItems"), "items"),
    **dict.fromkeys(("contains", "minContains", "maxContains"), "contains"),
    **dict.fromkeys(("if", "then", "else"), "if"),
}
_MOST_COPIED = 262_144
"""How many bytes of JSON are written a second time, in places that refer to them: definitions that refer to each other twice double each
time."""


def with_lone_references(schema: Schema, lose: Callable[[Iterable[str]], None]) -> Schema:
    """Return a schema in which nothing but a description and a default stands beside a reference.

    `lose` is told the keywords that are left out beside one: where it is recursive, leads nowhere, or points to a schema that has the
    same keyword with another value.
    """
    if b'"$ref"' not in msgspec.json.encode(schema):
        return schema
    return _ReferenceInliner(schema, lose).inlined()


class _ReferenceInliner:
    """Writes what references point to in their place, in one schema."""

    def __init__(self, root: Schema, lose: Callable[[Iterable[str]], None]) -> None:
        self._root = root
        self._lose = lose
        self._sizes: dict[str, int] = {}
        self._copied = 0

    def inlined(self) -> Schema:
        """Return the schema with nothing but a description and a default beside a reference. What is given is not changed."""
        root, opened = self._alone(self._root, frozenset({"#"}), _BESIDE - {"description", "default"})
        made = {"": root}
        waiting: list[tuple[Any, Any, frozenset[str]]] = [(made, "", opened)]
        while waiting:
            holder, key, opened = waiting.pop()
            if not isinstance(holder[key], dict):
                continue
            node, opened = self._alone(holder[key], opened, _BESIDE)
            holder[key] = node = {**node}
            for keyword, value in node.items():
                if keyword in _LISTED and isinstance(value, list):
                    node[keyword] = copied = [*value]
                    waiting += [(copied, index, opened) for index in range(len(copied))]
                elif keyword in _NAMED and isinstance(value, dict):
                    node[keyword] = named = {**value}
                    # What is defined here is not inside of what was opened.
                    inside = frozenset({"#"}) if keyword in _DEFINITIONS else opened
                    waiting += [(named, name, inside) for name in named]
                elif keyword in _SINGLE:
                    waiting.append((node, keyword, opened))
        return made[""]

    def _alone(self, node: Schema, opened: frozenset[str], taken: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """Return a schema whose reference has only what is `taken` beside it, and the references that were opened on the way to it."""
        while isinstance(reference := node.get("$ref"), str) and not node.keys() <= taken:
            target = None if reference in opened else _target(self._root, reference)
            beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            if target is None or _contradict(target, beside) or not self._has_room(reference, target):
                if dropped := node.keys() - _BESIDE - _DEFINITIONS:
                    self._lose(sorted(dropped))
                return {keyword: value for keyword, value in node.items() if keyword not in dropped}, opened
            node, opened = {**target, **beside}, opened | {reference}
        return node, opened

    def _has_room(self, reference: str, target: Schema) -> bool:
        if reference not in self._sizes:
            self._sizes[reference] = len(msgspec.json.encode(target))
        self._copied += self._sizes[reference]
        return self._copied <= _MOST_COPIED


def _contradict(target: Schema, beside: Schema) -> bool:
    """Whether two schemas cannot be written as one with the keywords of both."""
    groups: dict[str, list[str]] = {}
    for keyword in target.keys() - _ANNOTATIONS:
        groups.setdefault(_TOGETHER.get(keyword, keyword), []).append(keyword)
    for keyword in beside.keys() - _ANNOTATIONS:
        met = groups.get(_TOGETHER.get(keyword, keyword), [])
        if met and (met != [keyword] or target[keyword] != beside[keyword]):
            return True
    return False


def _target(root: Schema, reference: str) -> Schema | None:
    """Return the schema that a JSON Pointer into the same document names; None for anything else."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return None
    return found if isinstance(found, dict) else None
