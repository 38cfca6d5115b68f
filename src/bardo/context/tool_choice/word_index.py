"""Compare the words of a text with those of many tools: BM25 over words, and cosine over runs of letters, which forgives misspellings.

An index is made once for a list of tools, and kept by their texts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from bardo.context.tool_choice.tokenization import letter_runs, split_identifier, stems

_K1, _B = 1.2, 0.75
_NAME_COUNTS = 2
"""How often the words of a name count, beside those of the description."""
_KEPT_INDEXES = 64

Postings = Mapping[str, Sequence[tuple[int, float]]]


class WordIndex:
    """The words of some tools, each given as its name and what it says of itself. Immutable."""

    __slots__ = ("_letters", "_size", "_words")

    def __init__(self, tools: Sequence[tuple[str, str]]) -> None:
        texts = [f"{(split_identifier(name) + ' ') * _NAME_COUNTS}{description}" for name, description in tools]
        self._size = len(texts)
        self._words = _bm25([stems(text) for text in texts])
        self._letters = _cosines([letter_runs(text) for text in texts])

    def by_words(self, text: str) -> list[float]:
        """Return how well each tool fits a text by BM25."""
        return self._scores(self._words, text, stems, repeated=False)

    def by_letters(self, text: str) -> list[float]:
        """Return how much each tool has in common with a text by runs of letters, up to a factor that is the same for all tools."""
        return self._scores(self._letters, text, letter_runs, repeated=True)

    def _scores(
        self, postings: Postings, text: str, parts: Callable[[str], list[str]], *, repeated: bool
    ) -> list[float]:
        scores = [0.0] * self._size
        for part, count in Counter(parts(text)).items():
            for place, weight in postings.get(part, ()):
                scores[place] += weight * (count if repeated else 1)
        return scores


@lru_cache(maxsize=_KEPT_INDEXES)
def word_index(tools: tuple[tuple[str, str], ...]) -> WordIndex:
    """Return the index of some tools, from memory where the same were met before."""
    return WordIndex(tools)


def _bm25(documents: Sequence[list[str]]) -> Postings:
    usual = sum(map(len, documents)) / max(1, len(documents)) or 1.0
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    rarity = _rarities(documents, lambda having, of: math.log(1 + (of - having + 0.5) / (having + 0.5)))
    for place, words in enumerate(documents):
        longer = _K1 * (1 - _B + _B * len(words) / usual)
        for word, count in Counter(words).items():
            found[word].append((place, rarity[word] * count * (_K1 + 1) / (count + longer)))
    return dict(found)


def _cosines(documents: Sequence[list[str]]) -> Postings:
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    rarity = _rarities(documents, lambda having, of: math.log((of + 1) / having))
    for place, parts in enumerate(documents):
        weights = {part: (1 + math.log(count)) * rarity[part] for part, count in Counter(parts).items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        for part, weight in weights.items():
            found[part].append((place, weight / length * rarity[part]))
    return dict(found)


def _rarities(documents: Sequence[list[str]], rarity: Callable[[int, int], float]) -> dict[str, float]:
    having = Counter(part for parts in documents for part in set(parts))
    return {part: rarity(count, len(documents)) for part, count in having.items()}
