"""The certain facts of a schema without a value: the types it admits, which schemas exclude each other, which references are recursive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from bardo.structured.bounds import resolve
from bardo.structured.rewrite.keywords import IN_PLACE, TYPES, Schema, comparable, json_type, parts, without
from bardo.values.errors import InvalidRequest

_DEEPEST = 12
_MOST_COMPARED = 48


def types_of(schema: Any, root: Schema, depth: int = 0) -> frozenset[str]:
    """Return the types a value may have; all where that is not certain. "number" stands for numbers that are not whole."""
    if schema is False:
        return frozenset()
    if schema is True or depth > _DEEPEST:
        return TYPES
    admitted = _listed_types(schema)
    values = _constants(schema)
    if values is not None:
        admitted &= {json_type(value) for value in values}
    if isinstance(schema.get("$ref"), str):
        admitted &= types_of(_target(schema["$ref"], root), root, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            admitted &= frozenset().union(*(types_of(arm, root, depth + 1) for arm in schema[keyword]))
    for part in schema.get("allOf", ()):
        admitted &= types_of(part, root, depth + 1)
    return admitted


def accepts_null(schema: Any) -> bool:
    """Return whether null is certainly valid: the schema says so in `type` or `enum`, alone or as an arm of `anyOf`."""
    if not isinstance(schema, dict):
        return schema is True
    keywords = schema.keys() - {"title", "description", "default", "examples"}
    if keywords == {"anyOf"}:
        return any(accepts_null(arm) for arm in schema["anyOf"])
    if "enum" in keywords and keywords <= {"enum", "type"}:
        return None in schema["enum"] and "null" in _listed_types(schema)
    # Rules about other types say nothing about null.
    return not keywords & _JUDGES_NULL and "null" in _listed_types(schema)


_JUDGES_NULL = frozenset(["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum"])


def exclude_each_other(arms: list[Any], root: Schema) -> bool:
    """Return whether certainly no value is valid under two of the schemas."""
    opened = [_resolve_root(arm, root) for arm in arms]
    if all(types_of(arm, root) == {"object"} for arm in opened) and _have_discriminator(opened):
        return True
    pairs = ((arm, other) for number, arm in enumerate(opened) for other in opened[:number])
    return len(arms) <= _MOST_COMPARED and all(disjoint(arm, other, root) for arm, other in pairs)


def _have_discriminator(arms: list[Schema]) -> bool:
    """Return whether all arms require one member that has other constants in each."""
    for name in arms[0].get("required", ()) if arms else ():
        constants = [_constants(_member(arm, name)) if name in arm.get("required", ()) else None for arm in arms]
        values = [comparable(value) for listed in constants for value in listed or ()]
        if None not in constants and len(values) == len(set(values)):
            return True
    return False


def disjoint(left: Any, right: Any, root: Schema, depth: int = 0) -> bool:
    """Return whether certainly no value is valid under both: by type, by enum, or by a member both require."""
    if depth > _DEEPEST:
        return False
    shared = types_of(left, root) & types_of(right, root)
    if not shared:
        return True
    left, right = _resolve_root(left, root), _resolve_root(right, root)
    if not isinstance(left, dict) or not isinstance(right, dict):
        return False
    ours, theirs = _constants(left), _constants(right)
    if ours is not None and theirs is not None:
        return {*map(comparable, ours)}.isdisjoint(map(comparable, theirs))
    required = {name for schema in (left, right) for name in schema.get("required", ())}
    return shared == {"object"} and any(
        disjoint(_member(left, name), _member(right, name), root, depth + 1) for name in required
    )


def _member(schema: Schema, name: str) -> Any:
    """Return what an object schema by itself says of one member."""
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    return True if schema.get("patternProperties") else schema.get("additionalProperties", True)


def _constants(schema: Any) -> list[Any] | None:
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _listed_types(schema: Schema) -> frozenset[str]:
    listed = schema.get("type", TYPES)
    types = frozenset([listed] if isinstance(listed, str) else listed)
    return types | {"integer"} if "number" in types else types


def _target(reference: str, root: Schema) -> Any:
    node = resolve(root, reference)
    return True if node is None else node


def _resolve_root(schema: Any, root: Schema) -> Any:
    """Return the target of a schema that is only a reference."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        target = _target(schema["$ref"], root)
        if not isinstance(target, dict):
            break
        schema = {**target, **without(schema, "$ref")}
    return schema


def target_of(reference: str, root: Schema) -> Any:
    """Return what a reference points to. Raises InvalidRequest where that is nothing, or another document."""
    target = resolve(root, reference)
    if isinstance(target, dict | bool):
        return target
    kind = "points to nothing" if reference.startswith("#") else "points to another document"
    hint = "point every $ref into the schema's own $defs, as #/$defs/name"
    raise InvalidRequest(f"the $ref {reference[:200]!r} {kind}", hint=hint, param="schema")


def recursive(root: Schema) -> frozenset[str]:
    """Return the references that lead back to themselves. Raises InvalidRequest where one leads nowhere or only to itself."""
    references = _references(root, lambda *_: True)
    for reference in sorted(_cyclic(_edges(references, root, lambda keyword, *_: keyword in IN_PLACE))):
        hint = "let the recursion pass through a property or an item"
        raise InvalidRequest(f"the $ref {reference!r} leads only back to itself", hint=hint, param="schema")
    return frozenset(_cyclic(_edges(references, root, _is_no_definition)))


def needs_unrolling(root: Schema, references: Iterable[str]) -> bool:
    """Return whether one of the recursive references leads back to itself through no property that may be left out."""
    return bool(_cyclic(_edges(references, root, _is_required)))


Counts: TypeAlias = Callable[[str, str | int, Schema], bool]
"""Whether a part of a schema is looked at: its keyword, its name or index there, and the schema it stands in."""


def _is_no_definition(keyword: str, *_: Any) -> bool:
    return keyword not in ("$defs", "definitions")


def _is_required(keyword: str, name: str | int, schema: Schema) -> bool:
    return _is_no_definition(keyword) and (keyword != "properties" or name in schema.get("required", ()))


def _edges(references: Iterable[str], root: Schema, counts: Counts) -> dict[str, set[str]]:
    """Return the references inside the target of each reference, as far as their places count."""
    return {reference: _references(target_of(reference, root), counts) for reference in references}


def _references(schema: Any, counts: Counts) -> set[str]:
    references: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                references.add(node["$ref"])
            waiting.extend(part for keyword, name, part in parts(node) if counts(keyword, name, node))
    return references


def _cyclic(edges: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes that reach themselves (Kosaraju's strongly connected components)."""
    backwards: dict[str, set[str]] = defaultdict(set)
    for node, others in edges.items():
        for other in others:
            backwards[other].add(node)
    seen: set[str] = set()
    finished = [node for start in edges for node in _finished(start, edges, seen)]
    seen, cyclic = set(), set[str]()
    for start in reversed(finished):
        component = _finished(start, backwards, seen)
        if len(component) > 1 or start in edges.get(start, ()):
            cyclic.update(component)
    return cyclic


def _finished(start: str, edges: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """Return the nodes that are reached from `start` and were not seen before, each after those it leads to."""
    finished: list[str] = []
    waiting = [(start, False)]
    while waiting:
        node, left = waiting.pop()
        if left:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            waiting += [(node, True), *((inner, False) for inner in edges.get(node, ()))]
    return finished
