"""Split the text of a reply into reasoning and answer while it arrives.

Any cut of the text gives the same segments once neighbours are joined. What goes in comes out, in order and to the
character, except for the delimiters that were consumed. Only the beginning of a possible delimiter is held.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType

import msgspec

from bardo.reasoning.delimiters import delimiter_phases, suffixed_phases
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.mentions import is_mention
from bardo.reasoning.messages import GRAMMARS, message_phases
from bardo.reasoning.phases import Phase, Phases
from bardo.streams.fences import FenceTracker


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A piece of a reply.

    Reasoning segments belong to one block until one of them `closes` it; every block that began is closed once, by
    its end or by the end of the reply. A block that is empty, or has only begun, shows as a segment with no text.
    """

    reasoning: bool
    text: str
    closes: bool = False


# Where nothing decides any more, all text without this passes, and text with it does too.
UNHEARD_OF = "\0\0"


@lru_cache(maxsize=256)
def phases_of(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name, the same to every reply in it."""
    if row.machine in GRAMMARS:
        return MappingProxyType(dict(message_phases(row)))
    return MappingProxyType(dict(suffixed_phases(row) if row.machine == "suffixed" else delimiter_phases(row)))


class Splitter:
    """Splits one reply. `starts_inside` overrules the format, which cannot know how the prompt ended.

    `inside` says whether the text read so far ends inside a block; true before `finish` means that no end came. `passing` is
    the text without which the next piece passes as it is, empty where the piece has to be read. `notes` says what the caller
    should be told of this reply, each thing once.
    """

    __slots__ = ("_begun", "_fence", "_held", "_phase", "_phases", "format", "inside", "notes", "passing")

    def __init__(
        self,
        format: ReasoningFormat,  # noqa: A002
        *,
        starts_inside: bool | None = None,
    ) -> None:
        self.format = format
        inside = format.starts_inside is True if starts_inside is None else starts_inside
        self._phases = phases_of(format)
        self._phase = self._phases["opened" if inside else "before"]
        self._fence = FenceTracker()
        self._begun = False
        self.notes: list[str] = []
        self._hold("")

    def feed(self, text: str) -> Sequence[Segment]:
        phase = self._phase
        # Most chunks hold no marker, nor the beginning of one.
        if text and not self._held and phase.settles is None:
            absent = phase.first not in text if phase.first else phase.silent
            if absent or phase.growing.search(text) is None:
                if phase.fenced:
                    self._fence.feed(text)
                return (Segment(phase.reasoning, text),)
        return self._scan(self._held + text, _Segments(), final=False).take()

    def finish(self) -> Sequence[Segment]:
        """Return what was held, and close an open block. Nothing may be fed afterwards."""
        segments = self._scan(self._held, _Segments(), final=True)
        if self._phase.reasoning and self._begun:
            segments.close()
        self._phase = self._phases["after"]
        self._hold("")
        return segments.take()

    def ends_inside(self, text: str) -> bool:
        """Say whether `text`, as the last that is fed, would end inside a block. Nothing may be fed afterwards."""
        self._scan(self._held + text, _Segments(), final=True)
        return self._phase.reasoning

    def _scan(self, text: str, segments: "_Segments", *, final: bool) -> "_Segments":
        """Read `text`, which begins with what was held, and hold again what cannot be decided yet."""
        start = search_from = 0
        while True:
            phase = self._phase
            pattern = phase.final if final else phase.growing
            match = None if phase.silent else pattern.search(text, search_from)
            edge = match.start() if match else len(text)
            if phase.settles and not _blank(text[start:edge]):
                self._phase = self._phases[phase.settles]
                continue
            self._pass(text[start:edge], phase, segments)
            start = edge
            if match is None:
                self._hold("")
                return segments
            if phase.fenced and self._fence.inside:
                # In fenced code an opener is text, and hides no shorter marker that begins with it.
                match = (phase.fenced_final if final else phase.fenced_growing).match(text, edge)
            if match is None:
                search_from = edge + 1
            elif match.lastindex is None or (mention := _mention(phase, match, final)) is None:
                self._hold(text[edge:])
                return segments
            elif mention:
                search_from = match.end()
            else:
                start = search_from = self._move(phase, match, segments)

    def _hold(self, text: str) -> None:
        phase = self._phase
        self._held = text
        self.inside = phase.reasoning
        decides = text or phase.settles or phase.fenced
        self.passing = "" if decides else UNHEARD_OF if phase.silent else phase.first

    def _pass(self, text: str, phase: Phase, segments: "_Segments") -> None:
        if not text:
            return
        segments.add(phase.reasoning, text)
        self._begun = self._begun or phase.reasoning
        if phase.fenced:
            self._fence.feed(text)

    def _move(self, phase: Phase, match: re.Match[str], segments: "_Segments") -> int:
        """Do what the marker says; return where reading goes on."""
        marker = match.group()
        move = phase.move(marker)
        entered = self._phase = self._phases[move.to]
        if move.note and move.note not in self.notes:
            self.notes.append(move.note)
        if move.text == "left":
            self._pass(marker, phase, segments)
        if phase.reasoning and (move.anew or not entered.reasoning):
            self._close(phase, segments)
        if entered.reasoning and not entered.quiet:
            segments.add(True, "")
            self._begun = True
        if move.text == "entered":
            self._pass(marker, entered, segments)
        return match.start() if move.text == "again" else match.end()

    def _close(self, phase: Phase, segments: "_Segments") -> None:
        if self._begun or not phase.quiet:
            segments.close()
        self._begun = False
        self._fence = FenceTracker()


class _Segments:
    """Collects pieces in order, and joins neighbours of one kind."""

    __slots__ = ("_done", "_parts", "_reasoning")

    def __init__(self) -> None:
        self._done: list[Segment] = []
        self._parts: list[str] = []
        self._reasoning = False

    def add(self, reasoning: bool, text: str) -> None:
        if reasoning is not self._reasoning:
            self._end_run(closes=False)
            self._reasoning = reasoning
        self._parts.append(text)

    def close(self) -> None:
        self.add(True, "")
        self._end_run(closes=True)

    def take(self) -> list[Segment]:
        self._end_run(closes=False)
        return self._done

    def _end_run(self, *, closes: bool) -> None:
        if self._parts:
            self._done.append(Segment(self._reasoning, "".join(self._parts), closes))
            self._parts = []


def _mention(phase: Phase, match: re.Match[str], final: bool) -> bool | None:
    """Return whether a marker is only mentioned; None while that is not known."""
    if not phase.mentionable or not phase.move(match.group()).unless_mentioned:
        return False
    return is_mention(match.string, match.end(), final=final)


def _blank(text: str) -> bool:
    return not text or text.isspace()
