"""Find the first of several markers in text that is still arriving.

Of two markers the one that begins first counts, and of two that begin together, the longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

NOWHERE = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class Markers:
    """Two ways to look for the same markers."""

    growing: re.Pattern[str]
    """Finds a marker (with a group), or the beginning of one at the end of the text (without)."""
    final: re.Pattern[str]
    """Finds a marker, with a group, in text that will not grow."""


@lru_cache(maxsize=1024)
def markers(words: tuple[str, ...]) -> Markers:
    """Return the finder of these words; of none, one that finds nothing."""
    longest_first = sorted({word for word in words if word}, key=len, reverse=True)
    if not longest_first:
        return Markers(NOWHERE, NOWHERE)
    return Markers(
        re.compile("|".join(map(_growing, longest_first))),
        re.compile("(" + "|".join(map(re.escape, longest_first)) + ")"),
    )


def begins_one(text: str, words: Iterable[str]) -> bool:
    """Say whether `text` is the beginning, but not the whole, of one of the words."""
    return any(len(word) > len(text) and word.startswith(text) for word in words)


def _growing(word: str) -> str:
    # The longer word stands first, so its beginning at the end of the text goes before a shorter word that is complete there.
    pattern = "()"
    for character in reversed(word[1:]):
        pattern = rf"(?:{re.escape(character)}{pattern}|\Z)"
    return re.escape(word[0]) + pattern
