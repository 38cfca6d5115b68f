"""Read a reply of which it is unknown whether it begins inside thinking: decide by its first closing delimiter, or at its end.

A chat template may have opened the thinking, and the server may leave it in the text: then the text closes a block that it never opened. Or
the server separates thinking, or there was none: then the same text is the answer, and nothing before its end says so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from bardo.reasoning.classes import ClassFormat
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.mentions import opens_block
from bardo.reasoning.splitter import Segment, Splitter
from bardo.streams.fences import FenceTracker

SEEN_THINKING_LIMIT = 512
"""How many characters are held where earlier replies of the server began with thinking."""
LIKELY_THINKING_LIMIT = 4_096
"""How many are held where they are probably thinking: a client should see long thinking while it arrives."""
LIKELY_ANSWER_LIMIT = 65_536
"""How many are held where they are probably the answer, which cannot be taken back once it was given."""
_TAGGED = frozenset({"delimiters", "suffixed"})


def can_be_undecided(row: ReasoningFormat) -> bool:
    """Return whether a format has replies that begin inside a block: one with a closing delimiter, read by the splitter."""
    tagged = row.machine in _TAGGED and not isinstance(row, ClassFormat)
    return tagged and bool(row.starts and row.ends) and row.stray_end == "reasoning"


def closes_unopened(text: str, row: ReasoningFormat) -> bool:
    """Return whether a whole answer closes a block that it never opened, so that it began inside one."""
    starts, ends = _beginnings(row, row.starts), _beginnings(row, row.ends)
    if not can_be_undecided(row) or not any(end in text for end in ends):
        return False
    before = text[: _first_end(text, ends)[0]]
    return not opens_block(before, starts, at_line=False) and not _quotes(before)


class UndecidedSplitter:
    """Splits one reply. `likely_inside` decides where the reply's end says nothing, or comes too late: no more than `limit`
    characters are held, where there is one.

    `complete` must be called before `finish` where the model ended the reply itself. `begins_inside` is what was decided, None before.
    `explained`: that the reply does not think has a reason. Then a whole reply that opens a block and never closes it is the answer: its
    opener is the prompt's, which some servers repeat.
    """

    def __init__(
        self,
        format: ReasoningFormat,  # noqa: A002
        *,
        likely_inside: bool,
        limit: int | None = None,
        explained: bool = False,
    ) -> None:
        self._format = format
        self._likely_inside = likely_inside
        self._limit = sys.maxsize if limit is None else limit
        self._starts, self._ends = _beginnings(format, format.starts), _beginnings(format, format.ends)
        self._texts: list[str] = []
        self._size = 0
        self._beginning = ""
        self._may_open = True
        self._may_repeat = explained and limit is None
        self._opener = ""
        # What ends thinking beside its own delimiter, the marker of a tool call, may as well stand in an answer.
        self._trial = Splitter(format if likely_inside else _without_implicit_ends(format), starts_inside=True)
        self._segments: list[Segment] = []
        self._decided: Splitter | None = None
        self._complete = False
        self.begins_inside: bool | None = None

    @property
    def inside(self) -> bool:
        """Whether the text read so far ends inside a block, as far as that is decided."""
        return self._decided is not None and self._decided.inside

    @property
    def passing(self) -> str:
        """The text without which the next piece passes as it is, empty where the piece has to be read."""
        return "" if self._decided is None else self._decided.passing

    @property
    def notes(self) -> Sequence[str]:
        """The notes for the caller on this reply, each once."""
        return () if self._decided is None else self._decided.notes

    def complete(self) -> None:
        """Note that the model ended the reply itself: the held text closes no block any more."""
        self._complete = True

    def feed(self, text: str) -> Sequence[Segment]:
        """Return the decided events."""
        if self._decided is not None:
            return self._decided.feed(text)
        self._texts.append(text)
        self._size += len(text)
        if self._opener:
            return ()
        if self._may_open and self._opens(text):
            if not self._may_repeat:
                return self._decide(inside=False)
            self._opener = next(start for start in self._starts if self._beginning.startswith(start))
            return ()
        segments = self._trial.feed(text)
        self._segments += segments
        if any(segment.closes for segment in segments):
            return self._decide(inside=self._closes_thinking())
        return self._decide(inside=self._likely_inside) if self._size > self._limit else ()

    def finish(self) -> Sequence[Segment]:
        """Return what was held. A finished reply that closes nothing is the answer."""
        if self._decided is not None:
            return self._decided.finish()
        if self._opener:
            return [*self._without_repeated(), *self.finish()]
        blank = not "".join(self._texts).strip()
        decided = self._decide(inside=self._likely_inside and not self._complete and not blank)
        return [*decided, *self.finish()]

    def _without_repeated(self) -> Sequence[Segment]:
        """Decide a reply that begins with an opener, which is left out where a finished reply does not close it."""
        text = "".join(self._texts)
        if self._complete and not any(end in text for end in self._ends):
            self._texts = [text.lstrip().removeprefix(self._opener)]
        return self._decide(inside=False)

    def _opens(self, text: str) -> bool:
        """Whether the reply begins with an opener of its own."""
        self._beginning = (self._beginning + text).lstrip()
        self._may_open = not self._beginning or any(start.startswith(self._beginning) for start in self._starts)
        return self._beginning.startswith(self._starts)

    def _closes_thinking(self) -> bool:
        """Whether the closing delimiter ends thinking, and not a block that the text opened later, and is not quoted in an answer."""
        text = "".join(self._texts)
        place, length = _first_end(text, self._ends)
        if place + length > self._limit:
            return self._likely_inside
        before = text[:place]
        if opens_block(before, self._starts, at_line=self._likely_inside):
            return False
        return self._likely_inside or not _quotes(before)

    def _decide(self, *, inside: bool) -> Sequence[Segment]:
        segments, texts = self._segments, self._texts
        self._segments, self._texts, self._beginning = [], [], ""
        self.begins_inside = inside
        if inside:
            self._decided = self._trial
            return segments
        self._decided = Splitter(self._format, starts_inside=False)
        return self._decided.feed("".join(texts))


@lru_cache(maxsize=256)
def _without_implicit_ends(row: ReasoningFormat) -> ReasoningFormat:
    return msgspec.structs.replace(row, implicit_ends=()) if row.implicit_ends else row


def _beginnings(row: ReasoningFormat, delimiters: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the delimiters of a format begin with: all of them, but for a suffix that a checkpoint chose."""
    return tuple(delimiter.removesuffix(">") for delimiter in delimiters) if row.machine == "suffixed" else delimiters


def _first_end(text: str, ends: tuple[str, ...]) -> tuple[int, int]:
    """Return where the first closing delimiter begins, and how long it is."""
    ends_found = ((place, len(end)) for end in ends if (place := text.find(end)) >= 0)
    return min(ends_found, default=(len(text), 0))


def _quotes(before: str) -> bool:
    """Return whether what follows is quoted as code."""
    fence = FenceTracker()
    fence.feed(before)
    return fence.inside or before.endswith("`")
