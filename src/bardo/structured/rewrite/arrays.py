"""Arrays: items with a type, tuples where the target takes them, and the rules about their number."""

from __future__ import annotations

from typing import Any

from bardo.structured.rewrite.built import Built, Walk
from bardo.structured.rewrite.entries import Place, Schema, Work
from bardo.structured.rewrite.inverse import Items
from bardo.structured.rewrite.rules import Lost, kept_rules


def build_array(node: Schema, place: Place, work: Work, walk: Walk) -> Built | None:
    """Return an array as the target takes it; None where no array can be said."""
    lost = Lost(place, work)
    node = _evaluated(node, place, work)
    if node.get("prefixItems"):
        return _tuple(node, place, work, walk, lost)
    items = node.get("items", True)
    built = walk(items, place.inside("items"), work)
    if built is None:
        return _empty(node, place, work, lost)
    rules = kept_rules(
        {word: value for word, value in node.items() if word != "prefixItems"}, ["array"], place, work, lost
    )
    schema: Schema = {"type": "array", **rules}
    if built.schema or "items" in node:
        schema["items"] = built.schema
    return Built(lost.told_in(schema), None if built.inverse is None else Items((), built.inverse))


def _evaluated(node: Schema, place: Place, work: Work) -> Schema:
    if "unevaluatedItems" not in node:
        return node
    rest = {word: value for word, value in node.items() if word != "unevaluatedItems"}
    work.note("unevaluated_as_items", place, "narrowing", "unevaluatedItems is said as items")
    return {"items": node["unevaluatedItems"], **rest}


def _empty(node: Schema, place: Place, work: Work, lost: Lost) -> Built | None:
    """Return an array without items, where it may be empty."""
    if node.get("minItems", 0) > 0 or ("contains" in node and node.get("minContains", 1) > 0):
        return None
    work.note("items_left_out", place, "lossless", "no item can stand there")
    limited = {word: value for word, value in node.items() if word not in ("items", "prefixItems")} | {"maxItems": 0}
    rules = kept_rules(limited, ["array"], place, work, lost)
    return Built(lost.told_in({"type": "array", **rules, "items": {"type": "string"}}))


def _tuple(node: Schema, place: Place, work: Work, walk: Walk, lost: Lost) -> Built | None:
    first, rest = node["prefixItems"], node.get("items", True)
    if "prefixItems" in work.subset.keywords:
        return _as_tuple(node, first, rest, place, work, walk, lost)
    lost.drop("prefixItems", first, "items with a schema each are said as items of any of them")
    arms: list[Any] = [*first, *([] if rest is False else [rest])]
    most = {"maxItems": min(len(first), node.get("maxItems", len(first)))} if rest is False else {}
    words = {word: value for word, value in node.items() if word not in ("prefixItems", "items")}
    loose = {**words, **most, "items": {"anyOf": arms} if len(arms) > 1 else arms[0]}
    built = build_array(loose, place, work, walk)
    return None if built is None else Built(lost.told_in(built.schema), built.inverse)


def _as_tuple(
    node: Schema, first: list[Any], rest: Any, place: Place, work: Work, walk: Walk, lost: Lost
) -> Built | None:
    built = [walk(one, place.inside("prefixItems", index), work) for index, one in enumerate(first)]
    said = [one for one in built if one is not None]
    if len(said) < len(built):
        return _shorter(node, built.index(None), place, work, walk)
    further = walk(rest, place.inside("items"), work)
    words = {word: value for word, value in node.items() if word != "prefixItems"}
    if further is None:
        words["maxItems"] = min(len(first), node.get("maxItems", len(first)))
        work.note("items_left_out", place, "lossless", "no item can stand after the first ones")
    schema: Schema = {
        "type": "array",
        **kept_rules(words, ["array"], place, work, lost),
        "prefixItems": [one.schema for one in said],
    }
    if further is not None and (further.schema or "items" in node):
        schema["items"] = further.schema
    steps = tuple(one.inverse for one in said)
    after = None if further is None else further.inverse
    acts = after is not None or any(step is not None for step in steps)
    return Built(lost.told_in(schema), Items(steps, after) if acts else None)


def _shorter(node: Schema, length: int, place: Place, work: Work, walk: Walk) -> Built | None:
    """Return a tuple that ends before the first place that can hold nothing."""
    if node.get("minItems", 0) > length:
        return None
    work.note("items_left_out", place, "lossless", f"no item can stand at {length}")
    shorter = {**node, "prefixItems": node["prefixItems"][:length], "items": False}
    return build_array(shorter, place, work, walk)
