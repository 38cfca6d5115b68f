"""Find personal data by many patterns, tried together and only at the places of a text where a value may begin.

All values of the rows' patterns hold a digit, so a value begins at a number or at one of the short words before it. One expression says
whether any of some patterns fits, and only then another says which.

Long texts are searched in parts: one search of a text of ten megabytes would hold the interpreter for a third of a second. Before each
part it is looked whether there is time left for it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from string import ascii_letters
from typing import Any

from bardo.catalog.layer_rows import PiiEntity, PiiPattern
from bardo.context.effects import check_time
from bardo.values.errors import ConfigError

PART = 32 * 1024
MARGIN = 1024
"""No match of a bounded expression, with what stands behind it, is longer."""


def matches_in_parts(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern`, as its `finditer` does. They are shorter than MARGIN, or look at nothing behind them."""
    place = 0
    while place < len(text):
        check_time()
        end = place + PART
        stop = min(len(text), end + MARGIN)
        for candidate in pattern.finditer(text, place, stop):
            if candidate.start() >= end:
                break
            match = candidate if candidate.end() < stop or stop == len(text) else pattern.match(text, candidate.start())
            assert match is not None  # It matches the beginning of what stands there.
            yield match
            place = match.end()
            if match is not candidate:
                break
        place = max(place, end)


def changed_in_parts(change: Callable[[str], str], text: str) -> str:
    """Return a text of which each character is changed by itself."""
    if len(text) <= PART:
        return change(text)
    changed = []
    for start in range(0, len(text), PART):
        check_time()
        changed.append(change(text[start : start + PART]))
    return "".join(changed)


DIGIT, LETTER, OTHER = "0", "a", "?"
LENGTH = 5
"""So many characters of a match are known."""
_KINDS = f"{DIGIT}{LETTER} -.:/+()_*#\\{OTHER}"
_IN_WORD = f"{DIGIT}{LETTER}_"
_MOST_BEGINNINGS = 2_000
# It reads expressions for `re`, which has no public door to what it finds. What it does not find so costs time, and nothing else.
_PARSER = import_module("re._parser")


