"""Walk a schema once, from its root down, and write each place as the target takes it."""

from __future__ import annotations

from typing import Any

from bardo.structured.rewrite.arrays import build_array
from bardo.structured.rewrite.built import Built
from bardo.structured.rewrite.combine import merged_all_of, one_of_as_any_of, rules_into_arms
from bardo.structured.rewrite.entries import Inexpressible, Place, Schema, Work
from bardo.structured.rewrite.inverse import Arms, Follow
from bardo.structured.rewrite.kinds import (
    const_as_enum,
    declared,
    may_list,
    one_arm_each,
    with_type,
    with_values_of_type,
)
from bardo.structured.rewrite.merge import sealed
from bardo.structured.rewrite.objects import build_object
from bardo.structured.rewrite.references import keeps, target_of, written_out
from bardo.structured.rewrite.rules import Lost, kept_rules
from bardo.structured.rewrite.words import json_type, parts, rules_of

_MOST_STEPS = 200
_SMALL = 40
"""Places of a definition that may be repeated for the sake of a description beside its reference."""
_TOLD = ("title", "description")


def build(schema: Any, place: Place, work: Work) -> Built | None:
    """Return a schema as the target takes it, with its inverse; None where no value can stand there.

    Raises Inexpressible where the target has no words for it.
    """
    work.enter(place)
    lost = Lost(place, work)
    node, place = settle(schema, place, work, lost, root=place.depth == 0)
    built = None if node is False or node is True else _built(node, place, work, lost)
    return None if built is None else Built(lost.told_in(built.schema), built.inverse)


def _built(node: Schema, place: Place, work: Work, lost: Lost) -> Built | None:
    if "$ref" in node:
        name = work.kept(node["$ref"])
        return Built({"$ref": f"#/$defs/{name}"}, Follow(name))
    if "anyOf" in node:
        return _arms(node, place, work)
    kinds = declared(node)
    if kinds is None:
        return _anything(node, place, work, lost)
    if kinds == ["object"] and "enum" not in node:
        return build_object(node, place, work, build)
    if kinds == ["array"] and "enum" not in node:
        return build_array(node, place, work, build)
    return _scalar(node, kinds, place, work, lost)


def settle(schema: Any, place: Place, work: Work, lost: Lost, *, root: bool) -> tuple[Schema | bool, Place]:
    """Return a node that is one thing: a reference, an `anyOf` alone, a typed node, or one that says nothing."""
    node: Schema | bool = {} if schema is True else schema
    for _ in range(_MOST_STEPS):
        if not isinstance(node, dict):
            return ({}, place) if node is True else (False, place)
        before = node
        node, place = _settled_once(node, place, work, lost, root=root)
        if node is before:
            return node, place
    raise Inexpressible(place.path, "its combinators cannot be taken apart")


def _settled_once(node: Schema, place: Place, work: Work, lost: Lost, *, root: bool) -> tuple[Schema | bool, Place]:
    if isinstance(node.get("$ref"), str):
        return _reference(node, place, work, root=root)
    if "const" in node:
        return const_as_enum(node, place, work), place
    if "allOf" in node:
        merged, place, beside = merged_all_of(node, place, work)
        for part in beside:
            for word, value in rules_of(part).items():
                lost.drop(word, value, f"{word} stands in two parts of allOf, which one schema cannot say")
        return merged, place
    if "oneOf" in node:
        return one_of_as_any_of(node, place, work), place
    if "anyOf" in node:
        alone = not rules_of({word: value for word, value in node.items() if word != "anyOf"})
        return (node if alone else rules_into_arms(node, place, work)), place
    return _typed_once(node, place, work), place


def _reference(node: Schema, place: Place, work: Work, *, root: bool) -> tuple[Schema | bool, Place]:
    reference = node["$ref"]
    beside = {word: value for word, value in node.items() if word != "$ref"}
    stays = keeps(reference, place, work) and not root
    if stays and not rules_of(beside) and not (any(word in beside for word in _TOLD) and _is_small(reference, work)):
        for word in beside:
            work.note("annotation_stripped", place, "lossless", f"{word} cannot stand beside a reference")
        return (node if not beside else {"$ref": reference}), place
    written, opened = written_out(node, place, work)
    if stays and isinstance(written, dict) and written == {"$ref": reference}:
        return (node if node == written else written), opened
    return written, opened


def _is_small(reference: str, work: Work) -> bool:
    """Return whether a definition may be repeated for the sake of a description beside the reference."""
    if reference in work.recursive:
        return False
    waiting, count = [target_of(reference, work.root)], 0
    while waiting and count <= _SMALL:
        one = waiting.pop()
        count += 1
        waiting.extend(part for _, part in parts(one) if isinstance(part, dict)) if isinstance(one, dict) else None
    return count <= _SMALL


