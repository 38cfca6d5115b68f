"""The rewriting of each keyword of JSON Schema for a target that does not take it, and the losses by that."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import Any

from bardo.structured.rewrite.keywords import RULES, TITLES, TYPES_OF_RULE, Schema, json_type, parts, rules_of, without
from bardo.structured.rewrite.merge import sealed, with_part
from bardo.structured.rewrite.place import Inexpressible, Place, RewrittenPart
from bardo.structured.subsets import Limits, PatternRule

_SHAPE = frozenset(
    ["type", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "patternProperties"]
)
_ZERO = frozenset({"minLength", "minItems", "minProperties"})
_NOT_SIMPLE = re.compile(r"\(\?(?!:)|\\[1-9bBkpP]|[*+?}]\?")
_LOOK = re.compile(r"\(\?<?[=!]")


def kept_rules(node: Schema, types: Sequence[str], place: Place) -> Schema:
    """Return what stays of a node beside its shape: the rules and annotations the target takes."""
    schema: Schema = {}
    for keyword, value in node.items():
        if keyword in _SHAPE:
            continue
        if keyword in place.subset.annotations or (keyword not in RULES and keyword in place.subset.keywords):
            schema[keyword] = value
        elif keyword not in RULES:
            if keyword in ("$defs", "definitions"):
                place.note("definitions_moved", "lossless", f"what is used of {keyword} stands in $defs of the root")
            else:
                place.note("annotation_stripped", "lossless", f"{keyword} is not taken, and makes no answer invalid")
        elif keyword in TYPES_OF_RULE and not set(TYPES_OF_RULE[keyword]) & set(types):
            place.note("rule_without_effect", "lossless", f"{keyword} says nothing about {' or '.join(types)}")
        elif (keyword in _ZERO and value == 0) or (keyword == "uniqueItems" and value is False):
            place.note("rule_without_effect", "lossless", f"{keyword} {json.dumps(value)} says nothing")
        else:
            _join(schema, _is_kept(keyword, value, types, place))
    return schema


def _is_kept(keyword: str, value: Any, types: Sequence[str], place: Place) -> Schema:
    subset = place.subset
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and keyword not in subset.keywords:
        other = "minimum" if keyword == "exclusiveMinimum" else "maximum"
        if other not in place.subset.keywords:
            place.drop(keyword, value)
            return {}
        if "number" in types:
            place.drop(keyword, value, f"only {other} is taken, which admits the bound itself")
            return {other: value}
        place.note("bound_inclusive", "lossless", f"{keyword} of whole numbers is written as {other}")
        return {other: floor(value) + 1 if other == "minimum" else ceil(value) - 1}
    if keyword not in subset.keywords:
        place.drop(keyword, value)
    elif keyword == "format" and value not in subset.formats:
        place.drop(keyword, value, f"the format {value} is not taken")
    elif keyword == "pattern" and not _takes_pattern(value, subset.pattern):
        place.drop(keyword, value, "the pattern uses what is not taken in patterns")
    elif keyword == "minItems" and subset.min_items_most is not None and value > subset.min_items_most:
        place.drop(keyword, value, f"minItems is taken up to {subset.min_items_most}")
        return {keyword: subset.min_items_most} if subset.min_items_most else {}
    else:
        return {keyword: value}
    return {}


def _join(schema: Schema, rules: Schema) -> None:
    for keyword, value in rules.items():
        # An exclusive bound may have become a bound that was there already: the tighter one holds.
        tighter = {"minimum": max, "maximum": min}.get(keyword) if keyword in schema else None
        schema[keyword] = tighter(schema[keyword], value) if tighter else value


def _takes_pattern(pattern: str, rule: PatternRule) -> bool:
    if rule == "anchored":
        return pattern.startswith("^") and pattern.endswith("$") and not _LOOK.search(pattern)
    if rule == "simple":
        return not _NOT_SIMPLE.search(pattern)
    return rule == "any" or not _LOOK.search(pattern)


def as_evaluated(node: Schema, unevaluated: str, keyword: str, kind: str, place: Place) -> Schema:
    """Return a node that says of further parts what it said of unevaluated ones."""
    if unevaluated not in node:
        return node
    place.note(kind, "narrowing", f"{unevaluated} is written as {keyword}")
    return {keyword: node[unevaluated], **without(node, unevaluated)}


_LIMITED = {
    "properties": "properties",
    "depth": "levels of objects and arrays",
    "enum_values": "values in enums",
    "characters": "characters of names and values",
    "long_enum_characters": "characters in one long enum",
    "optional": "optional properties",
    "unions": "places with several types",
    "arms": "arms in one anyOf",
}


def check_limits(schema: Schema, limits: Limits) -> None:
    """Raise Inexpressible for the first limit that a rewritten schema passes."""
    size = size_of(schema, limits)
    for name, words in _LIMITED.items():
        allowed = getattr(limits, name)
        if allowed is not None and size[name] > allowed:
            raise Inexpressible("", f"{size[name]:,} {words}, and {allowed:,} are allowed")


def size_of(schema: Schema, limits: Limits) -> Counter[str]:
    """Return how much of what `Limits` names a schema holds. Definitions count once, where they stand."""
    size: Counter[str] = Counter()
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, dict):
            depth += node.get("type") in ("object", "array")
            size["depth"] = max(size["depth"], depth)
            properties, values, arms = node.get("properties", {}), node.get("enum", []), node.get("anyOf", [])
            written = sum(len(value) if isinstance(value, str) else len(str(value)) for value in values)
            size["properties"] += len(properties)
            size["optional"] += len(properties.keys() - set(node.get("required", ())))
            size["unions"] += bool(arms) or isinstance(node.get("type"), list)
            size["arms"] = max(size["arms"], len(arms))
            size["enum_values"] += len(values)
            size["characters"] += written + sum(map(len, properties)) + sum(map(len, node.get("$defs", ())))
            if limits.long_enum is not None and len(values) > limits.long_enum:
                size["long_enum_characters"] = max(size["long_enum_characters"], written)
            waiting.extend((part, 0 if keyword == "$defs" else depth) for keyword, _, part in parts(node))
    return size


_SCALARS = frozenset({"null", "boolean", "integer", "number", "string"})
_IMPLIED = ("object", "array", "string", "number")


def types_listed(node: Schema) -> list[str] | None:
    """Return the types a node lists, those covered by "number" left out, or None if it lists none."""
    listed = node.get("type")
    if listed is None:
        return None
    return _plain_types([listed] if isinstance(listed, str) else listed)


def _plain_types(types: Iterable[str]) -> list[str]:
    listed = list(dict.fromkeys(types))
    return [kind for kind in listed if not (kind == "integer" and "number" in listed)]


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
        types = _plain_types(map(json_type, node["enum"]))
        place.note("type_added", "lossless", "the type of the enum's values is added")
        return {**node, "type": types[0] if len(types) == 1 else types}
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
    members = {name: {"const": member} for name, member in value.items()}
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
