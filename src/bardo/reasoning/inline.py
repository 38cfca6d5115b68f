"""Thinking that stands inside the content of a reply, separated from it: a stage over events.

Text that follows thinking is a block of its own, as is the thinking. A block of thinking that holds nothing is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.machines import ReplySplitter, splitter_for
from bardo.reasoning.registry import find_format
from bardo.reasoning.splitter import Segment
from bardo.reasoning.undecided import UndecidedSplitter, can_be_undecided
from bardo.values.degradation import Degradation
from bardo.values.events import ContentChunk, Degraded, EmptyThought, Event, Finish, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.separation import SeparatedChoice, Separation

TAGS = "think-tags"
ThinkingPlace = Literal["field", "text", "unclosed", "none"]
"""Where the thinking of a reply stood: in a field of its own; in the text, which closed what it had not opened; in a text that closed
nothing, though it was read as thinking; nowhere, in a finished reply."""


class InlineReasoning(Separation[Segment]):
    """Separates the inline thinking of one reply, each choice on its own.

    `undecided`: it is unknown whether the reply begins inside thinking; `starts_inside` is then the likely answer. `limit` is how many
    characters may be held to find out, or None if no reader waits. `explained`: that a reply does not think has a reason, so a thought that
    its text opens and does not close is the answer.
    """

    def __init__(
        self,
        format: ReasoningFormat,  # noqa: A002
        *,
        starts_inside: bool | None = None,
        undecided: bool = False,
        limit: int | None = None,
        explained: bool = False,
    ) -> None:
        held = undecided and can_be_undecided(format)

        def begin() -> ReplySplitter:
            if held:
                return UndecidedSplitter(format, likely_inside=starts_inside is True, limit=limit, explained=explained)
            return splitter_for(format, starts_inside=starts_inside)

        super().__init__(lambda index: self._first(_Choice(index, format, begin, explained=explained)))
        self._first_choice: _Choice | None = None

    @classmethod
    def of(cls, format_name: str) -> InlineReasoning:
        """Return the stage for a format by its name. Raises UnknownFormat."""
        return cls(find_format(format_name))

    def finish(self) -> Sequence[Event]:
        """Return what the readers held: a reply without its end was cut."""
        for choice in self._choices.values():
            choice.broken = True  # type: ignore[attr-defined]
        return super().finish()

    @property
    def place(self) -> ThinkingPlace | None:
        """Where the first choice's thinking stood, or None if its reply does not say."""
        return None if self._first_choice is None else self._first_choice.place

    def _first(self, choice: _Choice) -> _Choice:
        self._first_choice = self._first_choice or choice
        return choice