def _typed_once(node: Schema, place: Place, work: Work) -> Schema | bool:
    """Return a node one step nearer to saying its type as the target takes it."""
    kinds = declared(node)
    if kinds is None:
        return with_type(node, place, work)
    if not kinds:
        return False
    if "enum" in node:
        fitting = with_values_of_type(node, kinds, place, work)
        if fitting is not node or not node["enum"]:
            return fitting if node["enum"] else False
    if len(kinds) > 1 and not may_list(node, kinds, work):
        return one_arm_each(node, kinds, place, work)
    if kinds == ["object"] and "enum" in node:
        return _object_constants(node, place, work)
    return node


def _object_constants(node: Schema, place: Place, work: Work) -> Schema:
    """Return objects of an enum as closed objects whose members are constants."""
    # An enum looks at no member, so to its node every member is one it did not speak of.
    rest = {word: value for word, value in sealed(node).items() if word != "enum"}
    work.note("enum_as_objects", place, "lossless", "objects of an enum are said member by member")
    arms = [_constant(value) for value in node["enum"]]
    return {**rest, "allOf": [*rest.get("allOf", ()), arms[0] if len(arms) == 1 else {"anyOf": arms}]}


def _constant(value: dict[str, Any]) -> Schema:
    members = {name: {"const": one} for name, one in value.items()}
    return {"type": "object", "properties": members, "required": list(value), "additionalProperties": False}


def _arms(node: Schema, place: Place, work: Work) -> Built | None:
    """Return an `anyOf` with the arms that can hold something; one arm alone stands for itself."""
    found = [build(arm, place.inside("anyOf", index), work) for index, arm in enumerate(node["anyOf"])]
    kept = [one for one in found if one is not None]
    if len(kept) < len(found):
        work.note("arm_left_out", place, "lossless", "an arm that can hold nothing is left out")
    told = {word: node[word] for word in _TOLD if word in node and word in work.subset.annotations}
    for word in node.keys() - {"anyOf", *told}:
        work.note("annotation_stripped", place, "lossless", f"{word} is not taken, and makes no answer invalid")
    if len(kept) <= 1:
        return None if not kept else _only(kept[0], told)
    return _joined(kept, told, place, work)


def _only(one: Built, told: Schema) -> Built:
    return Built(one.schema if "$ref" in one.schema else {**told, **one.schema}, one.inverse)


def _joined(kept: list[Built], told: Schema, place: Place, work: Work) -> Built:
    schemas = [one.schema for one in kept]
    inverse = Arms(tuple((one.schema, one.inverse) for one in kept), work.definitions)
    if work.subset.nullable and {"type": "null"} in schemas:
        others = [one for one in schemas if one != {"type": "null"}]
        work.note("null_as_nullable", place, "lossless", "null is said with nullable")
        if not others:
            return Built({**told, "type": "null"})
        said = others[0] if len(others) == 1 else {"anyOf": others}
        return Built({**told, **said, "nullable": True}, inverse if any(one.inverse for one in kept) else None)
    return Built({**told, "anyOf": schemas}, inverse if any(one.inverse is not None for one in kept) else None)


def _anything(node: Schema, place: Place, work: Work, lost: Lost) -> Built:
    for word in node:
        if word in rules_of(node):
            lost.drop(word, node[word])
    if not work.subset.untyped:
        raise Inexpressible(place.path, "a value of any type")
    return Built(
        kept_rules({word: one for word, one in node.items() if word not in rules_of(node)}, [], place, work, lost)
    )


def _scalar(node: Schema, kinds: list[str], place: Place, work: Work, lost: Lost) -> Built:
    schema: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds, **kept_rules(node, kinds, place, work, lost)}
    if "enum" in node:
        if kinds == ["array"]:
            lost.drop("enum", node["enum"], "arrays are not taken in an enum")
            return _array_without_enum(node, place, work)
        if work.subset.enum_types.issuperset({json_type(value) for value in node["enum"]}):
            schema["enum"] = node["enum"]
        else:
            lost.drop("enum", node["enum"], f"values of type {' or '.join(kinds)} are not taken in an enum")
    return Built(schema)


def _array_without_enum(node: Schema, place: Place, work: Work) -> Built:
    """Return an array whose enum was dropped."""
    built = build_array({word: value for word, value in node.items() if word != "enum"}, place, work, build)
    return built or Built({"type": "array", "items": {"type": "string"}})
