"""What two globs have in common: an id that both match."""

from __future__ import annotations

import re
from collections import deque

from bardo.catalog.matching import matches_glob

_TOKENS = re.compile(r"\*+|\?|\[!?\]?[^\]]+\]|.", re.DOTALL)
_LONGEST = 64


def common_id(one: str, other: str) -> str | None:
    """Return a shortest id that both globs match, None where there is none. A wildcard stands for letters, digits and dashes."""
    first, second = _TOKENS.findall(one), _TOKENS.findall(other)
    letters = sorted(
        {
            *"x-7",
            *(token for token in (*first, *second) if len(token) == 1 and token not in "*?"),
            *_members(first, second),
        }
    )
    waiting, seen = deque([(0, 0, "")]), set()
    while waiting:
        here, there, text = waiting.popleft()
        if _ended(first, here) and _ended(second, there) and matches_glob(text, one) and matches_glob(text, other):
            return text
        if len(text) > _LONGEST or (here, there, text[-1:]) in seen:
            continue
        seen.add((here, there, text[-1:]))
        for letter in letters:
            for after in _steps(first, here, letter):
                waiting.extend((after, beyond, text + letter) for beyond in _steps(second, there, letter))
    return None


def _members(*globs: list[str]) -> set[str]:
    return {token[1] for tokens in globs for token in tokens if len(token) > 1 and token[0] == "["}


def _ended(tokens: list[str], place: int) -> bool:
    return all(token.startswith("*") for token in tokens[place:])


def _steps(tokens: list[str], place: int, letter: str) -> set[int]:
    """Return where a glob may be after one more letter."""
    found = set()
    while place < len(tokens) and tokens[place].startswith("*"):
        found.add(place)
        place += 1
    if place < len(tokens) and matches_glob(letter, tokens[place]):
        found.add(place + 1)
    return found
