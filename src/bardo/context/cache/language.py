"""Tables by which a question is read: the rows of each language, and which English words may replace each other (WordNet 3.0)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from bardo.catalog.layer_rows import LanguageRow, guard_languages

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
    """English words, their base forms and what may replace them. Immutable, and so shared.

    They are synonyms and words derived from each other. `tools/build_word_relations.py` makes the file: a line for each word with what may
    replace it, an empty line, and a line for each irregular form with its base form.
    """

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


_KNOWN_SHARE = 0.6


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """One language. `groups` gives the lines of synonyms that a word is in, by number; `phrases` is by the first word, longest first."""

    row: LanguageRow
    light: frozenset[str]
    small: frozenset[str]
    negation: frozenset[str]
    pivots: frozenset[str]
    particles: frozenset[str]
    exact: frozenset[str]
    numbers: dict[str, str]
    units: dict[str, str]
    groups: dict[str, frozenset[int]]
    opposites: frozenset[frozenset[str]]
    phrases: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]
    relations: WordRelations | None = None

    @classmethod
    def of(cls, row: LanguageRow) -> Language:
        """Return the tables of a row."""
        units = {name: names.split()[0] for names in row.units for name in names.split()}
        pairs = {frozenset((word, other)) for line in row.opposites for word in line.split() for other in line.split()}
        numbers_by_word: dict[str, set[int]] = {}
        for number, line in enumerate(row.synonyms):
            for word in line.split():
                numbers_by_word.setdefault(word, set()).add(number)
        return cls(
            row=row,
            light=_word_set(row.light),
            small=_word_set(" ".join((row.light, row.open_question, row.yes_no, row.negation, row.pivots))),
            negation=_word_set(row.negation),
            pivots=_word_set(row.pivots),
            particles=_word_set(row.particles),
            exact=_word_set(row.exact),
            numbers=dict(word.split("=", 1) for word in row.numbers.split()),
            units=units,
            groups={word: frozenset(numbers) for word, numbers in numbers_by_word.items()},
            opposites=frozenset(pairs),
            phrases=_phrases(row.phrases),
            relations=word_relations() if row.relations else None,
        )

    def bases(self, word: str) -> frozenset[str]:
        """Return the base forms that a word may have, itself included."""
        if self.relations is not None:
            bases = self.relations.base_forms(word)
            if word in self.relations or len(bases) > 1:
                return bases
        return frozenset((word, word[:-1])) if word.endswith("s") and len(word) > 3 else frozenset((word,))

    def replace(self, one: Iterable[str], other: Iterable[str]) -> bool:
        """Return whether some base form of one word may stand for some base form of another."""
        left, right = frozenset(one), frozenset(other)
        if any(frozenset((a, b)) in self.opposites for a in left for b in right if a != b):
            return False
        lines = {line for word in left for line in self.groups.get(word, ())}
        if any(not lines.isdisjoint(self.groups.get(word, ())) for word in right):
            return True
        return self.relations is not None and any(not right.isdisjoint(self.relations.related(word)) for word in left)


@cache
def languages() -> tuple[Language, ...]:
    """Return the languages that have a row."""
    return tuple(Language.of(row) for row in guard_languages())


def language_of(words: Iterable[str]) -> Language | None:
    """Return the language that most of a question's small words belong to, of several the first, or None if that is none."""
    listed = list(words)
    best = max(languages(), key=lambda language: sum(word in language.small for word in listed))
    if any(word in best.small for word in listed):
        return best
    return next(
        (
            language
            for language in languages()
            if language.relations is not None and _is_known(listed, language.relations)
        ),
        None,
    )


def _is_known(words: list[str], relations: WordRelations) -> bool:
    """Return whether most words of a text without small words have a meaning in the file of relations."""
    count = sum(any(base in relations for base in relations.base_forms(word)) for word in words if word.isalpha())
    return count >= 2 and count >= _KNOWN_SHARE * len(words)


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    phrases: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for line in filter(None, text.splitlines()):
        phrase, _, meaning = line.partition("=")
        words = tuple(phrase.split())
        phrases.setdefault(words[0], []).append((words, tuple(meaning.split())))
    for same in phrases.values():
        same.sort(key=lambda entry: -len(entry[0]))
    return phrases
