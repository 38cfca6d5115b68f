"""Which English words may replace each other: synonyms and words derived from each other, from WordNet 3.0.

`tools/build_word_relations.py` makes the file: a line for each word with what may replace it, an empty line, and a line for each irregular
form with its base form.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files

# The rules of WordNet's own morphy(7WN), without those that its lists of exceptions make needless.
_ENDINGS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ies", "y"),
    ("es", "e"),
    ("es", ""),
    ("ed", "e"),
    ("ed", ""),
    ("ing", "e"),
    ("ing", ""),
)
_MOST_CACHED = 16_384
_DEGREES = (
    ("est", "", "superlative"),
    ("est", "e", "superlative"),
    ("er", "", "comparative"),
    ("er", "e", "comparative"),
)


class WordRelations:
    """English words, their base forms and what may replace them. Immutable, and so shared."""

    def __init__(self, content: bytes) -> None:
        relations, _, forms = zlib.decompress(content).decode().partition("\n\n")
        self._lines: Mapping[str, str] = {line.partition(" ")[0]: line for line in relations.split("\n")}
        self._forms: dict[str, list[str]] = {}
        self._cached = lru_cache(maxsize=_MOST_CACHED)(lambda word: frozenset(self._bases(word)))
        for line in forms.split("\n"):
            form, base = line.split(" ")
            self._forms.setdefault(form, []).append(base)

    def __contains__(self, word: str) -> bool:
        return word in self._lines

    def base_forms(self, word: str) -> frozenset[str]:
        """Return the words that `word` may be a form of, itself included. That of a comparative ends in `+`, of a superlative in `++`."""
        return self._cached(word)

    def _bases(self, word: str) -> Iterator[str]:
        degree = {"er": "+", "est": "++"}
        for base in self._forms.get(word, ()):
            end = next((mark for ending, mark in degree.items() if word.endswith(ending)), "")
            yield base + end
        graded = False
        for ending, other, kind in _DEGREES:
            base = word[: -len(ending)] + other
            if word.endswith(ending) and len(base) > 2 and base in self._lines:
                graded = True
                yield base + ("+" if kind == "comparative" else "++")
        for ending, other in _ENDINGS:
            base = word[: -len(ending)] + other
            if word.endswith(ending) and len(base) > 1 and base in self._lines:
                yield base
        if not graded or word in self._lines:
            yield word

    def related(self, word: str) -> frozenset[str]:
        """Return what may replace a base form."""
        return frozenset(self._lines.get(word, "").split(" ")[1:])


@cache
def word_relations() -> WordRelations:
    """Return the relations that ship with bardo."""
    return WordRelations(files("bardo.context.cache").joinpath("data/word_relations.zz").read_bytes())
