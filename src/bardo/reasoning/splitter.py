"""Split the text of a reply into reasoning and answer while it arrives.

Any cut of the text gives the same segments once neighbours are joined. What goes in comes out, in order and to the
character, except for the delimiters that were consumed. Only the beginning of a possible delimiter is held.
"""

import re
from collections.abc import Sequence

import msgspec

from bardo.reasoning.delimiters import Phase, phases_of
from bardo.reasoning.fences import FenceWatch
from bardo.reasoning.formats import ReasoningFormat


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A piece of a reply.

    Reasoning segments belong to one block until one of them `closes` it; every block that began is closed once, by
    its end or by the end of the reply. A block that is empty, or has only begun, shows as a segment with no text.
    """

    reasoning: bool
    text: str
    closes: bool = False


class Splitter:
    """Splits one reply. `starts_inside` overrules the format, which cannot know how the prompt ended."""

    __slots__ = ("_begun", "_fence", "_held", "_phase", "_phases", "format")

    def __init__(
        self,
        format: ReasoningFormat,  # noqa: A002
        *,
        starts_inside: bool | None = None,
    ) -> None:
        self.format = format
        inside = format.starts_inside is True if starts_inside is None else starts_inside
        self._phases = phases_of(format)
        self._phase = self._phases["prefilled" if inside else "before"]
        self._fence = FenceWatch()
        self._held = ""
        self._begun = False

    @property
    def inside(self) -> bool:
        """Whether the text read so far ends inside a block; true before `finish` means that no end came."""
        return self._phase.reasoning

    def feed(self, text: str) -> Sequence[Segment]:
        phase = self._phase
        if text and not self._held and (phase.silent or (phase.first and phase.first not in text)):
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
        return segments.take()

    def _scan(self, text: str, segments: "_Segments", *, final: bool) -> "_Segments":
        """Read `text`, which begins with what was held, and hold again what cannot be decided yet."""
        self._held = ""
        start = search_from = 0
        while True:
            phase = self._phase
            found = (phase.final if final else phase.growing).search(text, search_from)
            edge = found.start() if found else len(text)
            if phase.settles and not _blank(text[start:edge]):
                self._phase = self._phases[phase.settles]
                continue
            self._pass(text[start:edge], phase, segments)
            start = edge
            if found is None:
                return segments
            if self._quoted(phase, found):
                search_from = edge + 1
            elif found.lastindex is None:
                self._held = text[edge:]
                return segments
            else:
                start = search_from = self._move(phase, found, segments)

    def _pass(self, text: str, phase: Phase, segments: "_Segments") -> None:
        if not text:
            return
        segments.add(phase.reasoning, text)
        self._begun = self._begun or phase.reasoning
        if phase.fenced:
            self._fence.feed(text)

    def _quoted(self, phase: Phase, found: re.Match[str]) -> bool:
        """Whether only openers could be meant here, and fenced code makes them text."""
        if not phase.fenced or not self._fence.inside:
            return False
        marker = found.group()
        meant = [move for other, move in phase.moves.items() if other.startswith(marker)]
        return all(self._phases[move.to].reasoning for move in meant)

    def _move(self, phase: Phase, found: re.Match[str], segments: "_Segments") -> int:
        """Do what the delimiter says; return where reading goes on."""
        move = phase.moves[found.group()]
        self._phase = self._phases[move.to]
        if self._phase.reasoning:
            segments.add(True, "")
            self._begun = True
        elif phase.reasoning:
            segments.close()
            self._fence = FenceWatch()
        return found.end() if move.consumes else found.start()


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


def _blank(text: str) -> bool:
    return not text or text.isspace()
