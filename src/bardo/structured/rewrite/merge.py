"""Say two schemas as one that admits exactly what both admit.

What cannot be said in one place stays beside it as `allOf`, so nothing is lost here; children are merged when the walk reaches them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from bardo.structured.rewrite.entries import Schema
from bardo.structured.rewrite.words import IN_PLACE, RULES, json_type, same

_OBJECT_SHAPE = ("properties", "patternProperties", "additionalProperties")
_ARRAY_SHAPE = ("prefixItems", "items")
_CONDITION = ("if", "then", "else")
_CONTAINS = ("contains", "minContains", "maxContains")
# Words that mean something only together, so that they are not merged one by one.
_TOGETHER = (*_OBJECT_SHAPE, *_ARRAY_SHAPE, *_CONDITION, *_CONTAINS, "allOf")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


def merge(left: Any, right: Any) -> Schema | bool:
    """Return one schema that admits what both admit; False where that is nothing."""
    if left is False or right is False:
        return False
    if left is True or right is True:
        found: Schema | bool = right if left is True else left
        return found
    merged: Schema = dict(left)
    beside: list[Any] = []
    for word, value in right.items():
        if word in _TOGETHER:
            continue
        if word not in merged or word not in RULES:
            merged.setdefault(word, value)
        elif not same(merged[word], value):
            _merge_word(merged, word, value, beside)
    _merge_objects(merged, left, right, beside)
    _merge_arrays(merged, left, right)
    _merge_group(merged, right, beside, _CONDITION, "if")
    _merge_group(merged, right, beside, _CONTAINS, "contains")
    beside = [*left.get("allOf", ()), *right.get("allOf", ()), *beside]
    merged.pop("allOf", None)
    if merged.get("type") == [] or merged.get("enum") == []:
        return False
    return {**merged, "allOf": beside} if beside else merged


def _merge_word(merged: Schema, word: str, value: Any, beside: list[Any]) -> None:
    rule = _RULES.get(word)
    result = None if rule is None else rule(merged[word], value)
    if result is None:
        beside.append({word: value})
    else:
        merged[word] = result


def _merge_objects(merged: Schema, left: Schema, right: Schema, beside: list[Any]) -> None:
    """Merge what says which members there are. Members of one side must also fit what the other says of any further member."""
    if not any(word in right for word in _OBJECT_SHAPE):
        return
    if not any(word in left for word in _OBJECT_SHAPE):
        merged.update({word: right[word] for word in _OBJECT_SHAPE if word in right})
        return
    if left.get("patternProperties") or right.get("patternProperties"):
        beside.append({word: right[word] for word in _OBJECT_SHAPE if word in right})
        return
    ours, theirs = left.get("properties", {}), right.get("properties", {})
    further, others = left.get("additionalProperties", True), right.get("additionalProperties", True)
    names = dict.fromkeys([*ours, *theirs])
    merged["properties"] = {name: both(ours.get(name, further), theirs.get(name, others)) for name in names}
    if "additionalProperties" in left or "additionalProperties" in right:
        merged["additionalProperties"] = both(further, others)


def _merge_arrays(merged: Schema, left: Schema, right: Schema) -> None:
    """Merge what says which items there are. The first items of one side must also fit what the other says of all items."""
    if not any(word in right for word in _ARRAY_SHAPE):
        return
    ours, theirs = left.get("prefixItems", []), right.get("prefixItems", [])
    further, others = left.get("items", True), right.get("items", True)
    length = max(len(ours), len(theirs))
    if length:
        pairs = zip_longest(ours, theirs, fillvalue=None)
        merged["prefixItems"] = [both(further if a is None else a, others if b is None else b) for a, b in pairs]
    if "items" in left or "items" in right:
        merged["items"] = both(further, others)


def _merge_group(merged: Schema, right: Schema, beside: list[Any], words: tuple[str, ...], head: str) -> None:
    """Merge words that say something together, and nothing without the first of them."""
    said = {word: right[word] for word in words if word in right}
    if head not in said or said == {word: merged[word] for word in words if word in merged}:
        return
    if head in merged:
        beside.append(said)
    else:
        for word in words:
            merged.pop(word, None)
        merged.update(said)


def both(left: Any, right: Any) -> Any:
    """Return a schema that asks for two; they are merged when they are looked at."""
    if left is True or left == {}:
        return right
    if right is True or right == {} or same(left, right):
        return left
    return False if left is False or right is False else {"allOf": [left, right]}


def split_unevaluated(schema: Schema) -> tuple[Schema, Schema]:
    """Return a schema without its words about unevaluated parts, and those: they see the whole, so they stay outside of a merge."""
    apart = {word: schema[word] for word in _UNEVALUATED if word in schema}
    return {word: value for word, value in schema.items() if word not in apart}, apart


def sealed(schema: Schema) -> Schema:
    """Return a schema that says by itself what is unevaluated, so that it may be merged; unchanged where only the whole can say it."""
    if any(word in schema for word in (*IN_PLACE, "$ref", "$dynamicRef")):
        return schema
    rest = dict(schema)
    if "unevaluatedProperties" in rest:
        rest.setdefault("additionalProperties", rest.pop("unevaluatedProperties"))
    if "unevaluatedItems" in rest and "contains" not in rest:
        rest.setdefault("items", rest.pop("unevaluatedItems"))
    return rest


def has_unevaluated(schema: Any) -> bool:
    """Return whether a schema speaks of unevaluated parts."""
    return isinstance(schema, dict) and any(word in schema for word in _UNEVALUATED)


def _types(left: Any, right: Any) -> list[str]:
    ours, theirs = ([said] if isinstance(said, str) else list(said) for said in (left, right))
    kept = [one for one in ours if one in theirs or (one == "integer" and "number" in theirs)]
    narrowed = [one for one in theirs if one == "integer" and "number" in ours and one not in kept]
    return [
        one for one in [*kept, *narrowed] if not (one == "number" and "integer" in narrowed and "number" not in theirs)
    ]


def _one_type(left: Any, right: Any) -> Any:
    kept = _types(left, right)
    return kept[0] if len(kept) == 1 else kept


def _values(left: list[Any], right: list[Any]) -> list[Any]:
    return [one for one in left if any(same(one, other) for other in right)]


def _multiple(left: Any, right: Any) -> Any:
    if json_type(left) == json_type(right) == "integer":
        big, small = max(left, right), min(left, right)
        return big if small and big % small == 0 else None
    return None


def _union(left: list[Any], right: list[Any]) -> list[Any]:
    return list(dict.fromkeys([*left, *right]))


def _least(left: Any, right: Any) -> Any:
    return min(left, right)


def _most(left: Any, right: Any) -> Any:
    return max(left, right)


_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "type": _one_type,
    "enum": _values,
    "required": _union,
    "multipleOf": _multiple,
    "uniqueItems": lambda left, right: left or right,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _most),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _least),
}
