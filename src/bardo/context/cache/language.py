"""The rows of a language as sets and tables that a question can be read with."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec

from bardo.catalog.cache_guard_rows import LanguageRow, guard_languages
from bardo.context.cache.word_relations import WordRelations, word_relations

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
        pairs = {frozenset((one, other)) for line in row.opposites for one in line.split() for other in line.split()}
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
            groups=_groups(row.synonyms),
            opposites=frozenset(pairs),
            phrases=_phrases(row.phrases),
            relations=word_relations() if row.relations else None,
        )

    def bases(self, word: str) -> frozenset[str]:
        """Return the base forms that a word may have, itself included."""
        if self.relations is not None:
            found = self.relations.base_forms(word)
            if word in self.relations or len(found) > 1:
                return found
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
    """Return the language that most of a question's small words belong to, of several the first; None where that is none."""
    found = list(words)
    best = max(languages(), key=lambda one: sum(word in one.small for word in found))
    if any(word in best.small for word in found):
        return best
    return next((one for one in languages() if one.relations is not None and _is_known(found, one.relations)), None)


def _is_known(words: list[str], relations: WordRelations) -> bool:
    """Return whether most words of a text without small words have a meaning in the file of relations."""
    known = sum(any(base in relations for base in relations.base_forms(word)) for word in words if word.isalpha())
    return known >= 2 and known >= _KNOWN_SHARE * len(words)


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _groups(lines: Iterable[str]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(lines):
        for word in line.split():
            found.setdefault(word, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def _phrases(text: str) -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for line in filter(None, text.splitlines()):
        phrase, _, meaning = line.partition("=")
        words = tuple(phrase.split())
        found.setdefault(words[0], []).append((words, tuple(meaning.split())))
    for same in found.values():
        same.sort(key=lambda entry: -len(entry[0]))
    return found
