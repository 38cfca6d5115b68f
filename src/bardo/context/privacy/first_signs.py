"""Say of patterns what their matches begin with, so that at most places of a text most of them need not be tried.

Of a text only the kinds of its characters are looked at here: digits, letters, and each sign that separates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from bardo.context.privacy.long_texts import changed_in_parts

DIGIT, LETTER, OTHER = "0", "a", "?"
LENGTH = 5
"""So many characters of a match are known."""
_KINDS = f"{DIGIT}{LETTER} -.:/+()_*#\\{OTHER}"
_IN_WORD = f"{DIGIT}{LETTER}_"
_MOST_BEGINNINGS = 2_000
# It reads expressions for `re`, which has no public door to what it finds. What it does not find so costs time, and nothing else.
_PARSER = import_module("re._parser")


class _AnyBeginning(Exception):
    """What a pattern begins with is not known."""


def kind_of(char: str) -> str:
    """Return the kind of a character."""
    if "0" <= char <= "9":
        return DIGIT
    if (char.isascii() and char.isalpha()) or "\u00c0" <= char <= "\u024f":
        return LETTER
    return char if char in _KINDS else OTHER


class _Kinds(dict[int, str]):
    """The kinds of characters by their numbers, each found once."""

    def __missing__(self, number: int) -> str:
        kind = kind_of(chr(number))
        if len(self) < 0x3000:
            self[number] = kind
        return kind


_KIND_BY_NUMBER = _Kinds()


def kinds_of(text: str) -> str:
    """Return the kinds of the characters of a text, in their places."""
    return changed_in_parts(lambda part: part.translate(_KIND_BY_NUMBER), text)


class FirstSigns:
    """Which of some patterns may match where characters of some kinds stand."""

    def __init__(self, expressions: Sequence[str]) -> None:
        self._anywhere: list[int] = []
        self._by_beginning: dict[str, list[int]] = {}
        for place, expression in enumerate(expressions):
            beginnings = _beginnings(expression)
            if beginnings is None:
                self._anywhere.append(place)
            for one in beginnings or ():
                self._by_beginning.setdefault(one, []).append(place)

    def possible(self, kinds: str) -> tuple[int, ...]:
        """Return the places of the patterns that may match where characters of these kinds stand, `LENGTH` or the last of a text."""
        found = set(self._anywhere)
        for length in range(1, len(kinds) + 1):
            # No word goes on behind a match. One that is longer than what is known of it has all of it.
            if length == LENGTH or length == len(kinds) or kinds[length] not in _IN_WORD:
                found.update(self._by_beginning.get(kinds[:length], ()))
        return tuple(sorted(found))


@lru_cache(maxsize=4096)
def _beginnings(expression: str) -> frozenset[str] | None:
    """Return what the first characters of matches are; None where that is not known."""
    try:
        found = _followed(frozenset({""}), _PARSER.parse(expression, re.ASCII | re.IGNORECASE), {})
    except _AnyBeginning:
        return None
    return None if "" in found else found


def _followed(begun: frozenset[str], parts: Iterable[tuple[Any, Any]], groups: dict[int, Any]) -> frozenset[str]:
    """Return beginnings of matches, each followed by what parts of an expression match. `groups` take its groups. Raises _AnyBeginning."""
    for operator, argument in parts:
        match str(operator):
            case "LITERAL":
                begun = _extended(begun, kind_of(chr(argument)))
            case "IN":
                begun = _extended(begun, _kinds_in(argument))
            case "ANY" | "NOT_LITERAL":
                begun = _extended(begun, _KINDS)
            case "AT" | "ASSERT" | "ASSERT_NOT":
                pass
            case "SUBPATTERN":
                groups[argument[0]] = argument[3]
                begun = _followed(begun, argument[3], groups)
            case "GROUPREF" if argument in groups:
                begun = _followed(begun, groups[argument], groups)
            case "BRANCH":
                begun = frozenset().union(*[_followed(begun, one, groups) for one in argument[1]])
            case "MAX_REPEAT" | "MIN_REPEAT":
                begun = _repeated(begun, argument, groups)
            case _:
                raise _AnyBeginning
        if len(begun) > _MOST_BEGINNINGS:
            raise _AnyBeginning
    return begun


def _repeated(begun: frozenset[str], repeat: tuple[int, int, Any], groups: dict[int, Any]) -> frozenset[str]:
    least, most, part = repeat
    found: set[str] = set()
    for count in range(min(most, LENGTH) + 1):
        if count >= min(least, LENGTH):
            found |= begun
        following = _followed(begun, part, groups)
        if following == begun:
            # All of them are as long as is looked at.
            return frozenset(found | begun)
        begun = following
    return frozenset(found)


def _extended(begun: frozenset[str], kinds: Iterable[str]) -> frozenset[str]:
    open_ones = [one for one in begun if len(one) < LENGTH]
    return frozenset({one for one in begun if len(one) == LENGTH} | {one + kind for one in open_ones for kind in kinds})


def _kinds_in(parts: Iterable[tuple[Any, Any]]) -> set[str]:
    """Return the kinds of the characters of a set."""
    kinds: set[str] = set()
    for operator, argument in parts:
        match str(operator):
            case "LITERAL":
                kinds.add(kind_of(chr(argument)))
            case "RANGE" if argument[1] - argument[0] < 1_000:
                kinds |= {kind_of(chr(number)) for number in range(argument[0], argument[1] + 1)}
            case _:
                return set(_KINDS)
    return kinds
