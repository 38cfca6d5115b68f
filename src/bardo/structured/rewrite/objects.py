"""Write objects as the target takes them: closed, every property required where it demands so, and members without a name of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bardo.structured.rewrite.facts import accepts_null, types_of
from bardo.structured.rewrite.inverse import Inverse, members, pairs
from bardo.structured.rewrite.keywords import Schema, without
from bardo.structured.rewrite.merge import both
from bardo.structured.rewrite.place import Inexpressible, Place, RewrittenPart
from bardo.structured.rewrite.rules import as_evaluated, kept_rules

_NULL: Schema = {"type": "null"}


def build_object(node: Schema, place: Place) -> RewrittenPart | None:
    """Return an object as the target takes it; None where no object is valid."""
    node = as_evaluated(node, "unevaluatedProperties", "additionalProperties", "unevaluated_as_additional", place)
    node = _with_all_named(node, place)
    if not node.get("properties"):
        return _without_properties(node, place)
    node = _with_closed_properties(node, place)
    built = _built_members(node, place)
    if built is None:
        return None
    schema = {
        "type": "object",
        **_kept_rules(node, len(built.schemas), place),
        **_property_keywords(node, built, place),
    }
    further, inverse = _further(node, place)
    return RewrittenPart({**schema, **further}, built.inverse(inverse))


def _kept_rules(node: Schema, count: int, place: Place) -> Schema:
    """Return what stays beside the shape; counts that hold in any case are left out."""
    left = dict(node)
    if left.get("minProperties", 0) <= len(node.get("required", ())):
        left.pop("minProperties", None)
    if node.get("additionalProperties") is False and left.get("maxProperties", count) >= count:
        left.pop("maxProperties", None)
    if len(left) != len(node):
        place.note("rule_without_effect", "lossless", "the count of members follows from the properties")
    return kept_rules(left, ["object"], place)


# Members with a name


@dataclass(slots=True)
class _Members:
    """The rewritten properties of one object; those in `nulls` are null instead of left out."""

    schemas: dict[str, Schema] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    nulls: set[str] = field(default_factory=set)
    inverses: dict[str, Inverse] = field(default_factory=dict)

    def inverse(self, rest: Inverse | None) -> Inverse | None:
        """Return the inverse for the members; `rest` is that for members without a name of their own."""
        if not self.nulls and not self.inverses and rest is None:
            return None
        return members(frozenset(self.nulls), self.inverses, frozenset(self.schemas), rest)


def _built_members(node: Schema, place: Place) -> _Members | None:
    """Rewrite each property. Returns None where no value is valid for a required one."""
    built = _Members()
    required = frozenset(node.get("required", ()))
    for name, schema in node["properties"].items():
        one = place.build(schema, "properties", name)
        if one is not None:
            _add(built, name, schema, one, place, required=name in required)
        elif name in required:
            return None
        elif node.get("additionalProperties") is not False:
            # In an open object a member without a schema could hold anything.
            raise Inexpressible(place.path, f"it is open, and its property {name} must not be there")
        else:
            place.inside("properties", name).note("property_left_out", "lossless", "no value is valid there")
    return built


def _add(built: _Members, name: str, before: Any, one: RewrittenPart, place: Place, *, required: bool) -> None:
    built.schemas[name] = one.schema
    if one.inverse is not None:
        built.inverses[name] = one.inverse
    if required:
        built.required.append(name)
    elif _must_be_required(place):
        built.required.append(name)
        _add_null(built, name, before, place)


def _add_null(built: _Members, name: str, before: Any, place: Place) -> None:
    """Let a required property be null where the caller's may be left out."""
    inside = place.inside("properties", name)
    if accepts_null(before):
        inside.note("optional_required", "narrowing", "it cannot be left out; null stands for that too")
        return
    built.nulls.add(name)
    built.schemas[name] = _nullable(built.schemas[name], place)
    rejected = "null" not in types_of(before, place.rewriting.root)
    note = "it is null instead of left out; nulls are taken out of the answer"
    inside.note("optional_nullable", "lossless" if rejected else "narrowing", note)


def _must_be_required(place: Place) -> bool:
    """Return whether a property may not be left out: nowhere, or beyond the number of optional ones that a target takes."""
    rewriting = place.rewriting
    if place.subset.all_required or rewriting.optional_left is None:
        return place.subset.all_required
    rewriting.optional_left -= 1
    return rewriting.optional_left < 0


def _nullable(schema: Schema, place: Place) -> Schema:
    """Return a schema that also admits null."""
    kind = schema.get("type")
    if place.subset.nullable:
        return {**schema, "nullable": True}
    if place.subset.type_arrays and kind in ("boolean", "integer", "number", "string") and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    if schema.keys() == {"anyOf"}:
        return schema if _NULL in schema["anyOf"] else {"anyOf": [*schema["anyOf"], _NULL]}
    return {"anyOf": [schema, _NULL]}


