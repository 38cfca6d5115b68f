"""Words that say what a number beside them is: where they stand in a text, found in one reading of it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from bardo.catalog.pii_rows import PiiEntity

BEFORE, AFTER = 60, 24
"""So many characters before a value, and after it, a word counts."""
_TOKEN = re.compile(r"[^\W_]+")
_NONE: frozenset[str] = frozenset()


class ContextWords:
    """The words of some entities. A word is found in the plural as well, and one of a script without spaces within others."""

    def __init__(self, entities: Iterable[PiiEntity]) -> None:
        self._by_token: dict[str, dict[str, set[str]]] = {}
        self._anywhere: dict[str, set[str]] = {}
        for entity in entities:
            for word in entity.context:
                lower = word.lower()
                first = _TOKEN.search(lower)
                if first is None or ord(max(lower)) >= 0x0E00:
                    self._anywhere.setdefault(lower, set()).add(entity.name)
                else:
                    self._by_token.setdefault(first.group(), {}).setdefault(lower, set()).add(entity.name)

    def places(self, text: str) -> ContextPlaces:
        """Return where words stand in a text."""
        lower = _lower(text)
        found = [*self._tokens(lower), *self._parts(lower)]
        found.sort(key=lambda one: one[0])
        return ContextPlaces(found)

    def _tokens(self, lower: str) -> Iterator[tuple[int, int, set[str]]]:
        known = self._by_token
        for token in _TOKEN.finditer(lower):
            phrases = known.get(token.group()) or known.get(token.group().removesuffix("s"))
            for phrase, names in phrases.items() if phrases else ():
                end = token.start() + len(phrase)
                if lower.startswith(phrase, token.start()) and not lower[end : end + 2].removeprefix("s")[:1].isalnum():
                    yield token.start(), end, names

    def _parts(self, lower: str) -> Iterator[tuple[int, int, set[str]]]:
        for word, names in self._anywhere.items():
            place = lower.find(word)
            while place >= 0:
                yield place, place + len(word), names
                place = lower.find(word, place + len(word))


class ContextPlaces:
    """Where the words stand in one text."""

    def __init__(self, found: list[tuple[int, int, set[str]]]) -> None:
        self._found = found
        self._starts = [start for start, _, _ in found]
        self._last = (-1, -1)
        self._names = _NONE

    def near(self, start: int, end: int) -> frozenset[str]:
        """Return the entities of which a word stands near a value, and not within it."""
        if not self._found:
            return _NONE
        if (start, end) != self._last:
            first = bisect_left(self._starts, start - BEFORE)
            last = bisect_left(self._starts, end + AFTER)
            around = (one for one in self._found[first:last] if one[1] <= start or one[0] >= end)
            self._last, self._names = (start, end), frozenset(name for _, _, names in around for name in names)
        return self._names


def _lower(text: str) -> str:
    lower = text.lower()
    return (
        lower if len(lower) == len(text) else "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    )
