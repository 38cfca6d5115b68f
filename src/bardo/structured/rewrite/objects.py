"""Write objects as the target takes them: closed, every property required where it demands so, and members without a name of their own."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

from bardo.structured.rewrite.facts import accepts_null, types_of
from bardo.structured.rewrite.inverse import Inverse, arms, members, pairs, with_pairs
from bardo.structured.rewrite.keywords import Schema, without
from bardo.structured.rewrite.merge import both
from bardo.structured.rewrite.place import Inexpressible, Place, RewrittenPart
from bardo.structured.rewrite.rules import as_evaluated, kept_rules

OTHERS = "further_members"
"""The property with the pairs for members that have no name of their own."""
_Others: TypeAlias = list[tuple[str, Any]]
"""The schemas of an object's members beside its properties: patterns of names, empty for all others, each with its schema."""
_NULL: Schema = {"type": "null"}
_PAIR = frozenset({"key", "value"})


def build_object(node: Schema, place: Place) -> RewrittenPart | None:
    """Return an object as the target takes it, or None if no object is valid."""
    node = as_evaluated(node, "unevaluatedProperties", "additionalProperties", "unevaluated_as_additional", place)
    node, others = _with_all_named(node, place)
    if not node.get("properties") and not others:
        return _without_properties(node, place)
    node, others = _with_closed_properties(node, others, place)
    built = _built_members(node, place)
    if built is None:
        return None
    holder = _add_pairs(built, node, others, place)
    # The pairs have the rule for names, and how many members there are follows from the properties no longer.
    rules = without(node, "propertyNames", "additionalProperties") if holder else node
    schema = {
        "type": "object",
        **_kept_rules(rules, len(built.schemas), place),
        **_property_keywords(node, built, place),
    }
    further, rest = _further(node, place)
    inverse = built.inverse(rest)
    if holder:
        inverse = with_pairs(holder, frozenset(node["properties"]), inverse)
    return RewrittenPart({**schema, **further}, inverse)


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


class _Members(msgspec.Struct):
    """The rewritten properties of one object; those in `nulls` are null instead of left out."""

    schemas: dict[str, Schema] = msgspec.field(default_factory=dict)
    required: list[str] = msgspec.field(default_factory=list)
    nulls: set[str] = msgspec.field(default_factory=set)
    inverses: dict[str, Inverse] = msgspec.field(default_factory=dict)

    def inverse(self, rest: Inverse | None) -> Inverse | None:
        """Return the inverse for the members; `rest` is that for members without a name of their own."""
        if not self.nulls and not self.inverses and rest is None:
            return None
        return members(frozenset(self.nulls), self.inverses, frozenset(self.schemas), rest)


def _built_members(node: Schema, place: Place) -> _Members | None:
    """Rewrite each property. Returns None if no value is valid for a required one."""
    built = _Members()
    required = frozenset(node.get("required", ()))
    for name, schema in node["properties"].items():
        member = place.build(schema, "properties", name)
        if member is not None:
            _add(built, name, schema, member, place, required=name in required)
        elif name in required:
            return None
        elif node.get("additionalProperties") is not False:
            # In an open object a member without a schema could hold anything.
            raise Inexpressible(place.path, f"it is open, and its property {name} must not be there")
        else:
            place.inside("properties", name).note("property_left_out", "lossless", "no value is valid there")
    return built


def _add(built: _Members, name: str, before: Any, part: RewrittenPart, place: Place, *, required: bool) -> None:
    built.schemas[name] = part.schema
    if part.inverse is not None:
        built.inverses[name] = part.inverse
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
    schema = built.schemas[name]
    kind = schema.get("type")
    if place.subset.nullable:
        nullable = {**schema, "nullable": True}
    elif place.subset.type_arrays and kind in ("boolean", "integer", "number", "string") and "enum" not in schema:
        nullable = {**schema, "type": [kind, "null"]}
    elif schema.keys() == {"anyOf"}:
        nullable = schema if _NULL in schema["anyOf"] else {"anyOf": [*schema["anyOf"], _NULL]}
    else:
        nullable = {"anyOf": [schema, _NULL]}
    built.schemas[name] = nullable
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


