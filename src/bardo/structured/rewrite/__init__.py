"""Rewrite a caller's JSON Schema into what a target takes, with an entry for each change and the inverse for the answer.

The schema is walked once from its root down, then its definitions. Each is first brought to one form: a reference, an `anyOf` alone, or
a node with its type. References are opened and combinators taken apart. `objects.py` writes what has parts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from bardo.structured.rewrite.facts import exclude_each_other, recursive, target_of
from bardo.structured.rewrite.inverse import Inverse, arms, changes, follow, items, unwrapped
from bardo.structured.rewrite.keywords import (
    RULES,
    TITLES,
    Schema,
    is_older,
    modern,
    parts,
    rules_of,
    with_parts,
    without,
)
from bardo.structured.rewrite.merge import UNEVALUATED, both, has_unevaluated, merge, sealed, with_part
from bardo.structured.rewrite.objects import build_object
from bardo.structured.rewrite.place import Effect, Inexpressible, Place, Rewrite, RewriteContext, RewrittenPart
from bardo.structured.rewrite.rules import (
    as_evaluated,
    build_anything,
    build_scalar,
    check_limits,
    const_as_enum,
    kept_rules,
    typed,
    types_listed,
)
from bardo.structured.subsets import Subset

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
    small = place.rewriting.small.get(reference)
    if small is None:
        places = [target_of(reference, place.rewriting.root)]
        for node in places:
            if isinstance(node, dict) and len(places) <= _SMALL:
                places.extend(part for _, _, part in islice(parts(node), _SMALL) if isinstance(part, dict))
        small = reference not in place.rewriting.recursive and len(places) <= _SMALL
        place.rewriting.small[reference] = small
    return small


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
    return {**part, "anyOf": [both(arm, other) for arm in merged.pop("anyOf") for other in part["anyOf"]]}


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


WRAPPER = "value"
_WRAPPED = f"the answer stands in an object, as its member {WRAPPER}"


@dataclass(frozen=True, slots=True)
class RewrittenSchema:
    """A schema as a target takes it, what was changed, and the inverse for answers. It is shared: nothing in it may be changed."""

    schema: Schema
    rewrites: tuple[Rewrite, ...] = ()
    # It follows from the schema that was rewritten, and functions are not compared.
    _inverse: Inverse | None = field(default=None, compare=False)

    @property
    def changes_answers(self) -> bool:
        """Whether an answer differs from what the caller is given."""
        return self._inverse is not None

    def restore(self, value: Any) -> Any:
        """Return an answer under this schema as one under the caller's; of another shape, as it is."""
        if self._inverse is None:
            return value
        try:
            return self._inverse.restore(value)
        except RecursionError:
            return value


def rewrite(schema: Schema | bool, subset: Subset) -> RewrittenSchema:
    """Return a valid JSON Schema as `subset` takes it.

    Raises Inexpressible where the subset has no keywords for it, and InvalidRequest where a reference leads nowhere.
    """
    root = schema if isinstance(schema, dict) else {} if schema else {"not": {}}
    if subset.verbatim:
        return _verbatim(root, subset)
    older = is_older(root)
    place = Place(RewriteContext(modern(root) if older else root, subset, _build))
    if older:
        place.note("draft_updated", "lossless", "an older draft is written in the keywords of 2020-12")
    return _rewritten(place, place.rewriting)


def _rewritten(place: Place, rewriting: RewriteContext) -> RewrittenSchema:
    built = _build(rewriting.root, place)
    if built is None:
        raise Inexpressible("", "no value at all is valid")
    schema, inverse = dict(built.schema), built.inverse
    if rewriting.subset.root_object and (schema.get("type") != "object" or "nullable" in schema):
        place.note("root_wrapped", "lossless", _WRAPPED)
        schema, inverse = _wrapped(schema), unwrapped(WRAPPER, inverse)
    _build_definitions(rewriting)
    if rewriting.definitions:
        schema["$defs"] = rewriting.definitions
    check_limits(schema, rewriting.subset.limits)
    return RewrittenSchema(schema, tuple(rewriting.entries), inverse if changes(inverse, rewriting.inverses) else None)


