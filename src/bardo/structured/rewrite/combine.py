"""Combinators: `allOf` is merged, `oneOf` becomes `anyOf`, and rules beside an `anyOf` move into its arms."""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import Any

from bardo.structured.rewrite.entries import Inexpressible, Place, Schema, Work
from bardo.structured.rewrite.facts import disjoint
from bardo.structured.rewrite.merge import both, merge, sealed, split_unevaluated
from bardo.structured.rewrite.references import written_out
from bardo.structured.rewrite.words import rules_of

_MOST_PARTS = 500
_MOST_ARMS = 48
_TOLD = ("title", "description")


def merged_all_of(node: Schema, place: Place, work: Work) -> tuple[Schema | bool, Place, list[Schema]]:
    """Return a node with the parts of its `allOf` merged into it, and what could not be merged."""
    outside, apart = split_unevaluated({word: value for word, value in node.items() if word != "allOf"})
    merged: Schema | bool = outside
    waiting: deque[Any] = deque(node["allOf"])
    beside: list[Schema] = []
    work.note("all_of_merged", place, "lossless", "allOf is written as one schema")
    for _ in range(_MOST_PARTS):
        if not waiting or not isinstance(merged, dict):
            break
        part, place = _opened(waiting.popleft(), place, work)
        if not isinstance(part, dict):
            merged = merge(merged, part)
            continue
        waiting.extend(part.get("allOf", ()))
        part, unseen = split_unevaluated({word: value for word, value in sealed(part).items() if word != "allOf"})
        beside.extend([unseen] if unseen else [])
        merged = merge(merged, _arms_of_both(merged, part))
        if isinstance(merged, dict):
            beside.extend(merged.pop("allOf", ()))
    else:
        raise Inexpressible(place.path, f"allOf has more than {_MOST_PARTS} parts")
    return ({**merged, **apart} if isinstance(merged, dict) else merged), place, beside


def _opened(part: Any, place: Place, work: Work) -> tuple[Any, Place]:
    while isinstance(part, dict) and isinstance(part.get("$ref"), str):
        again = place.opened.count(part["$ref"]) > (work.subset.unroll if work.unroll else 0)
        part, place = written_out(part, place, work)
        if again and isinstance(part, dict):
            raise Inexpressible(place.path, "recursion stands inside an allOf")
    return part, place


def _arms_of_both(merged: Schema, part: Schema) -> Schema:
    """Return a part whose `anyOf` is already multiplied with that of the schema it will be merged into."""
    if "anyOf" not in merged or "anyOf" not in part or len(merged["anyOf"]) * len(part["anyOf"]) > _MOST_ARMS:
        return part
    arms = [both(one, other) for one in merged.pop("anyOf") for other in part["anyOf"]]
    return {**part, "anyOf": arms}


def one_of_as_any_of(node: Schema, place: Place, work: Work) -> Schema:
    """Return a node with `anyOf` for `oneOf`: the same where no two arms can hold at once."""
    arms = node["oneOf"]
    pairs = combinations(arms, 2) if len(arms) <= _MOST_ARMS else ()
    proved = len(arms) <= _MOST_ARMS and all(disjoint(one, other, work.root) for one, other in pairs)
    if proved:
        work.note("one_of_as_any_of", place, "lossless", "no two arms of oneOf can hold at once")
    else:
        work.note("one_of_as_any_of", place, "widening", "a value may fit more than one arm of oneOf")
    rest = {word: value for word, value in node.items() if word != "oneOf"}
    if "anyOf" in rest:
        return {**rest, "allOf": [*rest.get("allOf", ()), {"anyOf": arms}]}
    return {**rest, "anyOf": arms}


def rules_into_arms(node: Schema, place: Place, work: Work) -> Schema:
    """Return a node whose `anyOf` stands alone: each arm asks for the rules beside it as well."""
    outside = {word: value for word, value in node.items() if word in _TOLD}
    plain, apart = split_unevaluated({word: value for word, value in node.items() if word not in ("anyOf", *_TOLD)})
    if apart:
        work.note("arms_apart", place, "narrowing", "what is unevaluated is looked for in each arm by itself")
    work.note("rules_into_arms", place, "lossless", "the rules beside anyOf are said in each arm")
    beside = rules_of(plain)
    return {"anyOf": [_arm(both(beside, arm), apart) for arm in node["anyOf"]], **outside}


def _arm(arm: Any, apart: Schema) -> Any:
    if not apart or arm is False:
        return arm
    return dict(apart) if arm is True else {"allOf": [arm], **apart}
