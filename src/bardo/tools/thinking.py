"""Tool calls that a server left at the end of thinking which it separated: given as content, so that they are read where calls are read.

Kimi's models may end their thinking with the beginning of a section of calls, which some servers take for thinking (seen in vLLM, 2026-09).
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.tools.formats import ToolCallFormat
from bardo.tools.scanner import markers
from bardo.values.events import ContentChunk, Event, ThinkChunk, ThinkEnd, ThinkStart

_OFFSET = -2
"""Content that comes out of block n of thinking has block -2 - n, which no provider uses."""


class CallsInThinking:
    """Moves what follows a section's marker inside a block of thinking into content of its own: a stage over events."""

    def __init__(self, format: ToolCallFormat) -> None:  # noqa: A002
        self._markers = markers(format.begin)
        self._held: dict[tuple[int, int], str] = {}
        self._moved: set[tuple[int, int]] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Return the events, thinking that holds calls in two parts."""
        if isinstance(item, ThinkChunk):
            return self._chunk(item)
        if isinstance(item, ThinkEnd):
            return self._end(item)
        if isinstance(item, ThinkStart):
            self._held[item.choice, item.block] = ""
            return (item,)
        return [*self._given_back(getattr(item, "choice", None)), item] if self._held else (item,)

    def finish(self) -> Sequence[Event]:
        """Return what was held."""
        return self._given_back(None)

    def _chunk(self, item: ThinkChunk) -> Sequence[Event]:
        place = item.choice, item.block
        if place in self._moved:
            return (ContentChunk(_OFFSET - item.block, item.text, item.choice),)
        text = self._held.get(place, "") + item.text
        found = self._markers.growing.search(text)
        edge = found.start() if found else len(text)
        self._held[place] = text[edge:]
        events: list[Event] = [ThinkChunk(item.block, text[:edge], item.part, item.choice)] if edge else []
        if found and found.lastindex:
            self._moved.add(place)
            del self._held[place]
            events += [
                ThinkEnd(item.block, item.choice),
                ContentChunk(_OFFSET - item.block, text[edge:], item.choice),
            ]
        return events

    def _end(self, item: ThinkEnd) -> Sequence[Event]:
        place = item.choice, item.block
        if place in self._moved:
            return ()
        held = self._held.pop(place, "")
        return (ThinkChunk(item.block, held, None, item.choice), item) if held else (item,)

    def _given_back(self, choice: int | None) -> list[Event]:
        """Return the beginnings of markers that came to nothing, in one choice or in all."""
        events: list[Event] = []
        for place, held in self._held.items():
            if held and choice in (None, place[0]):
                events.append(ThinkChunk(place[1], held, None, place[0]))
                self._held[place] = ""
        return events
