"""Text for chat services: cleaned of what would play with its reader, measured as the services count, and cut at good places."""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"
_LINE_ENDS = re.compile("\r\n|[\r\u0085\u2028\u2029]")
# Control characters, what changes the direction of text, lone surrogates, and code points that are no characters.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_WIDE = re.compile("[\U00010000-\U0010ffff]")
_ZERO_WIDTH_JOINER = "\u200d"
_SENTENCE_ENDS = re.compile(r"[.!?…。！？](?=\s)")
_LONGEST_CLUSTER = 64


def cleaned(text: str) -> str:
    """Return text without control characters and without marks that reorder it; each is replaced by U+FFFD."""
    return _UNWANTED.sub(REPLACEMENT, _LINE_ENDS.sub("\n", text))


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: services refuse such messages."""
    return all(letter.isspace() or unicodedata.category(letter) in ("Cf", "Cc", "Mn") for letter in text)


def utf16_length(text: str) -> int:
    """Return how many UTF-16 code units a text has."""
    return len(text) + sum(1 for _ in _WIDE.finditer(text))


def cut_place(text: str, start: int, limit: int) -> int:
    """Return where the piece ends that begins at `start` and has at most `limit` UTF-16 units, `limit` being 2 or more.

    It ends behind a paragraph, a line, a sentence or a word where one ends in its second half, else between two letters as people see them.
    """
    end = _end_within(text, start, limit)
    if end == len(text):
        return end
    least = start + (end - start) // 2
    for separator in ("\n\n", "\n"):
        found = text.rfind(separator, least, end)
        if found >= 0:
            return found + len(separator)
    sentence = max((match.end() for match in _SENTENCE_ENDS.finditer(text, least, end)), default=0)
    if sentence:
        return sentence
    space = text.rfind(" ", least, end)
    return space + 1 if space >= 0 else _between_letters(text, start, end)


def _end_within(text: str, start: int, limit: int) -> int:
    """Return the furthest place behind `start` up to which there are at most `limit` units."""
    window = text[start : start + limit]
    end, units = len(window), utf16_length(window)
    while units > limit:
        end -= 1
        units -= 2 if window[end] > "\uffff" else 1
    return start + end


def _between_letters(text: str, start: int, end: int) -> int:
    """Return the last place up to `end` that is inside no letter; `end` where the letter before it is longer than letters are."""
    for place in range(end, max(start, end - _LONGEST_CLUSTER), -1):
        if not _form_one_letter(text, place):
            return place
    return end


def _form_one_letter(text: str, place: int) -> bool:
    """Whether the characters before and behind a place are one letter or one emoji."""
    before, after = text[place - 1], text[place]
    if before == _ZERO_WIDTH_JOINER or after == _ZERO_WIDTH_JOINER or _extends(after):
        return True
    if _is_regional(before) and _is_regional(after):
        count = 0
        while count < _LONGEST_CLUSTER and place > count and _is_regional(text[place - 1 - count]):
            count += 1
        return count % 2 == 1
    return "\u1100" <= before <= "\u115f" and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")


def _extends(letter: str) -> bool:
    """Whether a character belongs to the one before it: an accent, a skin tone, a tag of a flag, the rest of a Hangul syllable."""
    return (
        unicodedata.category(letter).startswith("M")
        or "\U0001f3fb" <= letter <= "\U0001f3ff"
        or "\U000e0020" <= letter <= "\U000e007f"
        or "\u1160" <= letter <= "\u11ff"
    )


def _is_regional(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"
