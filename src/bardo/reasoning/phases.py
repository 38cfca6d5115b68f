"""The stretches of a reply, and what the markers do that end them.

A format is compiled into phases once; they are immutable, and shared by all replies in that format.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from bardo.reasoning.patterns import Shape, common_first, final, growing


@dataclass(frozen=True, slots=True)
class Move:
    """What a marker does: lead to a phase, and vanish from the text or stay in it."""

    to: str
    text: Literal["gone", "left", "entered", "again"] = "gone"
    """Where the marker itself goes: nowhere, into the text of the phase that is left or of the one that is entered,
    or it is read again there."""
    opens: bool = False
    """Whether it begins something, so that fenced code makes it text."""
    anew: bool = False
    """Whether an open block ends here, though what follows is reasoning too."""
    note: str = ""
    """What the caller should be told."""


@dataclass(frozen=True, slots=True)
class Phase:
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
    fenced_growing: re.Pattern[str]
    """As `growing`, but only for markers that count in fenced code: those that open nothing."""
    fenced_final: re.Pattern[str]
    """As `final`, but only for markers that count in fenced code."""

    def move(self, marker: str) -> Move:
        """Return what this marker does here."""
        found = self.moves.get(marker)
        if found is not None or self.header is None:
            return self.moves[marker] if found is None else found
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
        fenced_growing=growing(in_code),
        fenced_final=final(in_code),
    )
