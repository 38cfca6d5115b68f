"""Compare two answers: the kept one, and the one that a similar question got from its model."""

from __future__ import annotations

import re
from typing import Literal

from bardo.context.cache.similar_lookup import LONGEST_ANSWER

Comparison = Literal["same", "different", "undecided"]

_SHORT = 200
_SAME_COSINE, _DIFFERENT_COSINE = 0.90, 0.55
_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_OPPOSED = (
    ("yes", "no"), ("true", "false"), ("ja", "nein"), ("oui", "non"), ("sí", "no"), ("correct", "incorrect"),
)  # fmt: skip


def compare_answers(cached: str, fresh: str, cosine: float | None) -> Comparison:
    """Return whether two answers mean the same.

    `cosine` is the similarity of their vectors, None where there is none. What cannot be told is undecided: long answers are worded
    anew each time, and such a comparison says nothing of the cache.
    """
    left, right = _folded_words(cached), _folded_words(fresh)
    if left == right:
        return "same"
    if not left or not right or _opposed(left[0], right[0]):
        return "different"
    mine, others = _numbers(cached), _numbers(fresh)
    short = max(len(cached), len(fresh)) <= _SHORT
    if short and mine != others:
        return "different"
    if short and set(left) == set(right):
        # The same words in another order may say the opposite.
        return "undecided"
    if cosine is None:
        return "undecided"
    if cosine < _DIFFERENT_COSINE:
        return "different"
    shared = len(mine & others) / len(mine | others) if mine | others else 1.0
    if cosine >= _SAME_COSINE and shared >= 0.5 and ("not" in left) == ("not" in right):
        return "same"
    return "undecided"


def _folded_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text[:LONGEST_ANSWER])]


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text[:LONGEST_ANSWER]))


def _opposed(one: str, other: str) -> bool:
    return any({one, other} == set(pair) for pair in _OPPOSED)
