"""Bring a schema to one form: a reference, an `anyOf` alone, or a node with its type. References are opened and combinators taken apart."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any, Literal, TypeAlias

from bardo.structured.rewrite.facts import exclude_each_other, target_of
from bardo.structured.rewrite.keywords import RULES, TITLES, Schema, parts, rules_of, without
from bardo.structured.rewrite.merge import UNEVALUATED, both, has_unevaluated, merge, sealed, with_part
from bardo.structured.rewrite.place import Inexpressible, Place
from bardo.structured.rewrite.scalars import const_as_enum, typed

_MOST_STEPS = 200
_MOST_PARTS = 500
_MOST_ARMS = 48
_SMALL = 40
"""Places of a definition that may be repeated for the sake of a description beside its reference."""

Node: TypeAlias = "Schema | bool"


def settle(schema: Any, place: Place) -> tuple[Schema | Literal[False], Place]:
    """Return a schema in one form, and the place with the references that were opened for it; False where no value is valid.

    Raises Inexpressible where its combinators cannot be taken apart.
    """
    node: Node = schema
    for _ in range(_MOST_STEPS):
        node = {} if node is True else node
        if not isinstance(node, dict):
            return False, place
        before = node
        node, place = _step(node, place)
        if node is before:
            return node, place
    raise Inexpressible(place.path, "its combinators cannot be taken apart")


def _step(node: Schema, place: Place) -> tuple[Node, Place]:
    if isinstance(node.get("$ref"), str):
        return _reference(node, place)
    if "const" in node:
        return const_as_enum(node, place), place
    if "allOf" in node:
        return _merged_all_of(node, place)
    if "oneOf" in node:
        return _one_of_as_any_of(node, place), place
    if "anyOf" in node:
        alone = not any(keyword in RULES for keyword in node if keyword != "anyOf")
        return node if alone else _rules_into_arms(node, place), place
    return typed(node, place), place


# References


def _reference(node: Schema, place: Place) -> tuple[Node, Place]:
    reference, beside = node["$ref"], without(node, "$ref")
    stays = _stays(reference, place)
    if stays and not rules_of(beside) and not (any(word in beside for word in TITLES) and _is_small(reference, place)):
        for keyword in beside:
            place.note("annotation_stripped", "lossless", f"{keyword} cannot stand beside a reference")
        return {"$ref": reference} if beside else node, place
    return _written_out(reference, beside, place)


def _stays(reference: str, place: Place) -> bool:
    """Return whether a reference may stay one. Raises Inexpressible for recursion that the target refuses."""
    refs, rewriting = place.subset.refs and place.depth > 0, place.rewriting
    if reference not in rewriting.recursive:
        return refs
    if place.subset.recursion == "refuse":
        raise Inexpressible(place.path, "it is recursive")
    return refs and not rewriting.unrolls


def _is_small(reference: str, place: Place) -> bool:
    """Return whether a definition may be repeated for the sake of a description beside the reference."""
    known = place.rewriting.small.get(reference)
    if known is None:
        places = [target_of(reference, place.rewriting.root)]
        for one in places:
            if isinstance(one, dict) and len(places) <= _SMALL:
                places.extend(part for _, _, part in islice(parts(one), _SMALL) if isinstance(part, dict))
        known = reference not in place.rewriting.recursive and len(places) <= _SMALL
        place.rewriting.small[reference] = known
    return known


def _opened_often(reference: str, place: Place) -> bool:
    return place.opened.count(reference) > (place.subset.unroll if place.rewriting.unrolls else 0)


def _written_out(reference: str, beside: Schema, place: Place) -> tuple[Node, Place]:
    """Return the target of a reference merged with the rules beside it; False where unrolled recursion has come to its end."""
    if _opened_often(reference, place):
        return _end_of_recursion(reference, beside, place), place
    rules, target = rules_of(beside), target_of(reference, place.rewriting.root)
    if rules or not place.subset.refs or place.rewriting.unrolls:
        place.note("reference_inlined", "lossless", f"{reference} is written out")
    if rules and has_unevaluated(target):
        # To the target, what stands beside the reference is unevaluated: only as a part of allOf it is read so.
        return with_part(beside, target), place.opening(reference)
    if not rules and isinstance(target, dict):
        return {**target, **beside}, place.opening(reference)
    return merge(beside, target), place.opening(reference)


def _end_of_recursion(reference: str, beside: Schema, place: Place) -> Node:
    if place.rewriting.unrolls:
        levels = f"{reference} is written out {place.subset.unroll} levels deep and ends there"
        place.note("recursion_unrolled", "narrowing", levels)
        return False
    if not place.subset.refs:
        raise Inexpressible(place.path, "it is recursive")
    for word in rules_of(beside):
        why = f"{word} cannot stand beside the recursive reference {reference}"
        place.note(f"{word}_dropped", "widening", why)
    return {"$ref": reference}


# Combinators


def _merged_all_of(node: Schema, place: Place) -> tuple[Node, Place]:
    """Return a node with the parts of its `allOf` merged into it; what two parts say in different ways is dropped."""
    merged: Node = without(node, "allOf")
    waiting: deque[Any] = deque(node["allOf"])
    beside: list[Schema] = []
    place.note("all_of_merged", "lossless", "allOf is written as one schema")
    for _ in range(_MOST_PARTS):
        if not waiting or not isinstance(merged, dict):
            break
        part, place = _opened_part(waiting.popleft(), place)
        if not isinstance(part, dict):
            merged = merge(merged, part)
            continue
        waiting.extend(part.get("allOf", ()))
        merged = merge(merged, _with_arms_of_both(merged, without(sealed(part), "allOf")))
        if isinstance(merged, dict):
            beside.extend(merged.pop("allOf", ()))
    else:
        raise Inexpressible(place.path, f"allOf has more than {_MOST_PARTS} parts")
    for part in beside:
        for keyword, value in rules_of(part).items():
            place.drop(keyword, value, f"{keyword} stands in two parts of allOf, which one schema cannot say")
    return merged, place


def _opened_part(part: Any, place: Place) -> tuple[Any, Place]:
    while isinstance(part, dict) and isinstance(part.get("$ref"), str):
        again = _opened_often(part["$ref"], place)
        part, place = _written_out(part["$ref"], without(part, "$ref"), place)
        if again and isinstance(part, dict):
            raise Inexpressible(place.path, "recursion stands inside an allOf")
    return part, place


def _with_arms_of_both(merged: Schema, part: Schema) -> Schema:
    """Return a part whose `anyOf` is multiplied with that of the schema it will be merged into."""
    if "anyOf" not in merged or "anyOf" not in part or len(merged["anyOf"]) * len(part["anyOf"]) > _MOST_ARMS:
        return part
    arms = [both(one, other) for one in merged.pop("anyOf") for other in part["anyOf"]]
    return {**part, "anyOf": arms}


def _one_of_as_any_of(node: Schema, place: Place) -> Schema:
    """Return a node with `anyOf` for `oneOf`: the same where no two arms can hold at once."""
    arms, rest = node["oneOf"], without(node, "oneOf")
    if exclude_each_other(arms, place.rewriting.root):
        place.note("one_of_as_any_of", "lossless", "no two arms of oneOf can hold at once")
    else:
        place.note("one_of_as_any_of", "widening", "a value may fit more than one arm of oneOf")
    return with_part(rest, {"anyOf": arms}) if "anyOf" in rest else {**rest, "anyOf": arms}


def _rules_into_arms(node: Schema, place: Place) -> Schema:
    """Return a node whose `anyOf` stands alone: each arm demands the rules beside it as well."""
    apart = {keyword: node[keyword] for keyword in UNEVALUATED if keyword in node}
    if apart:
        place.note("arms_apart", "narrowing", "what is unevaluated is looked for in each arm by itself")
    place.note("rules_into_arms", "lossless", "the rules beside anyOf are repeated in each arm")
    beside = rules_of(without(node, "anyOf", *UNEVALUATED))
    arms = [_arm_with(apart, both(beside, arm)) for arm in node["anyOf"]]
    return {"anyOf": arms, **{keyword: node[keyword] for keyword in node if keyword in TITLES}}


def _arm_with(apart: Schema, arm: Any) -> Any:
    if not apart or arm is False:
        return arm
    return dict(apart) if arm is True else {"allOf": [arm], **apart}
