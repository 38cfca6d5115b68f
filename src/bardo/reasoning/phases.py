"""The stretches of a reply, and what the markers do that end them.

A format is compiled into phases once; they are immutable, and shared by all replies in that format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

NOWHERE = r"(?!)"


class MatchedText(msgspec.Struct, frozen=True):
    """Text that a pattern fits. What fits must fit cut short as well, so the pattern is a possessive repetition."""

    pattern: str


class OptionalParts(msgspec.Struct, frozen=True):
    """Parts that may be missing."""

    parts: tuple[Part, ...]


Part = str | MatchedText | OptionalParts
Shape = Sequence[Part]


def final(literals: Iterable[str], shapes: Iterable[Shape] = ()) -> re.Pattern[str]:
    """Return a pattern that finds a marker in text that will not grow; of two that begin together, the longer."""
    longest_first = sorted(literals, key=len, reverse=True)
    choices = [*map(_whole, shapes), *map(re.escape, longest_first)]
    return re.compile("(" + "|".join(choices) + ")" if choices else NOWHERE)


def growing(literals: Iterable[str], shapes: Iterable[Shape] = ()) -> re.Pattern[str]:
    """Return a pattern that finds a marker (with a group), or the beginning of one at the end (without)."""
    choices = [*(_grown(tuple(shape)) for shape in shapes), *_branches("", sorted(literals))]
    return re.compile("|".join(choices) or NOWHERE)


def common_first(literals: Iterable[str], shapes: Collection[Shape] = ()) -> str:
    """Return the character that all markers begin with; empty if they differ."""
    firsts = {literal[0] for literal in literals} | {str(shape[0])[0] for shape in shapes}
    return firsts.pop() if len(firsts) == 1 else ""


def _whole(shape: Iterable[Part]) -> str:
    return "".join(_part(part) for part in shape)


def _part(part: Part) -> str:
    match part:
        case MatchedText(pattern):
            return pattern
        case OptionalParts(parts):
            return f"(?:{_whole(parts)})?"
        case _:
            return re.escape(part)


def _grown(parts: tuple[Part, ...]) -> str:
    """Write a shape in which every place may be the end of the text so far."""
    if not parts:
        return "()"
    first, rest = parts[0], parts[1:]
    match first:
        case OptionalParts(inner):
            return f"(?:{_grown((*inner, *rest))}|{_grown(rest)})"
        case MatchedText(pattern):
            return pattern + _or_end(rest)
        case _:
            shorter = (first[1:], *rest) if first[1:] else rest
            return re.escape(first[0]) + _or_end(shorter)


def _or_end(parts: tuple[Part, ...]) -> str:
    return rf"(?:\Z|{_grown(parts)})" if parts else "()"


def _branches(stem: str, literals: list[str]) -> list[str]:
    """Write the ways in which `literals`, which all begin with `stem`, go on after it: a trie of them."""
    heads = sorted({literal[len(stem)] for literal in literals if literal != stem})
    return [
        re.escape(head) + _node(stem + head, [literal for literal in literals if literal.startswith(stem + head)])
        for head in heads
    ]


def _node(stem: str, literals: list[str]) -> str:
    if literals == [stem]:
        return "()"
    complete = ["()"] if stem in literals else []
    return "(?:" + "|".join([*_branches(stem, literals), r"\Z", *complete]) + ")"


class Move(msgspec.Struct, frozen=True):
    """The effect of a marker: it leads to a phase, and vanish from the text or stay in it."""

    to: str
    text: Literal["gone", "left", "entered", "again"] = "gone"
    """Where the marker itself goes: nowhere, into the text of the phase that is left or of the one that is entered,
    or it is read again there."""
    opens: bool = False
    """Whether it begins something, so that fenced code makes it text."""
    anew: bool = False
    """Whether an open block ends here, though what follows is reasoning too."""
    note: str = ""
    """A note for the caller."""
    unless_mentioned: bool = False
    """Whether a marker that a sentence only names does nothing."""


class Phase(msgspec.Struct, frozen=True):
    """One stretch of a reply: whether it is reasoning, and which markers count in it."""

    reasoning: bool
    moves: Mapping[str, Move]
    header: Callable[[str], Move] | None
    """Reads the markers that are not literals."""
    settles: str | None
    """The phase that takes over when anything but whitespace comes first."""
    fenced: bool
    """Whether fenced code must be known, because an opener in it is text."""
    quiet: bool
    """Whether no block has begun here before there is text."""
    silent: bool
    """Whether no marker counts any more."""
    first: str
    """The character all markers of this phase begin with; empty if they differ."""
    growing: re.Pattern[str]
    """Finds a marker (with a group), or the beginning of one at the end of the text (without)."""
    final: re.Pattern[str]
    """Finds a marker in text that will not grow."""
    mentionable: bool
    """Whether some marker does nothing where it is only mentioned."""
    fenced_growing: re.Pattern[str]
    """As `growing`, but only for markers that count in fenced code: those that open nothing."""
    fenced_final: re.Pattern[str]
    """As `final`, but only for markers that count in fenced code."""

    def move(self, marker: str) -> Move:
        """Return what this marker does here."""
        step = self.moves.get(marker)
        if step is not None or self.header is None:
            return self.moves[marker] if step is None else step
        return self.header(marker)


Phases = Mapping[str, Phase]
Moves = Mapping[str, Move]

STRIPPED = "the reply begins as when a server strips special tokens; it must keep them (skip_special_tokens=false)"


def stripped(beginnings: Iterable[str]) -> Moves:
    """Return what to note at the beginning of a reply whose markers the server has made unreadable."""
    return {beginning: Move("outside", "entered", note=STRIPPED) for beginning in beginnings}


def content(
    moves: Moves,
    *,
    shapes: Collection[Shape] = (),
    header: Callable[[str], Move] | None = None,
    settles: str | None = None,
    fenced: bool = False,
) -> Phase:
    """Return a phase of the answer."""
    openers = bool(shapes) or any(move.opens for move in moves.values())
    return _phase(moves, shapes, header, reasoning=False, settles=settles, fenced=fenced and openers)


def reasoning(
    moves: Moves,
    *,
    shapes: Collection[Shape] = (),
    header: Callable[[str], Move] | None = None,
    settles: str | None = None,
    quiet: bool = False,
) -> Phase:
    """Return a phase of reasoning."""
    return _phase(moves, shapes, header, reasoning=True, settles=settles, quiet=quiet)


def _phase(
    moves: Moves,
    shapes: Collection[Shape],
    header: Callable[[str], Move] | None,
    *,
    reasoning: bool,
    settles: str | None,
    fenced: bool = False,
    quiet: bool = False,
) -> Phase:
    in_code = [marker for marker, move in moves.items() if not move.opens] if fenced else []
    return Phase(
        reasoning=reasoning,
        moves=MappingProxyType(dict(moves)),
        header=header,
        settles=settles,
        fenced=fenced,
        quiet=quiet,
        silent=not moves and not shapes and settles is None,
        first=common_first(moves, shapes),
        growing=growing(moves, shapes),
        final=final(moves, shapes),
        mentionable=any(move.unless_mentioned for move in moves.values()),
        fenced_growing=growing(in_code),
        fenced_final=final(in_code),
    )
