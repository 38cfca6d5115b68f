"""Objects with properties: closed, and with every property required, as the target demands."""

from __future__ import annotations

import re
from typing import Any

from bardo.structured.rewrite.built import Built, Walk
from bardo.structured.rewrite.entries import Inexpressible, Place, Schema, Work
from bardo.structured.rewrite.facts import accepts_null, rejects_null
from bardo.structured.rewrite.inverse import Inverse, Members
from bardo.structured.rewrite.maps import with_further, without_properties
from bardo.structured.rewrite.merge import both
from bardo.structured.rewrite.rules import Lost, kept_rules

_NULL: Schema = {"type": "null"}


def build_object(node: Schema, place: Place, work: Work, walk: Walk) -> Built | None:
    """Return an object as the target takes it; None where no object can be said."""
    lost = Lost(place, work)
    node = _with_all_named(_evaluated(node, place, work), place, work, lost)
    if not node.get("properties"):
        return without_properties(node, place, work, walk, lost)
    node = _closed(node, place, work)
    members = _Members(place, work)
    if not members.walk(node, walk):
        return None
    schema: Schema = {"type": "object", **_rules(node, members, place, work, lost), **members.written(node)}
    return with_further(node, schema, members.inverse(), place, work, walk, lost)


def _rules(node: Schema, members: _Members, place: Place, work: Work, lost: Lost) -> Schema:
    """Return what stays beside the shape; counts that hold in any case are left out."""
    left = dict(node)
    closed = node.get("additionalProperties") is False
    if left.get("minProperties", 0) <= len(node.get("required", ())):
        left.pop("minProperties", None)
    if closed and left.get("maxProperties", len(members.schemas)) >= len(members.schemas):
        left.pop("maxProperties", None)
    if left.keys() != node.keys():
        work.note("rule_without_effect", place, "lossless", "the count of members follows from the properties")
    return kept_rules(left, ["object"], place, work, lost)


class _Members:
    """The properties of one object on their way through the walk."""

    def __init__(self, place: Place, work: Work) -> None:
        self._place = place
        self._work = work
        self.schemas: dict[str, Schema] = {}
        self._required: list[str] = []
        self._dropped: set[str] = set()
        self._each: dict[str, Inverse] = {}

    def walk(self, node: Schema, walk: Walk) -> bool:
        """Rewrite each property. Returns False where a required one can hold nothing."""
        required = set(node.get("required", ()))
        for name, one in node["properties"].items():
            built = walk(one, self._place.inside("properties", name, optional=name not in required), self._work)
            if built is not None:
                self._add(name, one, built, name in required)
            elif name in required:
                return False
            elif node.get("additionalProperties") is not False:
                # In an open object a member without a schema could hold anything.
                raise Inexpressible(self._place.path, f"it is open, and its property {name} must not be there")
            else:
                self._note("property_left_out", name, "lossless", "no value can stand there")
        return True

    def _add(self, name: str, one: Any, built: Built, required: bool) -> None:
        schema = built.schema
        if required:
            self._required.append(name)
        elif self._must_be_required():
            self._required.append(name)
            schema = self._as_nullable(name, one, schema)
        if built.inverse is not None:
            self._each[name] = built.inverse
        self.schemas[name] = schema

    def _must_be_required(self) -> bool:
        if self._work.subset.all_required:
            return True
        if self._work.optional_left is None:
            return False
        self._work.optional_left -= 1
        return self._work.optional_left < 0

    def _as_nullable(self, name: str, one: Any, schema: Schema) -> Schema:
        if accepts_null(one, self._work.root):
            self._note("optional_required", name, "narrowing", "it cannot be left out; null stands for that too")
            return schema
        self._dropped.add(name)
        surely = rejects_null(one, self._work.root)
        note = "it is null instead of left out; nulls are taken out of the answer"
        self._note("optional_nullable", name, "lossless" if surely else "narrowing", note)
        return nullable(schema, self._work)

    def _note(self, kind: str, name: str, effect: Any, note: str) -> None:
        self._work.note(kind, self._place.inside("properties", name), effect, note)

    def written(self, node: Schema) -> Schema:
        """Return the words about properties."""
        written: Schema = {"properties": self.schemas}
        if self._required:
            written["required"] = self._required
        if "propertyOrdering" in self._work.subset.keywords and len(self.schemas) > 1:
            self._work.note("ordered", self._place, "lossless", "the order of the properties is said")
            written["propertyOrdering"] = list(self.schemas)
        if node.get("required", []) != self._required and set(node.get("required", ())) == set(self._required):
            self._work.note("ordered", self._place, "lossless", "required stands in the order of the properties")
        return written

    def inverse(self) -> Inverse | None:
        """Return the way back for the members."""
        return Members(frozenset(self._dropped), self._each) if self._dropped or self._each else None


