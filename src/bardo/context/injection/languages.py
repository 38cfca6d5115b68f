"""Attempts to replace the rules of a conversation, in languages that have a row: words of one sentence, whatever their order.

A pattern of one expression fits one word order and one form of each word. Here a sentence counts where it has a word for leaving aside, a
word for what came earlier and a word for rules, close to each other, and nothing that turns it round (`do not forget your instructions`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from bardo.catalog.injection_rows import LanguageRow, injection_rows

REPLACED, REVEALED, ADDRESSED = 1.0, 1.0, 0.6
_NEAR = 100
"""Characters on either side of a verb in which the other words of its sentence are looked for."""
_BESIDE = 16
"""Characters on either side of a verb in which a word that turns it round is looked for."""
_END = re.compile(r"[.!?]\s|[。！？।؟]")
_NEVER = re.compile(r"(?!)")


class _Line(NamedTuple):
    """Words of one line of a row. `hints`: no text has any of the words that has none of these, which is quicker to see."""

    pattern: re.Pattern[str]
    hints: tuple[str, ...]

    def may_be_in(self, text: _Text) -> bool:
        return any(hint in text.lower for hint in self.hints if not text.ascii or hint.isascii())

    def is_in(self, sentence: str) -> bool:
        return self.pattern.search(sentence) is not None


class _Text(NamedTuple):
    flat: str
    lower: str
    ascii: bool


class _LanguagePatterns(NamedTuple):
    name: str
    spaced: bool
    replace: _Line
    unless: _Line
    earlier: _Line
    rules: _Line
    told: _Line
    reveal: _Line
    secret: _Line
    address: _Line


def foreign_signs(flat: str, *, trusted: bool) -> dict[str, float]:
    """Return the names and weights of the attempts in a text whose white space is single spaces.

    Of a trusted text only those to replace the rules count.
    """
    text = _Text(flat, flat.lower(), flat.isascii())
    found: dict[str, float] = {}
    for words in _languages():
        if _any_replaces(words, text):
            found[f"replace_rules:{words.name}"] = REPLACED
        if trusted:
            continue
        if _any_reveals(words, text):
            found[f"prompt_theft:{words.name}"] = REVEALED
        if words.address.may_be_in(text) and words.address.is_in(flat):
            found[f"to_the_assistant:{words.name}"] = ADDRESSED
    return found


def _any_replaces(words: _LanguagePatterns, text: _Text) -> bool:
    if not words.replace.may_be_in(text) or not (words.rules.may_be_in(text) or words.told.may_be_in(text)):
        return False
    return any(_replaces(near, verb, words) for verb, near in _sentences(words.replace, text.flat))


def _any_reveals(words: _LanguagePatterns, text: _Text) -> bool:
    if not words.secret.may_be_in(text) or not words.reveal.may_be_in(text):
        return False
    return any(words.secret.is_in(near) for _, near in _sentences(words.reveal, text.flat))


def _sentences(verbs: _Line, flat: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield for each verb where it stands in its sentence, and the sentence, cut where it is long."""
    for verb in verbs.pattern.finditer(flat):
        begin = max(0, verb.start() - _NEAR)
        for end in _END.finditer(flat, begin, verb.start()):
            begin = end.end()
        stop = _END.search(flat, verb.end(), verb.end() + _NEAR)
        until = verb.end() + _NEAR if stop is None else stop.start()
        yield (verb.start() - begin, verb.end() - begin), flat[begin:until]


def _replaces(sentence: str, verb: tuple[int, int], words: _LanguagePatterns) -> bool:
    start, end = verb
    around = sentence[max(0, start - _BESIDE) : start] + " \x00 " + sentence[end : end + _BESIDE]
    # Without spaces between words, what turns a verb round is a part of it: 無視しないで.
    if words.unless.is_in(around) or (not words.spaced and words.unless.is_in(sentence[max(0, start - 4) : end + 8])):
        return False
    rest = sentence[:start] + " \x00 " + sentence[end:]
    return words.told.is_in(rest) or (words.earlier.is_in(rest) and words.rules.is_in(rest))


@cache
def _languages() -> tuple[_LanguagePatterns, ...]:
    return tuple(_read(row) for row in injection_rows().languages)


def _read(row: LanguageRow) -> _LanguagePatterns:
    fields = (row.replace, row.unless, row.earlier, row.rules, row.told, row.reveal, row.secret, row.address)
    return _LanguagePatterns(row.name, row.spaced, *(_line(line, spaced=row.spaced) for line in fields))


def _line(line: str, *, spaced: bool) -> _Line:
    words = [word.replace("_", " ") for word in unicodedata.normalize("NFKC", line).split()]
    if not words:
        return _Line(_NEVER, ())
    parts = [re.escape(word).replace(r"\*", r"\w*" if spaced else "") for word in words]
    joined = "|".join(sorted(parts, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if spaced else joined, re.IGNORECASE)
    return _Line(pattern, tuple(dict.fromkeys(word.partition("*")[0].lower() for word in words)))