class _AnyBeginning(Exception):
    """The beginning of a pattern is unknown."""


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
    """Which of some patterns may match where characters of some kinds stand.

    Only the kinds of characters are looked at: digits, letters, and each sign that separates. At most places most patterns need not be
    tried.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        self._anywhere: list[int] = []
        self._by_beginning: dict[str, list[int]] = {}
        for place, expression in enumerate(expressions):
            beginnings = _beginnings(expression)
            if beginnings is None:
                self._anywhere.append(place)
            for beginning in beginnings or ():
                self._by_beginning.setdefault(beginning, []).append(place)

    def possible(self, kinds: str) -> tuple[int, ...]:
        """Return the places of the patterns that may match where characters of these kinds stand, `LENGTH` or the last of a text."""
        places = set(self._anywhere)
        for length in range(1, len(kinds) + 1):
            # No word goes on behind a match. A match that is longer than the known beginning contains all of it.
            if length == LENGTH or length == len(kinds) or kinds[length] not in _IN_WORD:
                places.update(self._by_beginning.get(kinds[:length], ()))
        return tuple(sorted(places))


@lru_cache(maxsize=4096)
def _beginnings(expression: str) -> frozenset[str] | None:
    """Return what the first characters of matches are, or None if that is not known."""
    try:
        beginnings = _followed(frozenset({""}), _PARSER.parse(expression, re.ASCII | re.IGNORECASE), {})
    except _AnyBeginning:
        return None
    return None if "" in beginnings else beginnings


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
                begun = frozenset().union(*[_followed(begun, choice, groups) for choice in argument[1]])
            case "MAX_REPEAT" | "MIN_REPEAT":
                begun = _repeated(begun, argument, groups)
            case _:
                raise _AnyBeginning
        if len(begun) > _MOST_BEGINNINGS:
            raise _AnyBeginning
    return begun


def _repeated(begun: frozenset[str], repeat: tuple[int, int, Any], groups: dict[int, Any]) -> frozenset[str]:
    least, most, part = repeat
    beginnings: set[str] = set()
    for count in range(min(most, LENGTH) + 1):
        if count >= min(least, LENGTH):
            beginnings |= begun
        following = _followed(begun, part, groups)
        if following == begun:
            # All of them are as long as is looked at.
            return frozenset(beginnings | begun)
        begun = following
    return frozenset(beginnings)


def _extended(begun: frozenset[str], kinds: Iterable[str]) -> frozenset[str]:
    open_ones = [prefix for prefix in begun if len(prefix) < LENGTH]
    return frozenset(
        {prefix for prefix in begun if len(prefix) == LENGTH}
        | {prefix + kind for prefix in open_ones for kind in kinds}
    )


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


WORD = r"0-9A-Za-z_\u00c0-\u024f"
"""Characters that stand neither before nor after a value."""
_NUMBERS = re.compile(
    # Before most numbers there is neither a word nor a sign that belongs to them.
    rf"((?<![{DIGIT}{LETTER}_+(\\])(?<!{LETTER}[ \-.:*])(?<!{LETTER}[ \-.:*][ \-.:*]){DIGIT}+)|{DIGIT}+"
)
_LETTERS = frozenset(ascii_letters + "ÄÖÜäöü")
_LONGEST_WORD = 8
_MOST_WORDS = 2
_GAPS = " -.:*"
_GROUP = re.compile(r"(?<!\\)\((?!\?)")
_TOGETHER = 16
_MOST_KINDS = 4096
_BEGINS = {DIGIT: "digit", LETTER: "letter"}
_FLAGS = re.ASCII | re.IGNORECASE

Row = tuple[PiiEntity, PiiPattern]


class PatternTable:
    """Patterns, sorted by what they begin with. Raises ConfigError for one that is no regular expression."""

    def __init__(self, rows: Sequence[Row]) -> None:
        for entity, pattern in rows:
            _check(entity, pattern)
        self._rows = rows
        self._signs = FirstSigns([pattern.match for _, pattern in rows])
        # What may match at a place, by the kinds of its characters, and the expressions for it, of which few are many.
        self._by_kinds: dict[str, tuple[_Group, ...]] = {}
        self._groups: dict[tuple[int, ...], _Group] = {}

    def matches(self, text: str) -> Iterator[tuple[int, int, PiiEntity, PiiPattern]]:
        """Yield where a pattern fits, and which: where it begins and ends, in no order."""
        kinds, by_kinds = kinds_of(text), self._by_kinds
        for start in beginnings(text, kinds):
            here = kinds[start : start + LENGTH]
            groups = by_kinds.get(here)
            if groups is None:
                groups = self._groups_for(here)
            for group in groups:
                if group.any(text, start):
                    for end, entity, pattern in group.all(text, start):
                        yield start, end, entity, pattern

    def _groups_for(self, kinds: str) -> tuple[_Group, ...]:
        first = kinds[:1]
        places = [
            place
            for place in self._signs.possible(kinds)
            if not (begins := self._rows[place][1].begins) or begins == _BEGINS.get(first)
        ]
        parts = [tuple(places[at : at + _TOGETHER]) for at in range(0, len(places), _TOGETHER)]
        for part in parts:
            if part not in self._groups:
                self._groups[part] = _Group([self._rows[place] for place in part])
        if len(self._by_kinds) >= _MOST_KINDS:
            self._by_kinds.clear()
        self._by_kinds[kinds] = groups = tuple([self._groups[part] for part in parts])
        return groups


class AnywherePatterns:
    """Patterns of an operator, each looked for in the whole text. Raises ConfigError for one that is no regular expression."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = [(_between_words(*row), row) for row in rows]

    def matches(self, text: str) -> Iterator[tuple[int, int, PiiEntity, PiiPattern]]:
        """Yield where a pattern fits, and which: where it begins and ends."""
        for expression, row in self._rows:
            for match in expression.finditer(text):
                if match.end() > match.start():
                    yield match.start(), match.end(), *row