def _property_keywords(node: Schema, built: _Members, place: Place) -> Schema:
    """Return the keywords that list the properties."""
    listed: Schema = {"properties": built.schemas}
    if built.required:
        listed["required"] = built.required
    if "propertyOrdering" in place.subset.keywords and len(built.schemas) > 1:
        place.note("ordered", "lossless", "the order of the properties is added")
        listed["propertyOrdering"] = list(built.schemas)
    required = node.get("required", [])
    if required != built.required and set(required) == set(built.required):
        place.note("ordered", "lossless", "required stands in the order of the properties")
    return listed


def _with_all_named(node: Schema, place: Place) -> Schema:
    """Return an object in which every required member is a property, and properties say what patterns of names demand of them."""
    properties = dict(node.get("properties", {}))
    patterns = node.get("patternProperties") or {}
    for name in [*properties, *node.get("required", ())]:
        demanded = [one for pattern, one in patterns.items() if _finds(pattern, name)]
        if name not in properties:
            place.note("property_added", "lossless", f"the required member {name} is written as a property")
            properties[name] = True if demanded else node.get("additionalProperties", True)
        for one in demanded:
            properties[name] = both(properties[name], one)
    named = {**node, "properties": properties} if properties else node
    return _without_patterns(named, place) if "patternProperties" in node else named


def _finds(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _without_patterns(node: Schema, place: Place) -> Schema:
    patterns, rest = node["patternProperties"], without(node, "patternProperties")
    closed, named = node.get("additionalProperties") is False, bool(node.get("properties"))
    if not patterns:
        return rest
    if closed and not named and len(patterns) == 1:
        ((pattern, one),) = patterns.items()
        place.note("patterns_as_map", "lossless", "the one pattern of names is a rule for all names")
        names = both(node.get("propertyNames", True), {"pattern": pattern})
        return {**rest, "additionalProperties": one, "propertyNames": names}
    if named and (closed or (place.subset.closed and node.get("additionalProperties", True) is True)):
        place.note("patterns_closed", "narrowing", "members named by a pattern are no longer possible")
        return {**rest, "additionalProperties": False}
    place.drop("patternProperties", patterns)
    # What holds for members outside the patterns would now bind those inside, which is another rule.
    return without(rest, "additionalProperties")


def _with_closed_properties(node: Schema, place: Place) -> Schema:
    """Return an object with properties as open as the target takes it."""
    further = node.get("additionalProperties", True)
    maps = place.subset.maps and not _is_any(further)
    if further is False or maps or not place.subset.closed:
        return node
    place.note("closed", "narrowing", "members beside the properties are no longer possible")
    return {**node, "additionalProperties": False}


def _is_any(schema: Any) -> bool:
    return schema is True or schema == {}


# Members without a name of their own


def _further(node: Schema, place: Place) -> tuple[Schema, Inverse | None]:
    """Return the keyword about members beside the properties, where it stays, and the inverse for them."""
    further = node.get("additionalProperties", True)
    if _is_any(further):
        return {}, None
    if further is not False and not place.subset.maps:
        place.drop("additionalProperties", further)
        return {}, None
    built = None if further is False else place.build(further, "additionalProperties")
    return (
        ({"additionalProperties": False}, None)
        if built is None
        else ({"additionalProperties": built.schema}, built.inverse)
    )


def _without_properties(node: Schema, place: Place) -> RewrittenPart | None:
    """Return an empty object, one that may hold anything, or a map, whichever a node without properties is."""
    further = node.get("additionalProperties", True)
    if further is False:
        rules = kept_rules(node, ["object"], place)
        return RewrittenPart({"type": "object", **rules, "properties": {}, "additionalProperties": False})
    if _is_any(further):
        if not place.subset.free_objects:
            raise Inexpressible(place.path, "an object that may hold anything")
        return RewrittenPart({"type": "object", **kept_rules(node, ["object"], place)})
    if not place.subset.maps:
        return _as_pairs(node, further, place)
    schema = {"type": "object", **kept_rules(node, ["object"], place)}
    rest, inverse = _further(node, place)
    return RewrittenPart({**schema, **rest}, _Members().inverse(inverse))


def _as_pairs(node: Schema, further: Any, place: Place) -> RewrittenPart | None:
    """Return a map as an array of key and value."""
    names = node.get("propertyNames", True)
    value = place.build(further, "additionalProperties")
    key = place.build(both({"type": "string"}, names), "propertyNames")
    place.note(
        "map_as_pairs", "lossless", "a map is written as an array of key and value, and the answer becomes a map"
    )
    if value is None or key is None:
        return _without_properties({**node, "additionalProperties": False}, place)
    if key.schema.get("type") != "string":
        place.drop("propertyNames", names)
        key = RewrittenPart({"type": "string"})
    rules = kept_rules(without(node, "propertyNames"), ["object"], place)
    both_members = {"key": key.schema, "value": value.schema}
    pair = {"type": "object", "additionalProperties": False, "properties": both_members, "required": list(both_members)}
    return RewrittenPart({**rules, "type": "array", "items": pair}, pairs(value.inverse))
