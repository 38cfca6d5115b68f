"""Compile the delimiters of a format into the phases that a reply goes through.

    before ─ opener ─> inside ─ closer ─> after ─ opener, in multi formats ─> inside …
    before ─ other text ─> outside ─ opener ─> inside          prefilled ─ echoed opener or other text ─> inside

Each phase has one regular expression, which finds the first place where a delimiter is, or could be once more text
has come. It is a trie of the phase's delimiters in which every node may also be the end of what is known so far.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from bardo.reasoning.formats import ReasoningFormat

Phases = Mapping[str, "Phase"]


@dataclass(frozen=True, slots=True)
class Move:
    """What a delimiter does: lead to a phase, and vanish from the text or stay in it."""

    to: str
    consumes: bool = True


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of a reply: whether it is reasoning, and which delimiters count in it."""

    reasoning: bool
    moves: Mapping[str, Move]
    settles: str | None
    """The phase that takes over when anything but whitespace comes first."""
    fenced: bool
    """Whether fenced code must be known, because an opener in it is text."""
    silent: bool
    """Whether no delimiter counts any more."""
    first: str
    """The character all delimiters of this phase begin with; empty if they differ."""
    growing: re.Pattern[str]
    """Finds a delimiter (with a group), or the beginning of one at the end of the text (without)."""
    final: re.Pattern[str]
    """Finds a delimiter in text that will not grow."""


@lru_cache(maxsize=256)
def phases_of(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name. They are immutable, and shared by all replies in this row."""
    multi, anywhere = row.blocks == "multi", row.opens == "anywhere"
    openers = {start: Move("inside") for start in row.starts}
    closers = {end: Move("after") for end in row.ends}
    closing = {end: Move("after", consumes=False) for end in row.implicit_ends} | closers
    leading = closers if row.leading_closer else {}

    def dropping(phase: str) -> dict[str, Move]:
        return {marker: Move(phase) for marker in row.dropped}

    return MappingProxyType(
        {
            "before": _content(leading | openers | dropping("before"), settles="outside", fenced=anywhere),
            "outside": _content((openers if anywhere else {}) | dropping("outside"), fenced=anywhere),
            "prefilled": _reasoning(openers | closing, settles="inside"),
            "inside": _reasoning(closing),
            "after": _content(
                (openers if multi else {}) | dropping("after"),
                settles="outside" if multi and not anywhere else None,
                fenced=multi and anywhere,
            ),
        }
    )


def _content(moves: dict[str, Move], *, fenced: bool, settles: str | None = None) -> Phase:
    return _phase(moves, reasoning=False, settles=settles, fenced=fenced)


def _reasoning(moves: dict[str, Move], *, settles: str | None = None) -> Phase:
    return _phase(moves, reasoning=True, settles=settles, fenced=False)


def _phase(moves: dict[str, Move], *, reasoning: bool, settles: str | None, fenced: bool) -> Phase:
    firsts = {marker[0] for marker in moves}
    return Phase(
        reasoning=reasoning,
        moves=MappingProxyType(moves),
        settles=settles,
        fenced=fenced and bool(moves),
        silent=not moves and settles is None,
        first=firsts.pop() if len(firsts) == 1 and settles is None else "",
        growing=re.compile(_growing(moves)),
        final=re.compile(_final(moves)),
    )


NOWHERE = r"(?!)"


def _final(markers: Iterable[str]) -> str:
    longest_first = sorted(markers, key=len, reverse=True)
    return "(" + "|".join(map(re.escape, longest_first)) + ")" if longest_first else NOWHERE


def _growing(markers: Iterable[str]) -> str:
    return "|".join(_branches("", sorted(markers))) or NOWHERE


def _branches(stem: str, markers: list[str]) -> list[str]:
    """Write the ways in which `markers`, which all begin with `stem`, go on after it."""
    heads = sorted({marker[len(stem)] for marker in markers if marker != stem})
    return [
        re.escape(head) + _node(stem + head, [marker for marker in markers if marker.startswith(stem + head)])
        for head in heads
    ]


def _node(stem: str, markers: list[str]) -> str:
    if markers == [stem]:
        return "()"
    complete = ["()"] if stem in markers else []
    return "(?:" + "|".join([*_branches(stem, markers), r"\Z", *complete]) + ")"
