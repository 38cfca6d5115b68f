"""Rules a target does not take: said in another way where that is the same, else dropped, told in the description and reported."""

from __future__ import annotations

import json
import re
from math import ceil, floor
from typing import Any

from bardo.structured.rewrite.entries import Place, Schema, Work
from bardo.structured.rewrite.words import RULES, about
from bardo.structured.subsets import PatternRule

_SHAPE = frozenset(
    {"type", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "patternProperties"}
)
_ZERO = frozenset({"minLength", "minItems", "minProperties"})
_LONGEST = 200
_NOT_SIMPLE = re.compile(r"\(\?(?!:)|\\[1-9bBkpP]|[*+?}]\?")
_LOOK = re.compile(r"\(\?<?[=!]")


class Lost:
    """Rules that a place loses, told in its description."""

    def __init__(self, place: Place, work: Work) -> None:
        self._place = place
        self._work = work
        self._told: list[str] = []

    def drop(self, word: str, value: Any, why: str = "") -> None:
        """Drop a rule whose absence admits more."""
        said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        said = said if len(said) <= _LONGEST else said[:_LONGEST] + "…"
        self._told.append(f"{word} {said}")
        self._work.note(f"{word}_dropped", self._place, "widening", why or f"{word} is not taken")

    def told_in(self, schema: Schema) -> Schema:
        """Return a schema whose description tells the dropped rules."""
        if not self._told:
            return schema
        told = f"Must hold: {'; '.join(self._told)}."
        before = schema.get("description")
        return {**schema, "description": f"{before} {told}" if isinstance(before, str) and before else told}


def kept_rules(node: Schema, kinds: list[str], place: Place, work: Work, lost: Lost) -> Schema:
    """Return what stays of a node beside its shape: the rules and annotations the target takes."""
    kept: Schema = {}
    for word, value in node.items():
        if word in _SHAPE:
            continue
        if word in work.subset.annotations or (word not in RULES and word in work.subset.keywords):
            kept[word] = value
        elif word not in RULES:
            _strip(word, place, work)
        elif about(word) and not set(about(word)) & set(kinds):
            work.note("rule_without_effect", place, "lossless", f"{word} says nothing about {' or '.join(kinds)}")
        elif (word in _ZERO and value == 0) or (word == "uniqueItems" and value is False):
            work.note("rule_without_effect", place, "lossless", f"{word} {json.dumps(value)} says nothing")
        else:
            _join(kept, _kept(word, value, kinds, place, work, lost))
    return kept


def _kept(word: str, value: Any, kinds: list[str], place: Place, work: Work, lost: Lost) -> Schema:
    subset = work.subset
    if word in ("exclusiveMinimum", "exclusiveMaximum") and word not in subset.keywords:
        return _inclusive(word, value, kinds, place, work, lost)
    if word not in subset.keywords:
        lost.drop(word, value)
    elif word == "format" and value not in subset.formats:
        lost.drop(word, value, f"the format {value} is not taken")
    elif word == "pattern" and not pattern_taken(value, subset.pattern):
        lost.drop(word, value, "the pattern uses what is not taken in patterns")
    elif word == "minItems" and subset.min_items_most is not None and value > subset.min_items_most:
        lost.drop(word, value, f"minItems is taken up to {subset.min_items_most}")
        return {word: subset.min_items_most} if subset.min_items_most else {}
    else:
        return {word: value}
    return {}


def _inclusive(word: str, value: Any, kinds: list[str], place: Place, work: Work, lost: Lost) -> Schema:
    other = "minimum" if word == "exclusiveMinimum" else "maximum"
    if other not in work.subset.keywords:
        lost.drop(word, value)
        return {}
    if "number" in kinds:
        lost.drop(word, value, f"only {other} is taken, which admits the bound itself")
        return {other: value}
    work.note("bound_inclusive", place, "lossless", f"{word} of whole numbers is said as {other}")
    return {other: floor(value) + 1 if other == "minimum" else ceil(value) - 1}


def _join(kept: Schema, found: Schema) -> None:
    for word, value in found.items():
        # An exclusive bound may have become a bound that was there already: the tighter one holds.
        tighter = {"minimum": max, "maximum": min}.get(word) if word in kept else None
        kept[word] = tighter(kept[word], value) if tighter else value


def pattern_taken(pattern: str, rule: PatternRule) -> bool:
    """Return whether a target takes a pattern."""
    if rule == "anchored":
        return pattern.startswith("^") and pattern.endswith("$") and not _LOOK.search(pattern)
    if rule == "simple":
        return not _NOT_SIMPLE.search(pattern)
    return rule == "any" or not _LOOK.search(pattern)


def _strip(word: str, place: Place, work: Work) -> None:
    if word in ("$defs", "definitions"):
        work.note("definitions_moved", place, "lossless", f"what is used of {word} stands in $defs of the root")
    else:
        work.note("annotation_stripped", place, "lossless", f"{word} is not taken, and makes no answer invalid")
