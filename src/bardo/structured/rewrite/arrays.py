"""Write arrays as the target takes them: items with a type, tuples, and the rules about their number."""

from __future__ import annotations

from typing import Any

from bardo.structured.rewrite.inverse import items
from bardo.structured.rewrite.keywords import Schema, without
from bardo.structured.rewrite.place import Built, Place
from bardo.structured.rewrite.rules import as_evaluated, kept_rules


def build_array(node: Schema, place: Place) -> Built | None:
    """Return an array as the target takes it; None where no array is valid."""
    node = as_evaluated(node, "unevaluatedItems", "items", "unevaluated_as_items", place)
    if not node.get("prefixItems"):
        return _list(without(node, "prefixItems"), place)
    return (_tuple if "prefixItems" in place.subset.keywords else _tuple_as_list)(node, place)


def _list(node: Schema, place: Place) -> Built | None:
    built = place.build(node.get("items", True), "items")
    if built is None:
        return _empty(node, place)
    schema: Schema = {"type": "array", **kept_rules(node, ["array"], place)}
    if built.schema or "items" in node:
        schema["items"] = built.schema
    return Built(schema, items((), built.inverse))


def _empty(node: Schema, place: Place) -> Built | None:
    """Return an array without items, where it may be empty."""
    if node.get("minItems", 0) > 0 or ("contains" in node and node.get("minContains", 1) > 0):
        return None
    place.note("items_left_out", "lossless", "no item is valid there")
    rules = kept_rules({**without(node, "items"), "maxItems": 0}, ["array"], place)
    return Built({"type": "array", **rules, "items": {"type": "string"}})


def _tuple_as_list(node: Schema, place: Place) -> Built | None:
    first, rest = node["prefixItems"], node.get("items", True)
    place.drop("prefixItems", first, "items with a schema each are written as items of any of them")
    arms: list[Any] = [*first, *([] if rest is False else [rest])]
    most = {"maxItems": min(len(first), node.get("maxItems", len(first)))} if rest is False else {}
    any_of_them = {"anyOf": arms} if len(arms) > 1 else arms[0]
    return _list({**without(node, "prefixItems", "items"), **most, "items": any_of_them}, place)


def _tuple(node: Schema, place: Place) -> Built | None:
    first = node["prefixItems"]
    built = [place.build(one, "prefixItems", index) for index, one in enumerate(first)]
    valid = [one for one in built if one is not None]
    if len(valid) < len(built):
        return _shorter(node, built.index(None), place)
    further = place.build(node.get("items", True), "items")
    if further is None:
        node = {**node, "maxItems": min(len(first), node.get("maxItems", len(first)))}
        place.note("items_left_out", "lossless", "no item is valid after the first ones")
    schema = {"type": "array", **kept_rules(without(node, "prefixItems"), ["array"], place)}
    schema["prefixItems"] = [one.schema for one in valid]
    if further is not None and (further.schema or "items" in node):
        schema["items"] = further.schema
    return Built(schema, items([one.inverse for one in valid], further.inverse if further is not None else None))


def _shorter(node: Schema, length: int, place: Place) -> Built | None:
    """Return a tuple that ends before the first place where no item is valid."""
    if node.get("minItems", 0) > length:
        return None
    place.note("items_left_out", "lossless", f"no item is valid at {length}")
    return build_array({**node, "prefixItems": node["prefixItems"][:length], "items": False}, place)