class _Group:
    """Patterns that are tried by one expression."""

    def __init__(self, rows: Sequence[Row]) -> None:
        together = [_GROUP.sub("(?P<g>", row[1].match) for row in rows]
        plain = [
            text.replace("(?P<g>", f"(?P<g{place}>").replace("\\1", f"(?P=g{place})")
            for place, text in enumerate(together)
        ]
        before = [f"(?<![{re.escape(row[1].left)}])" if row[1].left else "" for row in rows]
        fitting = "|".join(f"{left}(?:{text})" for left, text in zip(before, plain, strict=True))
        self.any = re.compile(f"(?:{fitting})(?![{WORD}])", _FLAGS).match
        each = [f"(?:(?=(?P<r{place}>{text})(?![{WORD}]))|)" for place, text in enumerate(plain)]
        expression = re.compile("".join(each), _FLAGS)
        self._each = expression.match
        self._rows = [(expression.groupindex[f"r{place}"], row) for place, row in enumerate(rows)]

    def all(self, text: str, start: int) -> Iterator[tuple[int, PiiEntity, PiiPattern]]:
        """Yield the patterns that fit at a place, with where they end."""
        match = self._each(text, start)
        assert match is not None  # Each part of the expression may be empty.
        spans = match.regs
        for group, row in self._rows:
            end = spans[group][1]
            if end > start:
                yield end, *row


def beginnings(text: str, kinds: str) -> Iterator[int]:
    """Yield places where a value may begin, each once and in ascending order: numbers, and up to two short words before them.

    `kinds` are those of the text's characters.
    """
    last = -1
    for number in matches_in_parts(_NUMBERS, kinds):
        if number.lastindex:
            last = number.start()
            yield last
            continue
        for start in _starts(text, number.start()):
            if start > last:
                last = start
                yield start


def _starts(text: str, place: int) -> list[int]:
    """Return where a value may begin whose first number begins at a place."""
    starts: list[int] = []
    for _ in range(_MOST_WORDS + 1):
        begin = place
        while begin and place - begin <= _LONGEST_WORD and text[begin - 1] in _LETTERS:
            begin -= 1
        if begin and place - begin > _LONGEST_WORD:
            break
        if begin < place and begin and text[begin - 1] == "\\":
            # An escape of JSON ends here: \n, \t, \r.
            starts.insert(0, begin + 1)
            break
        if _is_boundary(text, begin):
            starts[:0] = [*_signs(text, begin), begin] if begin == place else [begin]
        gap = begin
        while gap and begin - gap < 2 and text[gap - 1] in _GAPS:
            gap -= 1
        if gap == begin or not gap or text[gap - 1] not in _LETTERS:
            break
        place = gap
    return starts


def _signs(text: str, begin: int) -> list[int]:
    """Return where the signs before a telephone number begin."""
    sign = begin
    while sign and begin - sign < 2 and text[sign - 1] in "+(":
        sign -= 1
    return [sign] if sign < begin and _is_boundary(text, sign) else []


def _is_boundary(text: str, place: int) -> bool:
    if place == 0:
        return True
    before = text[place - 1]
    return not ((before.isascii() and (before.isalnum() or before == "_")) or "\u00c0" <= before <= "\u024f")


def _between_words(entity: PiiEntity, pattern: PiiPattern) -> re.Pattern[str]:
    """Return the expression that finds a pattern where no word goes on beside it."""
    # Only by itself does a pattern show that it is whole: between parentheses `a)|(?:b` would be valid, and mean another thing.
    _check(entity, pattern)
    try:
        return re.compile(f"(?<![{WORD}])(?:{pattern.match})(?![{WORD}])", re.IGNORECASE)
    except re.error as problem:
        raise ConfigError(
            f"pattern {pattern.match!r} of {entity.name} sets flags for the whole expression",
            hint="write (?s:…) instead of (?s)…",
        ) from problem


def _check(entity: PiiEntity, pattern: PiiPattern) -> None:
    """Raise ConfigError for a pattern that is no regular expression, has several groups, or may mean another thing in later Pythons."""
    name = f"pattern {pattern.match!r} of {entity.name}"
    try:
        groups, notice = _groups_and_notice(pattern.match)
    except re.error as problem:
        raise ConfigError(f"{name} is no regular expression: {problem}") from problem
    if notice:
        raise ConfigError(f"{name} is ambiguous: {notice}", hint=r"write \ before -, &, ~, | and [ inside of [ ]")
    if groups > 1:
        raise ConfigError(f"{name} has {groups} groups", hint="write (?:…) instead of (…)")


@lru_cache(maxsize=4096)
def _groups_and_notice(expression: str) -> tuple[int, str]:
    """Return how many groups an expression has, and what Python notices about it. Kept, because Python notices it only once."""
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        groups = re.compile(expression, _FLAGS).groups
    return groups, "; ".join(str(warning.message) for warning in noticed)
