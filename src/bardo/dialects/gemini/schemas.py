"""Schemas in Google's own words and in JSON Schema's, and schemas whose references Google takes.

Google's own Schema has fewer words than JSON Schema, and spells some of them otherwise. What a reference points to is written in its
place, with what stood beside it: "$ref was set alongside unsupported fields. If a schema node has $ref set, then only description and
default can be set alongside it" (answers of Google to users' tools, 2026).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from bardo.dialects.gemini.wire import camel
from bardo.dialects.shared.json_values import JsonObject

_NODES = ("items", "anyOf", "properties")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


def json_schema(schema: JsonObject) -> JsonObject:
    """Return a schema in JSON Schema's words; one that already is comes back equal. Raises RecursionError on absurd nesting."""
    words = {name if name.startswith("$") else camel(name): value for name, value in schema.items()}
    nullable = words.pop("nullable", None) is True
    converted = {_RENAMED.get(name, name): _converted(name, value) for name, value in words.items()}
    return _with_null(converted) if nullable else converted


def declared_parameters(body: JsonObject) -> Iterator[object]:
    """Yield the `parameters` of all functions that a client's body declares."""
    for tool in _objects(body.get("tools")):
        for declared in (value for name, value in tool.items() if camel(name) == "functionDeclarations"):
            yield from (tool["parameters"] for tool in _objects(declared) if tool.get("parameters") is not None)


def _objects(value: object) -> list[JsonObject]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def untaken_word(schema: object, known: Collection[str]) -> str:
    """Return a word of a schema that Google's own Schema, whose fields are `known`, does not take so; empty where it takes all."""
    waiting = [schema] if known else []
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            return json.dumps(node)
        for name, value in node.items():
            word = name if name.startswith("$") else camel(name)
            if word not in known or (word == "type" and not isinstance(value, str)):
                return str(name)
            if word in _NODES and isinstance(value, (dict, list)):
                is_node = word == "items"
                waiting += [value] if is_node else value.values() if isinstance(value, dict) else value
    return ""


_RENAMED = {"defs": "$defs", "ref": "$ref"}
_OF_SCHEMAS = frozenset({"items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"})
_OF_NAMED_SCHEMAS = frozenset({"properties", "defs", "$defs"})


def _converted(name: str, value: object) -> object:
    if name == "type":
        return _lower(value)
    if name in _OF_SCHEMAS:
        if isinstance(value, list) and name != "additionalProperties":
            return [_of_schema(item) for item in value]
        return _of_schema(value)
    if name in _OF_NAMED_SCHEMAS and isinstance(value, dict):
        return {name: _of_schema(schema) for name, schema in value.items()}
    if name in _COUNTS and isinstance(value, str) and value.isdecimal():
        # Google writes 64-bit numbers as strings.
        return int(value)
    return value


def _of_schema(value: object) -> object:
    return json_schema(value) if isinstance(value, dict) else value


def _lower(value: object) -> object:
    if isinstance(value, list):
        return [_lower(item) for item in value]
    return value.lower() if isinstance(value, str) else value


def _with_null(schema: JsonObject) -> JsonObject:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if kind is None and isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return schema


_BESIDE = frozenset({"$ref", "description", "default"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_SINGLE = frozenset(
    ["items", "not", "if", "then", "else", "contains", "contentJsonObject", "propertyNames", "additionalProperties"]
) | {"unevaluatedItems", "unevaluatedProperties", "additionalItems"}
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED = frozenset({"properties", "patternProperties", "dependentJsonObjects"}) | _DEFINITIONS
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


def with_lone_references(schema: JsonObject, lose: Callable[[Iterable[str]], None]) -> JsonObject:
    """Return a schema in which nothing but a description and a default stands beside a reference.

    `lose` is told the keywords that are left out beside one: where it is recursive, leads nowhere, or points to a schema that has the
    same keyword with another value.
    """
    if b'"$ref"' not in msgspec.json.encode(schema):
        return schema
    return _ReferenceInliner(schema, lose).inlined()


class _ReferenceInliner:
    """Writes what references point to in their place, in one schema."""

    def __init__(self, root: JsonObject, lose: Callable[[Iterable[str]], None]) -> None:
        self._root = root
        self._lose = lose
        self._sizes: dict[str, int] = {}
        self._copied = 0

    def inlined(self) -> JsonObject:
        """Return the schema with nothing but a description and a default beside a reference. The argument is not changed."""
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
                    # The definitions here are not inside the opened reference.
                    inside = frozenset({"#"}) if keyword in _DEFINITIONS else opened
                    waiting += [(named, name, inside) for name in named]
                elif keyword in _SINGLE:
                    waiting.append((node, keyword, opened))
        return made[""]

    def _alone(
        self, node: JsonObject, opened: frozenset[str], taken: frozenset[str]
    ) -> tuple[JsonObject, frozenset[str]]:
        """Return a schema whose reference has only the `taken` keywords beside it, and the references that were opened on the way to it."""
        while isinstance(reference := node.get("$ref"), str) and not node.keys() <= taken:
            target = None if reference in opened else _target(self._root, reference)
            beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            if target is None or _contradict(target, beside) or not self._has_room(reference, target):
                if dropped := node.keys() - _BESIDE - _DEFINITIONS:
                    self._lose(sorted(dropped))
                return {keyword: value for keyword, value in node.items() if keyword not in dropped}, opened
            node, opened = {**target, **beside}, opened | {reference}
        return node, opened

    def _has_room(self, reference: str, target: JsonObject) -> bool:
        if reference not in self._sizes:
            self._sizes[reference] = len(msgspec.json.encode(target))
        self._copied += self._sizes[reference]
        return self._copied <= _MOST_COPIED


def _contradict(target: JsonObject, beside: JsonObject) -> bool:
    """Whether two schemas cannot be written as one with the keywords of both."""
    groups: dict[str, list[str]] = {}
    for keyword in target.keys() - _ANNOTATIONS:
        groups.setdefault(_TOGETHER.get(keyword, keyword), []).append(keyword)
    for keyword in beside.keys() - _ANNOTATIONS:
        met = groups.get(_TOGETHER.get(keyword, keyword), [])
        if met and (met != [keyword] or target[keyword] != beside[keyword]):
            return True
    return False


def _target(root: JsonObject, reference: str) -> JsonObject | None:
    """Return the schema that a JSON Pointer into the same document names; None for anything else."""
    if not reference.startswith("#/"):
        return None
    node: object = root
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, dict) and name in node:
            node = node[name]
        else:
            return None
    return node if isinstance(node, dict) else None
