"""Compare the words of a text with those of many tools: BM25 over words, and cosine over runs of letters, which forgives misspellings.

Identifiers are split into words, and words lose their endings. An index is made once for a list of tools, and kept by their texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from bardo.catalog.layer_rows import tool_choice_rows
from bardo.values.request import Tool

MOST_TEXT = 8_000
"""Characters of a description, or of what the user said, that are compared: of a longer text its beginning."""
MOST_SENTENCES = 4
"""Sentences of one description that are compared on their own."""
_WORD = re.compile(r"[^\W_]+")
_LOWER_THEN_UPPER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[;\n]+")
_LETTERS = 4
_SHORTEST_STEM = 3
_LONGEST_PHRASE = 6


def split_identifier(name: str) -> str:
    """Return the words of an identifier: `getWeather_v2` is `get Weather v2`."""
    return " ".join(_WORD.findall(_LOWER_THEN_UPPER.sub(" ", name[:MOST_TEXT])))


def stems(text: str) -> list[str]:
    """Return the words of a text without those that say nothing, and without their endings."""
    rows = tool_choice_rows()
    return [
        _stem(word, rows.endings) for word in _WORD.findall(text[:MOST_TEXT].lower()) if word not in rows.stop_words
    ]


def letter_runs(text: str) -> list[str]:
    """Return all runs of four letters in the words of a text, the space before and after a word included."""
    stop = tool_choice_rows().stop_words
    padded = [f" {word} " for word in _WORD.findall(text[:MOST_TEXT].lower()) if word not in stop]
    return [word[at : at + _LETTERS] for word in padded for at in range(max(1, len(word) - _LETTERS + 1))]


def sentences(text: str) -> list[str]:
    """Return the first sentences of a description that have at least three words, where it has several."""
    parts = [part.strip() for part in _SENTENCE_END.split(text[:MOST_TEXT]) if len(part.split()) > 2]
    return parts[:MOST_SENTENCES] if len(parts) > 1 else []


def description_of(tool: Tool) -> str:
    """Return what a tool says of itself: its description, and the names of its parameters."""
    properties = (tool.schema or {}).get("properties")
    names = [split_identifier(name) for name in properties] if isinstance(properties, dict) else []
    parameters = f" ({', '.join(names)[:400]})" if names else ""
    return f"{tool.description[:MOST_TEXT]}{parameters}"


def named_in(text: str, names: Collection[str]) -> set[str]:
    """Return which of the names a text says: as they are, whatever their case, or as the words that they are made of.

    A name of one ordinary word counts only as it is written, since the word itself may be meant.
    """
    tokens = {token.strip(".,;:!?'\"`()[]{}<>*") for token in text.split()}
    lowered = {token.lower() for token in tokens}
    words = _WORD.findall(_LOWER_THEN_UPPER.sub(" ", text).lower())
    phrases = set(_phrases(words))
    return {name for name in names if _is_said(name, tokens, lowered, phrases)}


def _is_said(name: str, tokens: set[str], lowered: set[str], phrases: set[str]) -> bool:
    own = split_identifier(name).lower()
    if " " not in own:
        return name in tokens if name.isalpha() else name.lower() in lowered
    return name.lower() in lowered or own in phrases


def _phrases(words: list[str]) -> Iterator[str]:
    for size in range(2, _LONGEST_PHRASE + 1):
        for at in range(len(words) - size + 1):
            yield " ".join(words[at : at + size])


def _stem(word: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


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
        documents = [stems(text) for text in texts]
        usual = sum(map(len, documents)) / max(1, len(documents)) or 1.0
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        rarity = _rarities(documents, lambda having, of: math.log(1 + (of - having + 0.5) / (having + 0.5)))
        for place, words in enumerate(documents):
            longer = _K1 * (1 - _B + _B * len(words) / usual)
            for word, count in Counter(words).items():
                postings[word].append((place, rarity[word] * count * (_K1 + 1) / (count + longer)))
        self._words = dict(postings)
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


def _cosines(documents: Sequence[list[str]]) -> Postings:
    postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    rarity = _rarities(documents, lambda having, of: math.log((of + 1) / having))
    for place, parts in enumerate(documents):
        weights = {part: (1 + math.log(count)) * rarity[part] for part, count in Counter(parts).items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        for part, weight in weights.items():
            postings[part].append((place, weight / length * rarity[part]))
    return dict(postings)


def _rarities(documents: Sequence[list[str]], rarity: Callable[[int, int], float]) -> dict[str, float]:
    having = Counter(part for parts in documents for part in set(parts))
    return {part: rarity(count, len(documents)) for part, count in having.items()}
