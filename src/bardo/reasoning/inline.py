"""Thinking that stands inside the content of a reply, separated from it: a stage over events.

Text that follows thinking is a block of its own, as is the thinking.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.machines import ReplySplitter, splitter_for
from bardo.reasoning.registry import find_format
from bardo.reasoning.splitter import Segment
from bardo.values.degradation import Degradation
from bardo.values.events import ContentChunk, Degraded, Event, ThinkChunk, ThinkEnd, ThinkStart
from bardo.values.separation import SeparatedChoice, Separation

TAGS = "think-tags"


class InlineReasoning(Separation[Segment]):
    """Separates the inline thinking of one reply, each choice on its own."""

    def __init__(self, format: ReasoningFormat, *, starts_inside: bool | None = None) -> None:  # noqa: A002
        super().__init__(lambda index: _Choice(index, format, starts_inside))

    @classmethod
    def of(cls, format_name: str) -> InlineReasoning:
        """Return the stage for a format by its name. Raises UnknownFormat."""
        return cls(find_format(format_name))


class _Choice(SeparatedChoice[Segment]):
    """The state of one choice: its splitter, and the thinking that is open."""

    def __init__(self, index: int, format: ReasoningFormat, starts_inside: bool | None) -> None:  # noqa: A002
        super().__init__(index)
        self._format = format
        self._starts_inside = starts_inside
        self._splitter: ReplySplitter | None = None
        self._thinking = -1
        self._told = 0

    def other(self, item: Event) -> Sequence[Event]:
        """Pass on an event that is not content, its block renumbered."""
        if type(item) is ThinkStart:
            # The provider separates the thinking itself: its content does not begin inside.
            self._starts_inside = False
        # Separate thinking passes here chunk by chunk, and super() would cost more than the rest.
        return SeparatedChoice.other(self, item)

    def _open(self) -> ReplySplitter:
        self._splitter = splitter_for(self._format, starts_inside=self._starts_inside)
        # Only the beginning of a reply continues what the prompt began.
        self._starts_inside = False
        return self._splitter

    def _events(self, pieces: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in pieces:
            if segment.reasoning:
                self._numbers.pop(self._reading, None)
                events += self._think(segment)
            elif segment.text:
                events.append(ContentChunk(self._number(self._reading), segment.text, self._index))
        return events + self._notes()

    def _close(self) -> list[Event]:
        thinking, self._thinking = self._thinking, -1
        return [ThinkEnd(thinking, self._index)] if thinking >= 0 else []

    def _notes(self) -> list[Event]:
        """Tell the caller what the splitter noted since it was asked last."""
        noted: Sequence[str] = getattr(self._splitter, "notes", ())
        fresh, self._told = noted[self._told :], len(noted)
        return [self._degraded(note) for note in fresh]

    def _degraded(self, why: str) -> Event:
        return Degraded(Degradation("inline_reasoning", asked=self._format.name, why=why))

    def _think(self, segment: Segment) -> list[Event]:
        events: list[Event] = []
        if self._thinking < 0:
            self._thinking = self._fresh()
            events.append(ThinkStart(self._thinking, TAGS, self._index))
        if segment.text:
            events.append(ThinkChunk(self._thinking, segment.text, None, self._index))
        return events + self._close() if segment.closes else events
