"""Thinking that stands inside the content of a reply, separated from it: a stage over events.

Each text block has a splitter of its own. Blocks are numbered anew, because one block of content may become several: text that follows
thinking is a block of its own, as is the thinking.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.machines import ReplySplitter, splitter_for
from bardo.reasoning.registry import find_format
from bardo.reasoning.splitter import Segment
from bardo.values.degradation import Degradation
from bardo.values.events import ContentChunk, Degraded, Event, Failed, Finish, ThinkChunk, ThinkEnd, ThinkStart

TAGS = "think-tags"


class InlineReasoning:
    """Separates the inline thinking of one reply, each choice on its own."""

    def __init__(self, format: ReasoningFormat, *, starts_inside: bool | None = None) -> None:  # noqa: A002
        self._format = format
        self._starts_inside = starts_inside
        self._choices: dict[int, _Choice] = {}

    @classmethod
    def of(cls, format_name: str) -> InlineReasoning:
        """Return the stage for a format by its name. Raises UnknownFormat."""
        return cls(find_format(format_name))

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on every event, content split."""
        if type(item) is ContentChunk:
            return self._choice(item.choice).content(item)
        if type(item) is Failed:
            return [*self.finish(), item]
        choice = getattr(item, "choice", None)
        if choice is None:
            return (item,)
        return self._choice(choice).other(item)

    def finish(self) -> Sequence[Event]:
        """Give back what the splitters held."""
        return [event for choice in self._choices.values() for event in choice.flush()]

    def _choice(self, index: int) -> _Choice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(index, self._format, self._starts_inside)
        return choice


class _Choice:
    """The state of one choice: which block is being split, and what each is called outside."""

    def __init__(self, index: int, format: ReasoningFormat, starts_inside: bool | None) -> None:  # noqa: A002
        self._index = index
        self._format = format
        self._starts_inside = starts_inside
        self._numbers: dict[int, int] = {}
        self._split: set[int] = set()
        self._next = 0
        self._splitter: ReplySplitter | None = None
        self._splitting = -1
        self._thinking = -1
        self._told = 0

    def content(self, item: ContentChunk) -> Sequence[Event]:
        """Split a piece of content."""
        begun: list[Event] = []
        if item.block != self._splitting:
            begun = self.flush()
            if item.block not in self._split:
                self._split.add(item.block)
                self._splitter = splitter_for(self._format, starts_inside=self._starts_inside)
                # Only the beginning of a reply continues what the prompt began.
                self._starts_inside = False
                self._splitting = item.block
        if self._splitter is None or item.block != self._splitting:
            return [*begun, ContentChunk(self._number(item.block), item.text, self._index)]
        segments = self._splitter.feed(item.text)
        return begun + self._events(segments, self._splitting) + self._notes(self._splitter)

    def other(self, item: Event) -> Sequence[Event]:
        """Pass on an event that is not content, its block renumbered."""
        if type(item) is ThinkStart:
            # The provider separates the thinking itself: its content does not begin inside.
            self._starts_inside = False
        block = getattr(item, "block", None)
        if block is None:
            return [*self.flush(), item] if type(item) is Finish else (item,)
        held = self.flush() if block != self._splitting else []
        number = self._number(block)
        return [*held, item if number == block else msgspec.structs.replace(item, block=number)]

    def flush(self) -> list[Event]:
        """Give back what the splitter held; the block it split is over."""
        splitter, block = self._splitter, self._splitting
        if splitter is None:
            return []
        self._splitter, self._splitting = None, -1
        events = self._events(splitter.finish(), block) + self._notes(splitter)
        if self._thinking >= 0:
            events.append(ThinkEnd(self._thinking, self._index))
            self._thinking = -1
        return events

    def _notes(self, splitter: ReplySplitter) -> list[Event]:
        """Tell the caller what the splitter noted since it was asked last."""
        noted: Sequence[str] = getattr(splitter, "notes", ())
        fresh, self._told = noted[self._told :], len(noted)
        return [self._degraded(note) for note in fresh]

    def _degraded(self, why: str) -> Event:
        return Degraded(Degradation("inline_reasoning", asked=self._format.name, why=why))

    def _events(self, segments: Sequence[Segment], block: int) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            if segment.reasoning:
                self._numbers.pop(block, None)
                events += self._think(segment)
            elif segment.text:
                events.append(ContentChunk(self._number(block), segment.text, self._index))
        return events

    def _think(self, segment: Segment) -> list[Event]:
        events: list[Event] = []
        if self._thinking < 0:
            self._thinking = self._fresh()
            events.append(ThinkStart(self._thinking, TAGS, self._index))
        if segment.text:
            events.append(ThinkChunk(self._thinking, segment.text, None, self._index))
        if segment.closes:
            events.append(ThinkEnd(self._thinking, self._index))
            self._thinking = -1
        return events

    def _number(self, block: int) -> int:
        number = self._numbers.get(block)
        if number is None:
            number = self._numbers[block] = self._fresh()
        return number

    def _fresh(self) -> int:
        self._next += 1
        return self._next - 1
