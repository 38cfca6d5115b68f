"""Rank passages by how much they have in common with a question: BM25 over words, with the passages themselves as the collection."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W\d_]++|\d++")
_CAMEL = re.compile(r"[A-Z]?[a-z]++|[A-Z]+(?![a-z])")
_K1 = 1.2
_B = 0.75
_STEM = 6
"""Of longer words only the beginning counts, so that forms of one word are the same."""


def bm25(question: str, passages: Sequence[str]) -> list[float]:
    """Return a score for each passage, 0 where it has no word of the question. Robertson's BM25 with k1 = 1.2 and b = 0.75."""
    wanted = set(words_of(question))
    counts = [Counter(words_of(passage)) for passage in passages]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    holding = {word: sum(word in count for count in counts) for word in wanted}
    rarity = {
        word: math.log(1 + (len(passages) - number + 0.5) / (number + 0.5))
        for word, number in holding.items()
        if number
    }
    return [
        sum(
            weight * count[word] * (_K1 + 1) / (count[word] + _K1 * (1 - _B + _B * length / mean))
            for word, weight in rarity.items()
            if word in count
        )
        for count, length in zip(counts, lengths, strict=True)
    ]


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, cut to their beginning; identifiers are taken apart (`read_file`, `readFile`)."""
    found = _WORD.findall(text)
    words = [word.lower()[:_STEM] for word in found]
    mixed = [word for word in found if not (word.islower() or word.istitle() or word.isupper())]
    words += [inner.lower()[:_STEM] for word in mixed for inner in _CAMEL.findall(word)]
    return words


def by_rank(scores: Sequence[float]) -> list[int]:
    """Return for each place how many have a higher score, so that scores of different scales can be put together."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    ranks = [0] * len(scores)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def fused(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return one score of two by reciprocal rank fusion with its usual constant of 60 (Cormack and others, SIGIR 2009)."""
    return [1 / (60 + one) + 1 / (60 + other) for one, other in zip(by_rank(first), by_rank(second), strict=True)]