class _Choice(SeparatedChoice[Segment]):
    """The state of one choice: its splitter, and the thinking that is open."""

    def __init__(
        self,
        index: int,
        format: ReasoningFormat,  # noqa: A002
        begin: Callable[[], ReplySplitter],
        *,
        explained: bool,
    ) -> None:
        super().__init__(index)
        self._explained = explained
        self._format = format
        self._begin = begin
        self._splitter: ReplySplitter | None = None
        self._thinking = -1
        self._blank: list[str] = []
        self._notes_reported = 0
        self._end: Finish | None = None
        # The text of a block that the reply did not open, as long as nothing closes it: at the end it may be the answer.
        self._unclosed: list[str] | None = None
        self._answered = self._thought = False
        self.broken = False
        self.place: ThinkingPlace | None = None

    @property
    def _is_truncated(self) -> bool:
        """Whether the model did not end the reply itself."""
        return self.broken or (self._end is not None and self._end.reason in ("length", "error"))

    def other(self, item: Event) -> Sequence[Event]:
        """Pass on an event that is not content, its block renumbered."""
        kind = type(item)
        if kind is ThinkStart:
            # The provider separates the thinking itself: its content does not begin inside.
            self._begin = self._begin_outside
            self.place = "field"
        elif kind is Finish:
            self._end = item  # type: ignore[assignment]
        # Separate thinking passes here chunk by chunk, and super() would cost more than the rest.
        return SeparatedChoice.other(self, item)

    def break_off(self) -> list[Event]:
        """Return what the reader held: without its end the reply was cut."""
        self.broken = self.broken or self._end is None
        return self.flush()

    def flush(self) -> list[Event]:
        """Return what the reader held; the block it read is over."""
        splitter = self._splitter if self.reader is not None else None
        if isinstance(splitter, UndecidedSplitter) and not self._is_truncated:
            splitter.complete()
        if splitter is None or self._end is None:
            return super().flush()
        inside = splitter.inside
        events = super().flush()
        return [*events, *self._ended(inside)]

    def _open(self) -> ReplySplitter:
        self._splitter = splitter = self._begin()
        # Only the beginning of a reply continues what the prompt began.
        self._begin = self._begin_outside
        if splitter.inside or self._explained or isinstance(splitter, UndecidedSplitter):
            self._unclosed = []
        return splitter

    def _begin_outside(self) -> ReplySplitter:
        return splitter_for(self._format, starts_inside=False)

    def _events(self, pieces: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in pieces:
            if segment.reasoning:
                self.numbers.pop(self._reading, None)
                events += self._think(segment)
            elif segment.text:
                self._answered = True
                events.append(ContentChunk(self._number(self._reading), segment.text, self._index))
        return events + self._notes()

    def _close(self) -> list[Event]:
        thinking, self._thinking = self._thinking, -1
        return [ThinkEnd(thinking, self._index)] if thinking >= 0 else []

    def _notes(self) -> list[Event]:
        """Tell the caller what the splitter noted since it was asked last."""
        noted: Sequence[str] = getattr(self._splitter, "notes", ())
        fresh, self._notes_reported = noted[self._notes_reported :], len(noted)
        return [self._degraded(note) for note in fresh]

    def _degraded(self, why: str) -> Event:
        return Degraded(Degradation("inline_reasoning", asked=self._format.name, why=why))

    def _think(self, segment: Segment) -> list[Event]:
        events: list[Event] = []
        text = segment.text
        self._note_place(segment)
        if self._thinking < 0:
            if not text or text.isspace():
                self._blank.append(text)
                return self._empty() if segment.closes else []
            text = "".join([*self._blank, text])
            self._blank.clear()
            self._thinking = self._fresh()
            events.append(ThinkStart(self._thinking, TAGS, self._index))
        if text:
            events.append(ThinkChunk(self._thinking, text, None, self._index))
        return events + self._close() if segment.closes else events

    def _empty(self) -> list[Event]:
        """Tell of a block that held nothing; one that only began before the reply was cut says nothing."""
        self._blank.clear()
        return [] if self._is_truncated else [EmptyThought(self._index)]

    def _note_place(self, segment: Segment) -> None:
        """Follow a block that the reply did not open to the delimiter that closes it."""
        self._thought = True
        if self._unclosed is None:
            return
        begins_inside = self._splitter.begins_inside is True if isinstance(self._splitter, UndecidedSplitter) else True
        closed = segment.closes and self._end is None and not self.broken
        # An opener of its own may be what a server repeats of the prompt, where there is a reason not to think.
        if not begins_inside and (closed or self._answered or not self._explained):
            self._unclosed = None
        elif closed:
            self._unclosed, self.place = None, "text"
        else:
            self._unclosed.append(segment.text)

    def _ended(self, inside: bool) -> list[Event]:
        """Return the end of a finished reply: one that closed nothing is the answer, though it was shown as thinking before."""
        assert self._end is not None
        unclosed, self._unclosed = self._unclosed, None
        if not self._thought:
            self.place = self.place or "none"
        if self._end.reason != "stop" or self._answered or not inside:
            return []
        if unclosed is None:
            return [self._degraded(_NO_ANSWER)]
        self.place = "unclosed"
        text = "".join(unclosed)
        if not text.strip():
            return []
        return [self._degraded(_SHOWN_TWICE), ContentChunk(self._fresh(), text, self._index)]


_NO_ANSWER = "the model ended its reply inside its thinking: there is no answer"
_SHOWN_TWICE = (
    "the reply was read as thinking while it arrived, but nothing ended the thinking: it is given as the answer too"
)