def nullable(schema: Schema, work: Work) -> Schema:
    """Return a schema that also admits null."""
    kind = schema.get("type")
    if work.subset.nullable:
        return {**schema, "nullable": True}
    if (
        isinstance(kind, str)
        and "enum" not in schema
        and kind not in ("object", "array", "null")
        and work.subset.type_arrays
    ):
        return {**schema, "type": [kind, "null"]}
    if schema.keys() == {"anyOf"}:
        return {"anyOf": schema["anyOf"] if _NULL in schema["anyOf"] else [*schema["anyOf"], _NULL]}
    return {"anyOf": [schema, _NULL]}


def _evaluated(node: Schema, place: Place, work: Work) -> Schema:
    """Return an object that says of further members what it said of unevaluated ones."""
    if "unevaluatedProperties" not in node:
        return node
    rest = {word: value for word, value in node.items() if word != "unevaluatedProperties"}
    work.note("unevaluated_as_additional", place, "narrowing", "unevaluatedProperties is said as additionalProperties")
    return {"additionalProperties": node["unevaluatedProperties"], **rest}


def _with_all_named(node: Schema, place: Place, work: Work, lost: Lost) -> Schema:
    """Return an object in which every required member is a property, and properties say what patterns of names ask of them."""
    properties = dict(node.get("properties", {}))
    patterns = node.get("patternProperties") or {}
    for name in [*properties, *node.get("required", ())]:
        asked = [one for pattern, one in patterns.items() if _finds(pattern, name)]
        if name not in properties:
            work.note("property_added", place, "lossless", f"the required member {name} is said as a property")
            properties[name] = True if asked else node.get("additionalProperties", True)
        for one in asked:
            properties[name] = both(properties[name], one)
    named = {**node, "properties": properties} if properties else node
    return _without_patterns(named, place, work, lost) if "patternProperties" in node else named


def _without_patterns(node: Schema, place: Place, work: Work, lost: Lost) -> Schema:
    rest = {word: value for word, value in node.items() if word != "patternProperties"}
    patterns, closed = node["patternProperties"], node.get("additionalProperties") is False
    if not patterns:
        return rest
    if closed and not node.get("properties") and len(patterns) == 1:
        ((pattern, one),) = patterns.items()
        work.note("patterns_as_map", place, "lossless", "the one pattern of names is a rule for all names")
        return {
            **rest,
            "additionalProperties": one,
            "propertyNames": both(node.get("propertyNames", True), {"pattern": pattern}),
        }
    if node.get("properties") and (closed or (work.subset.closed and node.get("additionalProperties", True) is True)):
        work.note("patterns_closed", place, "narrowing", "members named by a pattern can no longer be said")
        return {**rest, "additionalProperties": False}
    lost.drop("patternProperties", patterns)
    # What holds for members outside the patterns would now bind those inside, which is another rule.
    return {word: value for word, value in rest.items() if word != "additionalProperties"}


def _finds(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _closed(node: Schema, place: Place, work: Work) -> Schema:
    """Return an object with properties as open as the target takes it."""
    further = node.get("additionalProperties", True)
    if further is False or not work.subset.closed:
        return node
    if further is not True and further != {} and work.subset.maps:
        return node
    work.note("closed", place, "narrowing", "members beside the properties can no longer be said")
    return {**node, "additionalProperties": False}
