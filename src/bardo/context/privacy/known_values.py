"""The values that are masked in one call, and where they stand in a text.

A value that goes on in a word is left, unless it was found so. A masked value ends a word, so a value glued to it then stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bardo.context.privacy.patterns import matches_in_parts

HOLE = "\ufffc"
"""Stands in the place of a value where a text is searched once more: no pattern knows it."""
_LETTERS = r"A-Za-z\u00c0-\u024f"
_STARTS = re.compile(rf"(?<![0-9_])(?=[0-9])|(?<![{_LETTERS}_])(?=[{_LETTERS}])|(?=[^\s\"'0-9{_LETTERS}])")
_STARTS_IN_WORDS = re.compile(r"(?=[^\s\"'])")
_SHORT_HEAD = 4
_GLUED = re.compile(rf"{HOLE}[^\s\w{HOLE}]?\w|\w[^\s\w{HOLE}]?{HOLE}")

Pieces = Sequence[tuple[str, bool]]
"""A text in parts, and of each whether it is a value."""
_Part = tuple[str, bool | None]
"""A part, and whether it is a value, or None if it is not cut yet."""


class KnownValues:
    """The values of one call. Added by `add`; a text is cut at them by `pieces`."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._lengths: dict[str, list[int]] = {}
        self._heads: tuple[int, ...] = ()
        self._in_words: set[str] = set()

    def __contains__(self, value: str) -> bool:
        return value in self._values

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: str, *, in_word: bool = False) -> None:
        """Add a value. `in_word` says that it was found where a word goes on: then it is masked there too."""
        if value in self._values and (value in self._in_words or not in_word):
            return
        self._values.add(value)
        if in_word:
            self._in_words.add(value)
        head = value[: _head_length(len(value))]
        if len(head) not in self._heads:
            self._heads = tuple(sorted((*self._heads, len(head)), reverse=True))
        lengths = self._lengths.setdefault(head, [])
        if len(value) not in lengths:
            lengths.append(len(value))
            lengths.sort(reverse=True)

    def found_in_words(self, value: str) -> bool:
        """Whether a value is masked also where a word goes on beside it."""
        return value in self._in_words

    def pieces(self, text: str) -> Pieces:
        """Return a text cut at its values, the longest first from the left."""
        if not self._values or len(text) < self._heads[-1]:
            return ((text, False),)
        done: list[tuple[str, bool]] = []
        left: list[_Part] = [(text, None)]
        while left:
            part, is_value = left.pop()
            if is_value is None:
                left += reversed(self._parts(part))
            else:
                done.append((part, is_value))
        return done

    def _parts(self, text: str) -> list[_Part]:
        """Return the parts of a text. One that a value was glued to is to be cut again."""
        parts: list[_Part] = []
        read, glued = 0, False
        for start, end in self._places(text):
            if read < start:
                parts.append((text[read:start], None if glued or _joined(text[start - 1], text[start]) else False))
            parts.append((text[start:end], True))
            read, glued = end, end < len(text) and _joined(text[end], text[end - 1])
        if read < len(text) or not parts:
            parts.append((text[read:], None if glued else False))
        return parts

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        read = 0
        for beginning in matches_in_parts(_STARTS_IN_WORDS if self._in_words else _STARTS, text):
            start = beginning.start()
            if start >= read and (end := self._end(text, start)) is not None:
                yield start, end
                read = end

    def _end(self, text: str, start: int) -> int | None:
        for head in self._heads:
            for length in self._lengths.get(text[start : start + head], ()):
                end = start + length
                if self._stands(text, start, end):
                    return end
        return None

    def _stands(self, text: str, start: int, end: int) -> bool:
        """Whether a value stands at a place of a text."""
        value = text[start:end]
        return value in self._values and end <= len(text) and (value in self._in_words or not in_word(text, start, end))


def _head_length(length: int) -> int:
    """Return how many characters a value is looked up by: all of a short one, and more than half of a long one.

    So however many values begin alike, a place of a text is compared with no more of them than it has characters in common with them.
    """
    return length if length < _SHORT_HEAD else 1 << (length.bit_length() - 1)


def with_holes(pieces: Pieces) -> str:
    """Return a text without its values."""
    return "".join([HOLE if is_value else part for part, is_value in pieces])


def is_glued(text_with_holes: str) -> bool:
    """Return whether a word stands beside a value in a text, or one sign away: what it is may show only without the value."""
    return next(matches_in_parts(_GLUED, text_with_holes), None) is not None


def in_word(text: str, start: int, end: int) -> bool:
    """Return whether a value continues in a word: a digit or letter stands beside one of its own kind, or `_` beside either."""
    return (start > 0 and _joined(text[start], text[start - 1])) or (
        end < len(text) and _joined(text[end - 1], text[end])
    )


def _joined(own: str, beside: str) -> bool:
    if own.isdigit():
        return beside.isdigit() or beside == "_"
    return _is_letter(own) and (_is_letter(beside) or beside == "_")


def _is_letter(char: str) -> bool:
    return (char.isascii() and char.isalpha()) or "\u00c0" <= char <= "\u024f"
