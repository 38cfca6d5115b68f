"""Types and enums: every node names its type, and names several types in the way the target takes them; values without parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bardo.structured.rewrite.keywords import RULES, TITLES, TYPES_OF_RULE, Schema, json_type, rules_of, without
from bardo.structured.rewrite.merge import sealed, with_part
from bardo.structured.rewrite.place import Inexpressible, Place, RewrittenPart
from bardo.structured.rewrite.rules import kept_rules

_SCALARS = frozenset({"null", "boolean", "integer", "number", "string"})
_IMPLIED = ("object", "array", "string", "number")


def types_listed(node: Schema) -> list[str] | None:
    """Return the types a node lists, those covered by "number" left out; None where it lists none."""
    listed = node.get("type")
    if listed is None:
        return None
    return _plain_types([listed] if isinstance(listed, str) else listed)


def _plain_types(types: Iterable[str]) -> list[str]:
    listed = list(dict.fromkeys(types))
    return [one for one in listed if not (one == "integer" and "number" in listed)]


def const_as_enum(node: Schema, place: Place) -> Schema:
    """Return a node with an enum of one value in place of its `const`."""
    values, rest = {"enum": [node["const"]]}, without(node, "const")
    place.note("const_as_enum", "lossless", "const is written as an enum of one value")
    return with_part(rest, values) if "enum" in rest else {**rest, **values}


def typed(node: Schema, place: Place) -> Schema | bool:
    """Return a node one step nearer to naming its type as the target takes it."""
    types = types_listed(node)
    if types is None:
        return _with_type(node, place)
    if not types or node.get("enum") == []:
        return False
    fitting = _with_values_of(types, node, place) if "enum" in node else node
    if fitting is not node:
        return fitting
    if len(types) > 1 and not _may_list(node, types, place):
        return _one_arm_each(node, types, place)
    return _object_constants(node, place) if types == ["object"] and "enum" in node else node


def _with_type(node: Schema, place: Place) -> Schema:
    """Return a node with the type of its enum's values, or the one its rules are about; unchanged where there is neither."""
    if isinstance(node.get("enum"), list):
        found = _plain_types(map(json_type, node["enum"]))
        place.note("type_added", "lossless", "the type of the enum's values is added")
        return {**node, "type": found[0] if len(found) == 1 else found}
    about = {"number" if kind == "integer" else kind for keyword in node for kind in TYPES_OF_RULE.get(keyword, ())}
    implied = next((kind for kind in _IMPLIED if kind in about), None)
    if implied is None:
        return node
    place.note("type_implied", "narrowing", f"values of other types than {implied} are no longer possible")
    return {**node, "type": implied}


def _with_values_of(types: list[str], node: Schema, place: Place) -> Schema:
    """Return a node whose enum holds only values of its types, and no enum where that says nothing."""
    admitted = {*types, "integer"} if "number" in types else set(types)
    kinds = list(map(json_type, node["enum"]))
    values = [value for value, kind in zip(node["enum"], kinds, strict=True) if kind in admitted]
    every: dict[str, list[Any]] = {"null": [None], "boolean": [True, False]}
    if all(kind in every and all(value in values for value in every[kind]) for kind in types):
        place.note("enum_implied", "lossless", "the type alone says what the enum says")
        return without(node, "enum")
    if len(values) == len(node["enum"]):
        return node
    place.note("enum_filtered", "lossless", "values of other types than the schema's own are left out of the enum")
    return {**node, "enum": values}


def _may_list(node: Schema, types: list[str], place: Place) -> bool:
    """Return whether several types may stay in one node."""
    if not place.subset.type_arrays or not _SCALARS.issuperset(types):
        return False
    return "enum" not in node or place.subset.enum_types.issuperset(types)


def _one_arm_each(node: Schema, types: list[str], place: Place) -> Schema:
    """Return an `anyOf` with one arm for each type of a node."""
    place.note("types_as_any_of", "lossless", "several types are written as anyOf")
    rules = without(node, *TITLES, "type")
    arms = [
        {"type": kind, **{word: value for word, value in rules.items() if kind in TYPES_OF_RULE.get(word, (kind,))}}
        for kind in types
    ]
    return {"anyOf": arms, **{keyword: node[keyword] for keyword in node if keyword in TITLES}}


def _object_constants(node: Schema, place: Place) -> Schema:
    """Return objects of an enum as closed objects whose members are constants."""
    place.note("enum_as_objects", "lossless", "objects of an enum are written member by member")
    arms = [_constant(value) for value in node["enum"]]
    # An enum judges no member by itself, so to its node every member is an unevaluated one.
    return with_part(without(sealed(node), "enum"), arms[0] if len(arms) == 1 else {"anyOf": arms})


def _constant(value: dict[str, Any]) -> Schema:
    members = {name: {"const": one} for name, one in value.items()}
    return {"type": "object", "properties": members, "required": list(value), "additionalProperties": False}


def build_scalar(node: Schema, types: list[str], place: Place) -> RewrittenPart:
    """Return a value without parts as the target takes it."""
    schema: Schema = {"type": types[0] if len(types) == 1 else types, **kept_rules(node, types, place)}
    if "enum" in node:
        if place.subset.enum_types.issuperset(map(json_type, node["enum"])):
            schema["enum"] = node["enum"]
        else:
            place.drop("enum", node["enum"], f"values of type {' or '.join(types)} are not taken in an enum")
    return RewrittenPart(schema)


def build_anything(node: Schema, place: Place) -> RewrittenPart:
    """Return a schema for values of any type. Raises Inexpressible where the target takes none."""
    for keyword, value in rules_of(node).items():
        place.drop(keyword, value)
    if not place.subset.untyped:
        raise Inexpressible(place.path, "a value of any type")
    return RewrittenPart(kept_rules(without(node, *RULES), [], place))
