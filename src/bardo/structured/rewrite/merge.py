"""Write two schemas as one that admits exactly what both admit.

What cannot be written in one place stays beside it as `allOf`, so nothing is lost here; parts are merged when the walk reaches them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from bardo.structured.rewrite.keywords import IN_PLACE, RULES, Schema, comparable, json_type, same

_OBJECT_SHAPE = ("properties", "patternProperties", "additionalProperties")
_ARRAY_SHAPE = ("prefixItems", "items")
_CONDITION = ("if", "then", "else")
_CONTAINS = ("contains", "minContains", "maxContains")
# Keywords that mean something only together, so that they are not merged one by one.
_TOGETHER = frozenset({*_OBJECT_SHAPE, *_ARRAY_SHAPE, *_CONDITION, *_CONTAINS, "allOf"})
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_NOT_BY_ITSELF = IN_PLACE | {"$ref", "$dynamicRef"}


def merge(left: Schema | bool, right: Schema | bool) -> Schema | bool:
    """Return one schema that admits what both admit; False where that is nothing.

    What `left` says of unevaluated parts then judges the whole. What `right` says of them stays beside.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return right if left is True else left if right is True else False
    merged: Schema = dict(left)
    beside: list[Any] = []
    for keyword, value in right.items():
        if keyword in _TOGETHER:
            continue
        if keyword in UNEVALUATED:
            beside.append({keyword: value})
        elif keyword not in merged or keyword not in RULES:
            merged.setdefault(keyword, value)
        elif not same(merged[keyword], value):
            result = _BOTH_RULES[keyword](merged[keyword], value) if keyword in _BOTH_RULES else None
            if result is None:
                beside.append({keyword: value})
            else:
                merged[keyword] = result
    _merge_objects(merged, left, right, beside)
    _merge_arrays(merged, left, right)
    _merge_group(merged, right, beside, _CONDITION)
    _merge_group(merged, right, beside, _CONTAINS)
    beside = [*left.get("allOf", ()), *right.get("allOf", ()), *beside]
    merged.pop("allOf", None)
    if merged.get("type") == [] or merged.get("enum") == []:
        return False
    return {**merged, "allOf": beside} if beside else merged


def _merge_objects(merged: Schema, left: Schema, right: Schema, beside: list[Any]) -> None:
    """Merge what says which members there are. Members of one side must also fit what the other says of any further member."""
    shape = {keyword: right[keyword] for keyword in _OBJECT_SHAPE if keyword in right}
    if not shape or not any(keyword in left for keyword in _OBJECT_SHAPE):
        merged.update(shape)
        return
    if left.get("patternProperties") or right.get("patternProperties"):
        beside.append(shape)
        return
    ours, theirs = left.get("properties", {}), right.get("properties", {})
    further, others = left.get("additionalProperties", True), right.get("additionalProperties", True)
    names = dict.fromkeys([*ours, *theirs])
    merged["properties"] = {name: both(ours.get(name, further), theirs.get(name, others)) for name in names}
    if "additionalProperties" in left or "additionalProperties" in right:
        merged["additionalProperties"] = both(further, others)


def _merge_arrays(merged: Schema, left: Schema, right: Schema) -> None:
    """Merge what says which items there are. The first items of one side must also fit what the other says of all items."""
    if not any(keyword in right for keyword in _ARRAY_SHAPE):
        return
    ours, theirs = left.get("prefixItems", []), right.get("prefixItems", [])
    further, others = left.get("items", True), right.get("items", True)
    if ours or theirs:
        pairs = zip_longest(ours, theirs, fillvalue=None)
        merged["prefixItems"] = [both(further if a is None else a, others if b is None else b) for a, b in pairs]
    if "items" in left or "items" in right:
        merged["items"] = both(further, others)


def _merge_group(merged: Schema, right: Schema, beside: list[Any], keywords: tuple[str, ...]) -> None:
    """Merge keywords that mean something together, and nothing without the first of them."""
    group = {keyword: right[keyword] for keyword in keywords if keyword in right}
    if keywords[0] not in group or group == {keyword: merged[keyword] for keyword in keywords if keyword in merged}:
        return
    if keywords[0] in merged:
        beside.append(group)
    else:
        for keyword in keywords:
            merged.pop(keyword, None)
        merged.update(group)


def both(left: Any, right: Any) -> Any:
    """Return a schema that demands two; they are merged when the walk reaches them."""
    if left is True or left == {}:
        return right
    if right is True or right == {} or same(left, right):
        return left
    return False if left is False or right is False else {"allOf": [left, right]}


def with_part(schema: Schema, part: Schema) -> Schema:
    """Return a schema that demands another one too, as a part of its `allOf`."""
    return {**schema, "allOf": [*schema.get("allOf", ()), part]}


def has_unevaluated(schema: Any) -> bool:
    """Return whether a schema says something of unevaluated parts."""
    return isinstance(schema, dict) and any(keyword in schema for keyword in UNEVALUATED)


def sealed(schema: Schema) -> Schema:
    """Return a schema that says by itself which members are unevaluated, to be merged; unchanged if only the whole can say it."""
    if not _NOT_BY_ITSELF.isdisjoint(schema):
        return schema
    sealed = dict(schema)
    if "unevaluatedProperties" in sealed:
        sealed.setdefault("additionalProperties", sealed.pop("unevaluatedProperties"))
    if "unevaluatedItems" in sealed and "contains" not in sealed:
        sealed.setdefault("items", sealed.pop("unevaluatedItems"))
    return sealed


def _types(left: Any, right: Any) -> Any:
    ours, theirs = ([listed] if isinstance(listed, str) else list(listed) for listed in (left, right))
    types = [kind for kind in ours if kind in theirs or (kind == "integer" and "number" in theirs)]
    narrowed = [kind for kind in theirs if kind == "integer" and "number" in ours and kind not in types]
    if narrowed and "number" not in theirs:
        types = [kind for kind in types if kind != "number"]
    return types[0] if len(types := [*types, *narrowed]) == 1 else types


def _values(left: list[Any], right: list[Any]) -> list[Any]:
    others = {comparable(value) for value in right}
    return [value for value in left if comparable(value) in others]


def _multiple(left: Any, right: Any) -> Any:
    if json_type(left) == json_type(right) == "integer":
        larger, smaller = max(left, right), min(left, right)
        return larger if smaller and larger % smaller == 0 else None
    return None


# What a rule becomes whose values differ, or None if no one value says both.
_BOTH_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "type": _types,
    "enum": _values,
    "required": lambda left, right: list(dict.fromkeys([*left, *right])),
    "multipleOf": _multiple,
    "uniqueItems": lambda left, right: left or right,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