def _build_definitions(rewriting: RewriteContext) -> None:
    """Rewrite the bodies of all kept definitions, including those that only definitions need."""
    while rewriting.waiting:
        reference, name = rewriting.waiting.popleft()
        place = Place(rewriting, reference.removeprefix("#"), depth=1)
        built = _build(target_of(reference, rewriting.root), place)
        if built is None:
            raise Inexpressible(place.path, "no value is valid under this definition")
        rewriting.definitions[name], rewriting.inverses[name] = built.schema, built.inverse
        if reference != f"#/$defs/{name}":
            place.note("definitions_moved", "lossless", f"{reference} stands in $defs as {name}")


# One place


def _build(schema: Any, place: Place) -> RewrittenPart | None:
    """Return a schema as the target takes it, with its inverse, or None if no value is valid. Raises Inexpressible."""
    place.enter()
    node, place = settle(schema, place)
    built = None if node is False else _built(node, place)
    return None if built is None else RewrittenPart(place.described(built.schema), built.inverse)


def _built(node: Schema, place: Place) -> RewrittenPart | None:
    if "$ref" in node:
        name = place.rewriting.name_of(node["$ref"])
        return RewrittenPart({"$ref": f"#/$defs/{name}"}, follow(name, place.rewriting.inverses))
    if "anyOf" in node:
        return _any_of(node, place)
    types = types_listed(node)
    if types is None:
        return build_anything(node, place)
    if types == ["object"] and "enum" not in node:
        return build_object(node, place)
    if types == ["array"]:
        return _array(node, place)
    return build_scalar(node, types, place)


def _any_of(node: Schema, place: Place) -> RewrittenPart | None:
    """Return an `anyOf` with the arms under which a value is valid; one arm alone stands for itself."""
    built = [place.build(arm, "anyOf", index) for index, arm in enumerate(node["anyOf"])]
    valid = [arm for arm in built if arm is not None]
    if len(valid) < len(built):
        place.note("arm_left_out", "lossless", "an arm under which no value is valid is left out")
    titles = {keyword: node[keyword] for keyword in TITLES if keyword in node and keyword in place.subset.annotations}
    for keyword in node.keys() - {"anyOf", *titles}:
        place.note("annotation_stripped", "lossless", f"{keyword} is not taken, and makes no answer invalid")
    if len(valid) > 1:
        return _union(valid, titles, place)
    return next(
        (
            RewrittenPart({**titles, **arm.schema} if "$ref" not in arm.schema else arm.schema, arm.inverse)
            for arm in valid
        ),
        None,
    )


def _union(valid: list[RewrittenPart], titles: Schema, place: Place) -> RewrittenPart:
    schemas = [arm.schema for arm in valid]
    inverse = arms([(arm.schema, arm.inverse) for arm in valid], place.rewriting.definitions)
    if not place.subset.nullable or {"type": "null"} not in schemas:
        return RewrittenPart({**titles, "anyOf": schemas}, inverse)
    others = [schema for schema in schemas if schema != {"type": "null"}]
    place.note("null_as_nullable", "lossless", "null is written as nullable")
    if not others:
        return RewrittenPart({**titles, "type": "null"})
    return RewrittenPart(
        {**titles, **(others[0] if len(others) == 1 else {"anyOf": others}), "nullable": True}, inverse
    )


def _array(node: Schema, place: Place) -> RewrittenPart | None:
    if "enum" not in node:
        return _build_array(node, place)
    place.drop("enum", node["enum"], "arrays are not taken in an enum")
    return _build_array(without(node, "enum"), place) or RewrittenPart({"type": "array", "items": {"type": "string"}})


# The root


def _wrapped(schema: Schema) -> Schema:
    return {"type": "object", "properties": {WRAPPER: schema}, "required": [WRAPPER], "additionalProperties": False}


def _verbatim(root: Schema, subset: Subset) -> RewrittenSchema:
    """Return a schema as it is, save keywords of the root that are refused, and an object around a root that is none."""
    recursive(root)
    why = "is not taken, and makes no answer invalid"
    entries = [_of_root("annotation_stripped", f"{word} {why}") for word in root if word in subset.stripped]
    schema = without(root, *subset.stripped)
    if subset.root_object and schema.get("type") != "object" and (opened := _resolve_root(schema, root)) is not None:
        entries.append(_of_root("root_opened", f"the root is written out, in place of its reference {schema['$ref']}"))
        schema = opened
    if not subset.root_object or schema.get("type") == "object":
        return RewrittenSchema(schema, tuple(entries))
    dialect = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    wrapped = {**dialect, **_wrapped(without(_with_moved_references(schema), "$schema"))}
    return RewrittenSchema(wrapped, (*entries, _of_root("root_wrapped", _WRAPPED)), unwrapped(WRAPPER, None))


