"""References: kept where the target takes them, written out where it does not or where other rules stand beside them."""

from __future__ import annotations

from typing import Any

from bardo.structured.bounds import resolve
from bardo.structured.rewrite.entries import Inexpressible, Place, Schema, Work
from bardo.structured.rewrite.merge import has_unevaluated, merge, split_unevaluated
from bardo.structured.rewrite.words import IN_PLACE, parts, rules_of
from bardo.values.errors import InvalidRequest


def keeps(reference: str, place: Place, work: Work) -> bool:
    """Return whether a reference may stay one. Raises Inexpressible for recursion that the target refuses."""
    subset = work.subset
    if reference not in work.recursive:
        return subset.refs
    if subset.recursion == "refuse":
        raise Inexpressible(place.path, "it is recursive")
    return subset.refs and not work.unroll


def written_out(node: Schema, place: Place, work: Work) -> tuple[Schema | bool, Place]:
    """Return what stands at a reference, merged with the rules beside it, and the place with the reference opened.

    False where unrolled recursion has come to its end.
    """
    reference = node["$ref"]
    beside = {word: value for word, value in node.items() if word != "$ref"}
    target = target_of(reference, work.root)
    if place.opened.count(reference) > (work.subset.unroll if work.unroll else 0):
        return _ended(reference, beside, place, work), place
    if rules_of(beside) or not work.subset.refs or work.unroll:
        work.note("reference_inlined", place, "lossless", f"{reference} is written out")
    if has_unevaluated(target) and rules_of(beside):
        # To the target, what stands beside the reference is unevaluated: only as a part of allOf it is read so.
        return {**beside, "allOf": [*beside.get("allOf", ()), target]}, place.opening(reference)
    plain, apart = split_unevaluated(beside)
    merged = merge(plain, target)
    return ({**merged, **apart} if isinstance(merged, dict) else merged), place.opening(reference)


def _ended(reference: str, beside: Schema, place: Place, work: Work) -> Schema | bool:
    if work.unroll:
        work.note(
            "recursion_unrolled",
            place,
            "narrowing",
            f"{reference} is written out {work.subset.unroll} levels deep and ends there",
        )
        return False
    if not work.subset.refs:
        raise Inexpressible(place.path, "it is recursive")
    for word in rules_of(beside):
        work.note(
            f"{word}_dropped", place, "widening", f"{word} beside the recursive reference {reference} cannot be said"
        )
    return {"$ref": reference}


def target_of(reference: str, root: Schema) -> Any:
    """Return what a reference points to. Raises InvalidRequest where that is nothing, or another document."""
    target = resolve(root, reference)
    if isinstance(target, dict | bool):
        return target
    kind = "points to nothing" if reference.startswith("#") else "points to another document"
    hint = "point every $ref into the schema's own $defs, as #/$defs/name"
    raise InvalidRequest(f"the $ref {reference[:200]!r} {kind}", hint=hint, param="schema")


def recursive(root: Schema) -> frozenset[str]:
    """Return the references that lead back to themselves. Raises InvalidRequest where one leads nowhere or only to itself."""
    inside = _References(root)
    for reference in _closed(inside.everywhere, inside.in_place_of):
        hint = "let the recursion pass through a property or an item"
        raise InvalidRequest(f"the $ref {reference!r} leads only back to itself", hint=hint, param="schema")
    return frozenset(_closed(inside.everywhere, inside.below))


def needs_unrolling(root: Schema, found: frozenset[str]) -> bool:
    """Return whether recursion somewhere passes no property that may be left out."""
    inside = _References(root)
    return bool(_closed(found, inside.required_below))


def _closed(references: frozenset[str], edges: Any) -> list[str]:
    """Return the references that reach themselves."""
    return sorted(one for one in references if one in _reached(one, edges))


def _reached(start: str, edges: Any) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges(start))
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting.extend(edges(one))
    return seen


class _References:
    """Which references stand below which, each looked for once."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._below: dict[tuple[str, str], frozenset[str]] = {}
        self.everywhere = self._found(root, "everything")

    def below(self, reference: str) -> frozenset[str]:
        """Return those anywhere inside the target."""
        return self._edges(reference, "below")

    def in_place_of(self, reference: str) -> frozenset[str]:
        """Return those that judge the same value as the target."""
        return self._edges(reference, "in place")

    def required_below(self, reference: str) -> frozenset[str]:
        """Return those inside the target that no optional property stands above."""
        return self._edges(reference, "required")

    def _edges(self, reference: str, which: str) -> frozenset[str]:
        known = self._below.get((reference, which))
        if known is None:
            known = self._found(target_of(reference, self._root), which)
            self._below[reference, which] = known
        return known

    def _found(self, start: Any, which: str) -> frozenset[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict):
                continue
            if isinstance(schema.get("$ref"), str):
                found.add(schema["$ref"])
            waiting.extend(part for way, part in parts(schema) if _counts(way, schema, which))
        return frozenset(found)


def _counts(way: tuple[str | int, ...], schema: Schema, which: str) -> bool:
    if way[0] in ("$defs", "definitions"):
        # The definitions inside a schema count only for the question which references there are at all.
        return which == "everything"
    if which == "in place":
        return way[0] in IN_PLACE
    return which != "required" or way[0] != "properties" or way[1] in schema.get("required", ())
