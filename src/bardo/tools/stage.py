"""Tool calls that stand inside the content of a reply, separated from it: a stage over events.

It comes after the stage that separates thinking, so it sees no text of thoughts; a call that ended a thought is in the content that
follows. Put it in only where the request declares tools. Each call is a block of its own, as is text that follows one.

Calls that a server left at the end of thinking which it separated are given as content by a stage before it, so that they are read where
calls are read. Kimi's models may end their thinking with the beginning of a section of calls, which some servers take for thinking (seen
in vLLM, 2026-09).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bardo.tools.calls import MakeId
from bardo.tools.formats import ToolCallFormat
from bardo.tools.pieces import CallArguments, CallEnd, CallStart, Note, Piece, Text
from bardo.tools.reader import HOLD, ToolCallReader
from bardo.tools.scanner import markers
from bardo.values.degradation import Degradation
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Finish,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.request import Tool
from bardo.values.separation import SeparatedChoice, Separation

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
        match = self._markers.growing.search(text)
        edge = match.start() if match else len(text)
        self._held[place] = text[edge:]
        events: list[Event] = [ThinkChunk(item.block, text[:edge], item.part, item.choice)] if edge else []
        if match and match.lastindex:
            self._moved.add(place)
            del self._held[place]
            events += [ThinkEnd(item.block, item.choice), ContentChunk(_OFFSET - item.block, text[edge:], item.choice)]
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


class InlineToolCalls(Separation[Piece]):
    """Separates the tool calls in the text of one reply, each choice on its own.

    `tools` are those of the request, and `make_id` names calls that come without an id.
    """

    def __init__(self, format: ToolCallFormat, *, tools: Sequence[Tool] = (), make_id: MakeId) -> None:  # noqa: A002
        super().__init__(lambda index: _Choice(index, lambda: ToolCallReader(format, tools=tools, make_id=make_id)))


class _Choice(SeparatedChoice[Piece]):
    """The state of one choice: its calls, and the white space beside them."""

    def __init__(self, index: int, open_reader: Callable[[], ToolCallReader]) -> None:
        super().__init__(index)
        self._open_reader = open_reader
        self._calls = 0
        self._call = -1
        self._layout = _Layout()
        self._open_call = False
        self._broken = False

    def _open(self) -> ToolCallReader:
        self._layout = _Layout()
        return self._open_reader()

    def break_off(self) -> list[Event]:
        """Return the text that was held, and no more of a call: what a reader adds at its end would make one complete."""
        calls, self._broken = self._open_call, True
        held = self.flush()
        if not (calls or self._open_call):
            return held
        why = "the reply ended inside a call, which is not complete and must not be executed"
        return [*held, Degraded(Degradation("tool_calls", asked="a tool call", sent="an incomplete call", why=why))]

    def _close(self) -> list[Event]:
        text = self._layout.finish()
        return [ContentChunk(self._number(self._reading), text, self._index)] if text else []

    def _finish(self, item: Finish) -> Finish:
        # Servers that read no calls see text that ends by itself.
        return msgspec.structs.replace(item, reason="tool_calls") if self._calls and item.reason == "stop" else item

    def _events(self, pieces: Sequence[Piece]) -> list[Event]:
        return [event for piece in pieces for event in self._event(piece)]

    def _event(self, piece: Piece) -> Sequence[Event]:
        return _TAKE[type(piece)](self, piece)

    def _text(self, piece: Text) -> Sequence[Event]:
        text = self._layout.text(piece.text)
        return (ContentChunk(self._number(self._reading), text, self._index),) if text else ()

    def _start(self, piece: CallStart) -> Sequence[Event]:
        self._layout.call()
        self.numbers.pop(self._reading, None)
        self._call = self._fresh()
        self._calls += 1
        self._open_call = True
        return () if self._broken else (ToolCallStart(self._call, piece.id, piece.name, self._index),)

    def _arguments(self, piece: CallArguments) -> Sequence[Event]:
        return () if self._broken else (ToolCallChunk(self._call, piece.text, self._index),)

    def _end(self, piece: CallEnd) -> Sequence[Event]:
        if self._broken:
            return ()
        self._open_call = False
        return (ToolCallEnd(self._call, self._index),)

    def _note(self, piece: Note) -> Sequence[Event]:
        return (Degraded(degradation_of(piece)),)


_TAKE: dict[type, Callable[[_Choice, Any], Sequence[Event]]] = {
    Text: _Choice._text,
    CallStart: _Choice._start,
    CallArguments: _Choice._arguments,
    CallEnd: _Choice._end,
    Note: _Choice._note,
}


def degradation_of(note: Note) -> Degradation:
    """Tell the caller what a reader noted: `asked` is what the model wrote, `sent` what became of it."""
    sent = "text" if note.index is None else "a tool call"
    return Degradation("tool_calls", asked=note.raw or None, sent=sent, why=note.why)


class _Layout:
    """White space that stands alone beside a call: templates put it there, so it is no text of its own."""

    __slots__ = ("_alone", "_beside", "_held")

    def __init__(self) -> None:
        self._held = ""
        self._alone = True
        self._beside = False

    def text(self, text: str) -> str:
        """Return the part that is certainly text."""
        if not self._alone:
            return text
        held = self._held + text
        if held.isspace() and len(held) <= HOLD:
            self._held = held
            return ""
        self._held, self._alone = "", False
        return held

    def call(self) -> None:
        """A call begins: white space alone before it goes, and another stretch begins."""
        self._held, self._alone, self._beside = "", True, True

    def finish(self) -> str:
        """Return what was held, unless it stands beside a call."""
        held, self._held = self._held, ""
        return "" if self._beside else held