def _with_all_named(node: Schema, place: Place) -> tuple[Schema, _Others]:
    """Return an object in which every required member is a property, and what its patterns say of members beside the properties.

    Properties say what patterns of names demand of them.
    """
    properties = dict(node.get("properties", {}))
    patterns = node.get("patternProperties") or {}
    for name in [*properties, *node.get("required", ())]:
        demanded = [subschema for pattern, subschema in patterns.items() if _finds(pattern, name)]
        if name not in properties:
            place.note("property_added", "lossless", f"the required member {name} is written as a property")
            properties[name] = True if demanded else node.get("additionalProperties", True)
        for subschema in demanded:
            properties[name] = both(properties[name], subschema)
    named = {**node, "properties": properties} if properties else node
    return _without_patterns(named, place) if "patternProperties" in node else (named, [])


def _finds(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _without_patterns(node: Schema, place: Place) -> tuple[Schema, _Others]:
    patterns, rest = node["patternProperties"], without(node, "patternProperties")
    further, named = node.get("additionalProperties", True), bool(node.get("properties"))
    if not patterns:
        return rest, []
    if further is False and not named and len(patterns) == 1:
        ((pattern, subschema),) = patterns.items()
        place.note("patterns_as_map", "lossless", "the one pattern of names is a rule for all names")
        names = both(node.get("propertyNames", True), {"pattern": pattern})
        return {**rest, "additionalProperties": subschema, "propertyNames": names}, []
    open_further = _is_any(further)
    if open_further and not place.subset.closed:
        place.drop("patternProperties", patterns)
        return rest, []
    if open_further:
        place.note("closed", "narrowing", "members that no pattern names are no longer possible")
    beside = [*patterns.items(), *([] if open_further or further is False else [("", further)])]
    if not place.subset.maps:
        return {**rest, "properties": rest.get("properties", {}), "additionalProperties": False}, beside
    values = [subschema for _, subschema in beside if subschema is not False] or [False]
    place.drop(
        "patternProperties", patterns, "members that only names of a pattern may have are possible under any name"
    )
    return {**rest, "additionalProperties": values[0] if len(values) == 1 else {"anyOf": values}}, []


def _with_closed_properties(node: Schema, others: _Others, place: Place) -> tuple[Schema, _Others]:
    """Return an object with properties as open as the target takes it, and what it says of members that become pairs."""
    further = node.get("additionalProperties", True)
    if further is False or place.subset.maps:
        return node, others
    if not _is_any(further):
        return {**node, "additionalProperties": False}, [*others, ("", further)]
    if not place.subset.closed:
        return node, others
    place.note("closed", "narrowing", "members beside the properties are no longer possible")
    return {**node, "additionalProperties": False}, others


def _add_pairs(built: _Members, node: Schema, others: _Others, place: Place) -> str:
    """Add a property with a list of pairs for members beside the properties, and return its name; empty where none can have a value."""
    names = node.get("propertyNames", True)
    forms: list[tuple[Schema, Inverse | None]] = []
    for pattern, subschema in others:
        steps = ("patternProperties", pattern) if pattern else ("additionalProperties",)
        try:
            value = place.build(subschema, *steps)
        except Inexpressible as problem:
            place.note("closed", "narrowing", f"members beside the properties are no longer possible: {problem.reason}")
            continue
        key = place.build(both(both({"type": "string"}, names), {"pattern": pattern} if pattern else True), *steps)
        if value is None or key is None:
            continue
        if key.schema.get("type") != "string":
            place.drop("propertyNames", names)
            key = RewrittenPart({"type": "string"})
        forms.append((_pair(key.schema, value.schema), value.inverse))
    if not forms:
        return ""
    place.note(
        "others_as_pairs", "lossless", f"members beside the properties are written as {OTHERS}, a list of key and value"
    )
    holder = OTHERS
    while holder in built.schemas:
        holder += "_"
    if len(forms) == 1:
        ((items, inner),) = forms
        built.inverses[holder] = pairs(inner)
    else:
        place.note("patterns_apart", "widening", "a name that fits several patterns has a value that fits one of them")
        items = {"anyOf": [schema for schema, _ in forms]}
        each = [(schema, inner and members(frozenset(), {"value": inner}, _PAIR, None)) for schema, inner in forms]
        built.inverses[holder] = pairs(None, arms(each, place.rewriting.definitions))
    built.schemas[holder] = {"type": "array", "items": items, "description": "Further members of this object."}
    if _must_be_required(place):
        built.required.append(holder)
    return holder


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
    return RewrittenPart({**rules, "type": "array", "items": _pair(key.schema, value.schema)}, pairs(value.inverse))


def _pair(key: Schema, value: Schema) -> Schema:
    members = {"key": key, "value": value}
    return {"type": "object", "additionalProperties": False, "properties": members, "required": list(members)}
