"""Tool calls that stand inside the content of a reply, separated from it: a stage over events.

It comes after the stage that separates thinking, so it sees no text of thoughts; a call that ended a thought is in the content
that follows. Put it in only where the request declares tools. Each text block has a reader of its own. Blocks are numbered anew,
because one block of content may become several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bardo.tools.calls import MakeId
from bardo.tools.formats import ToolCallFormat
from bardo.tools.pieces import CallArguments, CallEnd, CallStart, Note, Piece, Text
from bardo.tools.reader import HOLD, ToolCallReader
from bardo.values.degradation import Degradation
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
)
from bardo.values.request import Tool

OpenReader = Callable[[], ToolCallReader]


class InlineToolCalls:
    """Separates the tool calls in the text of one reply, each choice on its own.

    `tools` are those of the request, and `make_id` names calls that come without an id.
    """

    def __init__(self, format: ToolCallFormat, *, tools: Sequence[Tool] = (), make_id: MakeId) -> None:  # noqa: A002
        self._open: OpenReader = lambda: ToolCallReader(format, tools=tools, make_id=make_id)
        self._choices: dict[int, _Choice] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on every event, with the calls in content as calls."""
        if type(item) is ContentChunk:
            return self._choice(item.choice).content(item)
        if type(item) is Failed:
            return [*self.finish(), item]
        choice = getattr(item, "choice", None)
        if choice is None:
            return (item,)
        return self._choice(choice).other(item)

    def finish(self) -> Sequence[Event]:
        """Give back what the readers held."""
        return [event for choice in self._choices.values() for event in choice.flush()]

    def _choice(self, index: int) -> _Choice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(index, self._open)
        return choice


class _Choice:
    """The state of one choice: which block is being read, and what each is called outside."""

    def __init__(self, index: int, open_reader: OpenReader) -> None:
        self._index = index
        self._open_reader = open_reader
        self._numbers: dict[int, int] = {}
        self._read: set[int] = set()
        self._next = 0
        self._calls = 0
        self._call = -1
        self._reader: ToolCallReader | None = None
        self._reading = -1
        self._layout = _Layout()

    def content(self, item: ContentChunk) -> Sequence[Event]:
        """Read a piece of content."""
        begun: list[Event] = []
        if item.block != self._reading:
            begun = self.flush()
            if item.block not in self._read:
                self._read.add(item.block)
                self._reader, self._reading = self._open_reader(), item.block
                self._layout = _Layout()
        if self._reader is None or item.block != self._reading:
            return [*begun, ContentChunk(self._number(item.block), item.text, self._index)]
        return begun + self._events(self._reader.feed(item.text))

    def other(self, item: Event) -> Sequence[Event]:
        """Pass on an event that is not content: its block renumbered, its finish reason mended."""
        if type(item) is Finish:
            held = self.flush()
            return [*held, self._finish(item)]
        block = getattr(item, "block", None)
        if block is None:
            return (item,)
        held = self.flush() if block != self._reading else []
        number = self._number(block)
        return [*held, item if number == block else msgspec.structs.replace(item, block=number)]

    def flush(self) -> list[Event]:
        """Give back what the reader held; the block it read is over."""
        reader = self._reader
        if reader is None:
            return []
        self._reader = None
        events = self._events(reader.finish())
        if text := self._layout.finish(calls=reader.calls):
            events.append(ContentChunk(self._number(self._reading), text, self._index))
        self._reading = -1
        return events

    def _finish(self, item: Finish) -> Finish:
        # Servers that read no calls see text that ends by itself.
        return msgspec.structs.replace(item, reason="tool_calls") if self._calls and item.reason == "stop" else item

    def _events(self, pieces: Sequence[Piece]) -> list[Event]:
        return [event for piece in pieces for event in self._event(piece)]

    def _event(self, piece: Piece) -> Sequence[Event]:
        match piece:
            case Text(text=text):
                kept = self._layout.text(text)
                return (ContentChunk(self._number(self._reading), kept, self._index),) if kept else ()
            case CallStart(id=call_id, name=name):
                self._layout.call()
                self._numbers.pop(self._reading, None)
                self._call = self._fresh()
                self._calls += 1
                return (ToolCallStart(self._call, call_id, name, self._index),)
            case CallArguments(text=text):
                return (ToolCallChunk(self._call, text, self._index),)
            case CallEnd():
                return (ToolCallEnd(self._call, self._index),)
            case Note():
                return (Degraded(degradation_of(piece)),)

    def _number(self, block: int) -> int:
        number = self._numbers.get(block)
        if number is None:
            number = self._numbers[block] = self._fresh()
        return number

    def _fresh(self) -> int:
        self._next += 1
        return self._next - 1


def degradation_of(note: Note) -> Degradation:
    """Tell the caller what a reader noted: `asked` is what the model wrote, `sent` what became of it."""
    sent = "text" if note.index is None else "a tool call"
    return Degradation("tool_calls", asked=note.raw or None, sent=sent, why=note.why)


class _Layout:
    """White space that stands alone beside a call: templates put it there, so it is no text of its own."""

    __slots__ = ("_alone", "_held")

    def __init__(self) -> None:
        self._held = ""
        self._alone = True

    def text(self, text: str) -> str:
        """Return what is text for sure."""
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
        self._held, self._alone = "", True

    def finish(self, *, calls: int) -> str:
        """Return what was held, unless it stands beside a call."""
        held, self._held = self._held, ""
        return "" if calls else held
