"""Find words of rows, alone or up to three in a row, and where they stand in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bardo.catalog.classify_rows import PairRow

_WORDS = re.compile(r"[\w/+#'-]+(?:;\w+)?")
Places = Mapping[str, Sequence[int]]


class PhraseFinder:
    """Finds phrases. Time is linear in the length of the text, whatever the number of phrases."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._phrases = frozenset(phrases)
        # How many words the phrases have that begin with a word.
        self._lengths: dict[str, tuple[int, ...]] = {}
        for phrase in self._phrases:
            parts = phrase.split()
            known = self._lengths.get(parts[0], ())
            self._lengths[parts[0]] = tuple(sorted({*known, len(parts)}))

    def places(self, text: str) -> dict[str, list[int]]:
        """Return the phrases that a text has, each with the numbers of the words at which it begins."""
        words = _WORDS.findall(text.lower().replace("\u2019", "'"))
        found: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                phrase = word if length == 1 else " ".join(words[place : place + length])
                if phrase in self._phrases and place + length <= len(words):
                    found.setdefault(phrase, []).append(place)
        return found


class _Pair(NamedTuple):
    """A row with the words of its lists."""

    row: PairRow
    first: frozenset[str]
    second: frozenset[str]
    having: frozenset[str]
    lacking: frozenset[str]


class Pairs:
    """The pairs of the rows, with the words of their lists. Raises KeyError for a list that no row has."""

    def __init__(self, rows: Sequence[PairRow], lists: Mapping[str, Sequence[str]]) -> None:
        def phrases_in(name: str) -> frozenset[str]:
            return frozenset(lists[name]) if name else frozenset()

        self._pairs = [_Pair(row, *map(phrases_in, (row.first, row.second, row.having, row.lacking))) for row in rows]

    def met(self, places: Places) -> list[PairRow]:
        """Return the pairs that the phrases of a text meet."""
        return [
            pair.row
            for pair in self._pairs
            if (not pair.having or not pair.having.isdisjoint(places))
            and pair.lacking.isdisjoint(places)
            and _near(pair.first, pair.second, pair.row.within, places)
        ]


def _near(first: frozenset[str], second: frozenset[str], within: int, places: Places) -> bool:
    """Whether a phrase of the second list begins within so many words behind one of the first."""
    ends = {place + len(phrase.split()) for phrase, found in places.items() if phrase in first for place in found}
    starts = [place for phrase, found in places.items() if phrase in second for place in found]
    return any(place - gap in ends for place in starts for gap in range(within))
