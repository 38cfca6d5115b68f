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
        **_wrapper(row, again, dropping("closed")),
        **_calling(row, closing),
    }


def _closing(row: ReasoningFormat) -> dict[str, Move]:
    """Return what ends a block. A delimiter that ends it in both ways is consumed."""
    after = "closed" if row.answer_start else "after"
    ends = {end: Move(after) for end in row.ends}
    implicit = {marker: Move(after, "again", unless_mentioned=is_plain_tag(marker)) for marker in row.implicit_ends}
    return implicit | ends | {start: Move("calling", "entered") for start in spellings(row.call_start)}


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
