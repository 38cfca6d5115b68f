"""Texts that no kept reply answers: questions about the time at which they are asked, and data about persons."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

from bardo.catalog.cache_rows import PersonalDataRow, TimeWordsRow, cache_rows

# What stands between words: marks of ASCII, Latin-1, Arabic and Devanagari, general punctuation, and those of Chinese and Japanese.
_RANGES = (
    (0, 0x80),
    (0xA0, 0xC0),
    (0x60C, 0x60D),
    (0x61B, 0x620),
    (0x964, 0x966),
    (0x2000, 0x2070),
    (0x3000, 0x3040),
    (0xFF00, 0xFF10),
)
_MARKS = {
    code: " " for first, end in _RANGES for code in range(first, end) if not (chr(code).isalnum() or code == ord("_"))
}
_ASCII_WORDS = bytes(ord(_MARKS.get(code, chr(code).lower())) for code in range(128)) + bytes(range(128, 256))
"""For each byte of ASCII a small letter, or the space that stands for what is between words."""
_NO_DIGITS = bytes(code for code in range(256) if chr(code) not in "0123456789")
"""Every byte that is no digit, in UTF-8 too."""


_SLICE, _OVERLAP = 64 * 1024, 400
"""Characters of a text that are searched at once, and how many of them again: no phrase and no value is longer."""
_LONGEST = _SLICE + _OVERLAP


def _slices(text: str) -> Iterable[str]:
    """Return the parts of a text: a search of all of it would hold the interpreter. What is cut may only be found where nothing is."""
    return (text[start : start + _LONGEST] for start in range(0, len(text), _SLICE))


class TimeWords:
    """Finds out whether a text asks about the time at which it is asked, by words of any language."""

    def __init__(self, rows: Iterable[TimeWordsRow]) -> None:
        rows = tuple(rows)
        self._words = frozenset(word for row in rows for word in row.words)
        parts = sorted({part for row in rows for part in row.parts})
        self._parts = re.compile("|".join(map(re.escape, parts))) if parts else None
        self._phrases: dict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
        for phrase in (tuple(phrase.split(" ")) for row in rows for phrase in row.phrases):
            self._phrases[phrase[0], phrase[1]].append(phrase)
        self._first_words = frozenset(first for first, _ in self._phrases)
        self._any_words = self._words | self._first_words
        self._any_in_ascii = frozenset(word.encode("ascii") for word in self._any_words if word.isascii())

    def has(self, text: str) -> bool:
        """Whether a text has one of the words, phrases or parts."""
        if len(text) > _LONGEST:
            return any(map(self.has, _slices(text)))
        if text.isascii():
            # Twice as fast as the same with text.
            parts = text.encode("ascii").translate(_ASCII_WORDS).split()
            if self._any_in_ascii.isdisjoint(parts):
                return False
            words = [part.decode("ascii") for part in parts]
        else:
            words = text.casefold().translate(_MARKS).split()
        if not self._any_words.isdisjoint(words) and (not self._words.isdisjoint(words) or self._has_phrase(words)):
            return True
        return self._parts is not None and not text.isascii() and self._parts.search(text) is not None

    def _has_phrase(self, words: list[str]) -> bool:
        first, phrases = self._first_words, self._phrases
        for place, word in enumerate(words):
            if word in first and place + 1 < len(words):
                for one in phrases.get((word, words[place + 1]), ()):
                    if tuple(words[place : place + len(one)]) == one:
                        return True
        return False


_LEAST_DIGITS = 5
"""The shortest number that a pattern of a row without @ finds is a telephone number of five digits."""


class PersonalData:
    """Finds out whether a text has data about persons that can be known by their form. Names and places cannot."""

    def __init__(self, rows: Iterable[PersonalDataRow]) -> None:
        pairs = [(re.compile(row.pattern), _CHECKS[row.check]) for row in rows]
        self._with_at = [pair for pair in pairs if "@" in pair[0].pattern]
        self._with_digits = [pair for pair in pairs if "@" not in pair[0].pattern]

    def has(self, text: str) -> bool:
        """Whether a text has an address, or a number that passes the check of its kind."""
        if len(text) > _LONGEST:
            return any(map(self.has, _slices(text)))
        if "@" in text and _any(self._with_at, text):
            return True
        digits = text.encode("utf-8", "replace").translate(None, _NO_DIGITS)
        return len(digits) >= _LEAST_DIGITS and _any(self._with_digits, text)


Pair = tuple[re.Pattern[str], Callable[[str], bool]]


def _any(pairs: Iterable[Pair], text: str) -> bool:
    return any(check(found[0]) for pattern, check in pairs for found in pattern.finditer(text))


def has_luhn_digit(number: str) -> bool:
    """Whether the last digit of a card's number is right. Source: ISO/IEC 7812-1, annex B."""
    digits = [int(one) for one in number if one.isdecimal()]
    doubled = [sum(divmod(2 * one, 10)) for one in digits[-2::-2]]
    return len(digits) > 11 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def has_iban_digits(number: str) -> bool:
    """Whether the check digits of an account's number are right. Source: ISO 13616, with ISO 7064 MOD 97-10."""
    compact = "".join(number.split())
    if not 15 <= len(compact) <= 34 or not (compact.isascii() and compact.isalnum()):
        return False
    return int("".join(str(int(one, 36)) for one in compact[4:] + compact[:4])) % 97 == 1


_CHECKS: dict[str, Callable[[str], bool]] = {"": lambda _: True, "luhn": has_luhn_digit, "iban": has_iban_digits}


@cache
def time_words() -> TimeWords:
    """Return what finds the words of the rows that come with bardo."""
    return TimeWords(cache_rows().time_words)


@cache
def personal_data() -> PersonalData:
    """Return what finds the kinds of data of the rows that come with bardo."""
    return PersonalData(cache_rows().personal_data)