def _of_root(kind: str, note: str) -> Rewrite:
    return Rewrite(kind=kind, path="", effect="lossless", note=note)


# What may stand beside a root's reference without ruling anything out.
_BESIDE = frozenset({"$ref", "$schema", "$id", "$comment", "$defs", "definitions", "title", "description"})


def _resolve_root(schema: Schema, root: Schema) -> Schema | None:
    """Return a root that is only a reference to an object as that object: so Python's libraries write a class. Else None."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or schema.keys() - _BESIDE:
        return None
    target = target_of(reference, root)
    if not isinstance(target, dict) or target.get("type") != "object" or target.keys() & {"$id", "$anchor", "$defs"}:
        return None
    return {**without(schema, "$ref"), **target}


def _with_moved_references(schema: Any) -> Any:
    """Return a schema whose references point into the wrapper around the root."""
    if not isinstance(schema, dict):
        return schema
    moved = with_parts(schema, _with_moved_references)
    if isinstance(moved.get("$ref"), str):
        moved["$ref"] = f"#/properties/{WRAPPER}{moved['$ref'][1:]}"
    return moved


def _build_array(node: Schema, place: Place) -> RewrittenPart | None:
    """Return an array as the target takes it, or None if no array is valid."""
    node = as_evaluated(node, "unevaluatedItems", "items", "unevaluated_as_items", place)
    if not node.get("prefixItems"):
        return _list(without(node, "prefixItems"), place)
    return (_tuple if "prefixItems" in place.subset.keywords else _tuple_as_list)(node, place)


def _list(node: Schema, place: Place) -> RewrittenPart | None:
    built = place.build(node.get("items", True), "items")
    if built is None:
        if node.get("minItems", 0) > 0 or ("contains" in node and node.get("minContains", 1) > 0):
            return None
        place.note("items_left_out", "lossless", "no item is valid there")
        rules = kept_rules({**without(node, "items"), "maxItems": 0}, ["array"], place)
        return RewrittenPart({"type": "array", **rules, "items": {"type": "string"}})
    schema: Schema = {"type": "array", **kept_rules(node, ["array"], place)}
    if built.schema or "items" in node:
        schema["items"] = built.schema
    return RewrittenPart(schema, items((), built.inverse))


def _tuple_as_list(node: Schema, place: Place) -> RewrittenPart | None:
    first, rest = node["prefixItems"], node.get("items", True)
    place.drop("prefixItems", first, "items with a schema each are written as items of any of them")
    arms: list[Any] = [*first, *([] if rest is False else [rest])]
    most = {"maxItems": min(len(first), node.get("maxItems", len(first)))} if rest is False else {}
    any_of_them = {"anyOf": arms} if len(arms) > 1 else arms[0]
    return _list({**without(node, "prefixItems", "items"), **most, "items": any_of_them}, place)


def _tuple(node: Schema, place: Place) -> RewrittenPart | None:
    first = node["prefixItems"]
    built = [place.build(item, "prefixItems", index) for index, item in enumerate(first)]
    valid = [item for item in built if item is not None]
    if len(valid) < len(built):
        length = built.index(None)
        if node.get("minItems", 0) > length:
            return None
        place.note("items_left_out", "lossless", f"no item is valid at {length}")
        return _build_array({**node, "prefixItems": node["prefixItems"][:length], "items": False}, place)
    further = place.build(node.get("items", True), "items")
    if further is None:
        node = {**node, "maxItems": min(len(first), node.get("maxItems", len(first)))}
        place.note("items_left_out", "lossless", "no item is valid after the first ones")
    schema = {"type": "array", **kept_rules(without(node, "prefixItems"), ["array"], place)}
    schema["prefixItems"] = [item.schema for item in valid]
    if further is not None and (further.schema or "items" in node):
        schema["items"] = further.schema
    return RewrittenPart(
        schema, items([item.inverse for item in valid], further.inverse if further is not None else None)
    )


__all__ = ["Effect", "Inexpressible", "Rewrite", "RewrittenSchema", "rewrite"]
