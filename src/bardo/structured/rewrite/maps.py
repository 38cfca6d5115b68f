"""Members without a name of their own: maps, free objects, and maps said as an array of pairs."""

from __future__ import annotations

from typing import Any

from bardo.structured.rewrite.built import Built, Walk
from bardo.structured.rewrite.entries import Inexpressible, Place, Schema, Work
from bardo.structured.rewrite.inverse import Inverse, Pairs, Values
from bardo.structured.rewrite.merge import both
from bardo.structured.rewrite.rules import Lost, kept_rules


def with_further(
    node: Schema, schema: Schema, inverse: Inverse | None, place: Place, work: Work, walk: Walk, lost: Lost
) -> Built:
    """Return an object with what it says of members beside its properties."""
    further = node.get("additionalProperties", True)
    if further is False:
        return Built(lost.told_in({**schema, "additionalProperties": False}), inverse)
    if further is True or further == {}:
        return Built(lost.told_in(schema), inverse)
    if not work.subset.maps:
        lost.drop("additionalProperties", further)
        return Built(lost.told_in(schema), inverse)
    built = walk(further, place.inside("additionalProperties", optional=True), work)
    if built is None:
        return Built(lost.told_in({**schema, "additionalProperties": False}), inverse)
    if built.inverse is not None:
        inverse = Values(frozenset(node["properties"]), inverse, built.inverse)
    return Built(lost.told_in({**schema, "additionalProperties": built.schema}), inverse)


def without_properties(node: Schema, place: Place, work: Work, walk: Walk, lost: Lost) -> Built | None:
    """Return an empty object, one that may hold anything, or a map, whichever a node without properties is."""
    further = node.get("additionalProperties", True)
    if further is False:
        rules = kept_rules(node, ["object"], place, work, lost)
        return Built(lost.told_in({"type": "object", **rules, "properties": {}, "additionalProperties": False}))
    if further is True or further == {}:
        if not work.subset.free_objects:
            raise Inexpressible(place.path, "an object that may hold anything")
        return Built(lost.told_in({"type": "object", **kept_rules(node, ["object"], place, work, lost)}))
    if not work.subset.maps:
        return _as_pairs(node, further, place, work, walk, lost)
    node = {"properties": {}, **node}
    schema: Schema = {"type": "object", **kept_rules(node, ["object"], place, work, lost)}
    return with_further(node, schema, None, place, work, walk, lost)


def _as_pairs(node: Schema, further: Any, place: Place, work: Work, walk: Walk, lost: Lost) -> Built | None:
    """Return a map as an array of key and value."""
    value = walk(further, place.inside("additionalProperties"), work)
    names = node.get("propertyNames", True)
    key = walk(both({"type": "string"}, names), place.inside("propertyNames"), work)
    work.note("map_as_pairs", place, "lossless", "a map is said as an array of key and value, and read back as a map")
    closed: Schema = {"type": "object", "additionalProperties": False}
    if value is None or key is None:
        empty = {**node, "additionalProperties": False}
        return without_properties(empty, place, work, walk, lost)
    if key.schema.get("type") != "string":
        lost.drop("propertyNames", names)
        key = Built({"type": "string"})
    rules = kept_rules(
        {word: one for word, one in node.items() if word != "propertyNames"}, ["object"], place, work, lost
    )
    pair = {**closed, "properties": {"key": key.schema, "value": value.schema}, "required": ["key", "value"]}
    return Built(lost.told_in({**rules, "type": "array", "items": pair}), Pairs(value.inverse))
