"""Rules beside a schema's shape: kept as they are, written in another way where that is the same, or dropped; and the target's limits."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from math import ceil, floor
from typing import Any

from bardo.structured.rewrite.keywords import RULES, TYPES_OF_RULE, Schema, parts, without
from bardo.structured.rewrite.place import Inexpressible, Place
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
            _strip(keyword, place)
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
        return _inclusive(keyword, value, types, place)
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


def _inclusive(keyword: str, value: Any, types: Sequence[str], place: Place) -> Schema:
    other = "minimum" if keyword == "exclusiveMinimum" else "maximum"
    if other not in place.subset.keywords:
        place.drop(keyword, value)
        return {}
    if "number" in types:
        place.drop(keyword, value, f"only {other} is taken, which admits the bound itself")
        return {other: value}
    place.note("bound_inclusive", "lossless", f"{keyword} of whole numbers is written as {other}")
    return {other: floor(value) + 1 if other == "minimum" else ceil(value) - 1}


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


def _strip(keyword: str, place: Place) -> None:
    if keyword in ("$defs", "definitions"):
        place.note("definitions_moved", "lossless", f"what is used of {keyword} stands in $defs of the root")
    else:
        place.note("annotation_stripped", "lossless", f"{keyword} is not taken, and makes no answer invalid")


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
        one, depth = waiting.pop()
        if isinstance(one, dict):
            depth += one.get("type") in ("object", "array")
            size["depth"] = max(size["depth"], depth)
            _count(one, size, limits)
            waiting.extend((part, 0 if keyword == "$defs" else depth) for keyword, _, part in parts(one))
    return size


def _count(one: Schema, size: Counter[str], limits: Limits) -> None:
    properties, values, arms = one.get("properties", {}), one.get("enum", []), one.get("anyOf", [])
    written = sum(len(value) if isinstance(value, str) else len(str(value)) for value in values)
    size["properties"] += len(properties)
    size["optional"] += len(properties.keys() - set(one.get("required", ())))
    size["unions"] += bool(arms) or isinstance(one.get("type"), list)
    size["arms"] = max(size["arms"], len(arms))
    size["enum_values"] += len(values)
    size["characters"] += written + sum(map(len, properties)) + sum(map(len, one.get("$defs", ())))
    if limits.long_enum is not None and len(values) > limits.long_enum:
        size["long_enum_characters"] = max(size["long_enum_characters"], written)
