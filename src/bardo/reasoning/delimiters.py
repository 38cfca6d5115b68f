"""Compile the delimiters of a format into the phases that a reply goes through.

    before ─ opener ─> opened ─ opener once more, or other text ─> inside ─ closer ─> after ─ opener, in multi formats ─> opened …
    before ─ other text ─> outside ─ opener ─> opened

A reply of which the prompt has opened the block begins in `opened`: an opener there repeats the one before it.
Where a format has a wrapper around its answer, `closed` and `wrapped` come before `after`; where calls stand inside
blocks, `calling` interrupts a block, and `resumed` continues it. Some checkpoints append a suffix of their own to a tag:
`<think:opensource>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bardo.reasoning.formats import ReasoningFormat, spellings
from bardo.reasoning.mentions import is_plain_tag
from bardo.reasoning.phases import MatchedText, Move, Moves, OptionalParts, Phase, Phases, content, reasoning, stripped


def delimiter_phases(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name."""
    multi, anywhere = row.blocks == "multi", row.opens == "anywhere"
    openers = {start: Move("opened", opens=True) for start in row.starts}
    leading = {end: Move("after") for end in row.ends} if row.leading_closer else {}
    closing = _closing(row)
    again = openers if multi else {}

    def dropping(phase: str) -> dict[str, Move]:
        return {marker: Move(phase) for marker in row.dropped}

    return {
        "before": content(
            {**stripped(row.stripped), **leading, **openers, **dropping("before")}, settles="outside", fenced=anywhere
        ),
        "outside": content((openers if anywhere else {}) | dropping("outside"), fenced=anywhere),
        "opened": reasoning({start: Move("inside") for start in row.starts} | closing, settles="inside"),
        "inside": reasoning(closing),
        "after": content(
            again | dropping("after"), settles="outside" if multi and not anywhere else None, fenced=anywhere
        ),
        **_interrupted(row, openers if anywhere else {}, dropping("called")),
        **_wrapper(row, again, dropping("closed")),
        **_calling(row, closing),
    }


def _closing(row: ReasoningFormat) -> dict[str, Move]:
    """Return what ends a block. A delimiter that ends it in both ways is consumed."""
    after = "closed" if row.answer_start else "after"
    ends = {end: Move(after) for end in row.ends}
    implicit = {
        marker: Move("called" if marker in _calls_of(row) else after, "again", unless_mentioned=is_plain_tag(marker))
        for marker in row.implicit_ends
    }
    return implicit | ends | {start: Move("calling", "entered") for start in spellings(row.call_start)}


def _calls_of(row: ReasoningFormat) -> dict[str, str]:
    """Return what ends each call that ends a block: its own tag, closed."""
    if row.answer_start:
        return {}
    ends = {marker: _closed(marker) for marker in row.implicit_ends if marker not in (*row.ends, *row.dropped)}
    return {marker: end for marker, end in ends.items() if end}


def _closed(marker: str) -> str:
    """Return the marker that closes what this one opens; empty where its spelling does not say."""
    for opens, closes in (("begin", "end"), ("START", "END"), ("open", "close")):
        if opens in marker:
            return marker.replace(opens, closes)
    head, tag, rest = marker.rpartition("<")
    if not tag or rest.startswith("|"):
        return ""
    # A tag with attributes is closed by its name.
    name = rest if rest.endswith(">") else f"{rest.partition(' ')[0]}>"
    return f"{head}</{name}"


def _interrupted(row: ReasoningFormat, openers: Moves, dropping: Moves) -> dict[str, Phase]:
    """A call ends a block, and models that called inside it still close it behind: that closer is none of the answer's.

    What a call says is text, and so is a closer behind anything but a call, which an answer may name.
    """
    calls = _calls_of(row)
    if not calls:
        return {}
    closers = {end: Move("after") for end in row.ends}
    begun = {marker: Move("calls", "left") for marker in calls}
    ended = {end: Move("called", "left") for end in calls.values()}
    fenced = row.opens == "anywhere"
    settles = "outside" if row.blocks == "multi" and not fenced else "after"
    return {
        "calls": content(ended, fenced=fenced),
        "called": content({**openers, **dropping, **closers, **begun}, settles=settles, fenced=fenced),
    }


def _wrapper(row: ReasoningFormat, again: Moves, dropping: Moves) -> dict[str, Phase]:
    """Only the first thing after a block opens the wrapper of the answer, and the first end closes it."""
    if not row.answer_start:
        return {}
    opening = {start: Move("wrapped") for start in spellings(row.answer_start)}
    return {
        "closed": content({**again, **dropping, **opening}, settles="after"),
        "wrapped": content({end: Move("after") for end in spellings(row.answer_end)}),
    }


def _calling(row: ReasoningFormat, closing: Moves) -> dict[str, Phase]:
    """A call inside a block belongs to the answer; then the block goes on, though often there is no more of it."""
    if not row.call_start:
        return {}
    resuming = {end: Move("resumed", "left") for end in spellings(row.call_end)}
    ends = {end: Move("after") for end in row.ends}
    return {
        "calling": content({**ends, **resuming}),
        "resumed": reasoning(closing, settles="inside", quiet=True),
    }


SUFFIX = re.compile(r":[\w-]+>$")
NAME = MatchedText(r"[\w-]{1,64}+")


def suffixed_phases(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name. Its delimiters are written without suffix, and end with `>`."""
    return {name: _suffixed(phase) for name, phase in delimiter_phases(row).items()}


def _suffixed(phase: Phase) -> Phase:
    moves: Mapping[str, Move] = phase.moves
    shapes = [(marker.removesuffix(">"), OptionalParts((":", NAME)), ">") for marker in moves]

    def read(marker: str) -> Move:
        return moves[SUFFIX.sub(">", marker)]

    if phase.reasoning:
        return reasoning(moves, shapes=shapes, header=read, settles=phase.settles)
    return content(moves, shapes=shapes, header=read, settles=phase.settles, fenced=phase.fenced)
