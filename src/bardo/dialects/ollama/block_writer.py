"""Write the lines of an Ollama reply: a piece of thinking or of text each, or a whole call, since arguments are objects here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bardo.dialects.block_writer import BlockWriter, Kind
from bardo.dialects.ollama.calls import write_call
from bardo.dialects.ollama.constants import NAME
from bardo.dialects.ollama.sealed import BlockStates, seal_owned, stretch
from bardo.dialects.wire import encode_json
from bardo.streams.ndjson import encode_ndjson
from bardo.values.blocks import Carried, ToolCallBlock

_END = b'},"done":false}\n'
_GAP = "\n\n"


class LineFrames:
    """The lines in order, with the scores that wait for their piece, and how far the thinking of the message and its calls have come.

    `writers` are those of all blocks that may have opaque state, which stands in the last line.
    """

    streamed = True

    def __init__(self) -> None:
        self.logprobs: list[Any] = []
        self.thinking_length = 0
        self.call_count = 0
        self.writers: list[LineWriter] = []
        self.prefix = b""
        self._head: dict[str, Any] = {}
        self._out: list[bytes] = []

    def take(self) -> list[bytes]:
        """Return the lines written since the last time."""
        out, self._out = self._out, []
        return out

    def begin(self, **head: Any) -> None:
        """Take the fields with which every line begins."""
        self._head = head
        self.prefix = encode_json(head)[:-1] + b',"message":{"role":"assistant","content":'

    def piece(self, block: LineWriter, text: str) -> None:
        """Write a piece of text or of thinking, with the scores that wait for it."""
        line = block.frame(text)
        if self.logprobs:
            self.part({block.field: text})
        else:
            self._out.append(line)

    def part(self, message: dict[str, Any]) -> None:
        """Write a line with part of the message."""
        logprobs, self.logprobs = self.logprobs, []
        line = {**self._head, "message": {"role": "assistant", "content": "", **message}, "done": False}
        self.write({**line, "logprobs": logprobs} if logprobs else line)

    def end(self, line: dict[str, Any]) -> None:
        """Write the last line, with the scores that are left."""
        self.write({**line, "logprobs": self.logprobs} if self.logprobs else line)

    def write(self, line: dict[str, Any]) -> None:
        """Write one line."""
        self._out.append(encode_ndjson(encode_json(line)))

    def write_block(self, block: Any) -> None:
        """Leave out a block of no known kind: the dialect has none."""


class LineCollector(LineFrames):
    """Collect one whole reply. `reply` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self.reply: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": ""}
        self._logprobs: list[Any] = []

    def piece(self, block: LineWriter, text: str) -> None:
        """Take a piece of text or of thinking."""
        if block.kind == "thinking":
            self.thinking_length += len(text)
        self.part({block.field: text})

    def part(self, message: dict[str, Any]) -> None:
        """Take part of the message: texts and lists of calls go on from the part before."""
        for name, value in message.items():
            self._message[name] = self._message[name] + value if name in self._message else value
        self._take_scores()

    def text(self, text: str) -> None:
        """Take a text."""
        if text:
            self.part({"content": text})

    def thinking(self, parts: Iterable[str]) -> None:
        """Take thinking."""
        writer = LineWriter(-1, "thinking", self)
        writer.piece("\n\n".join(parts))
        writer.end()

    def call(self, call: ToolCallBlock) -> None:
        """Take a call."""
        self.part({"tool_calls": [write_call(call, self.call_count)]})
        self.call_count += 1

    def end(self, line: dict[str, Any]) -> None:
        """Take the totals, and what the message has beside its blocks."""
        self._take_scores()
        self.reply = line | {"message": line["message"] | self._message}
        if self._logprobs:
            self.reply["logprobs"] = self._logprobs

    def _take_scores(self) -> None:
        self._logprobs += self.logprobs
        self.logprobs = []


class LineWriter(BlockWriter):
    """Write one block. Opaque state of all blocks stands in the last line, so that it is kept here.

    One message has one text of thinking: a stretch of it begins behind a blank line, and `stretch` says where it stands.
    """

    __slots__ = ("_begin", "_end", "_fields", "_frames", "_id", "_name", "_pieces", "_place", "_prefix", "field")

    def __init__(self, number: int, kind: Kind, frames: LineFrames) -> None:
        super().__init__(number, kind)
        self.field = "thinking" if kind == "thinking" else "content"
        self._frames = frames
        self._prefix = frames.prefix + (b'"","thinking":' if kind == "thinking" else b"")
        self._begin = self._end = frames.thinking_length
        self._place = frames.call_count
        self._id = self._name = ""
        self._fields: dict[str, Any] = {}
        self._pieces: list[str] = []
        frames.writers.append(self)
        if kind == "tool_call":
            frames.call_count += 1

    def frame(self, text: str) -> bytes:
        """Return the line of one further piece."""
        if self.kind == "thinking":
            self._frames.thinking_length += len(text)
        return self._prefix + encode_json(text) + _END

    def piece(self, text: str) -> None:
        """Write a piece of text or of thinking; a piece of arguments is kept for the end of its call."""
        if self.kind == "tool_call":
            self._pieces.append(text)
            return
        if not self.begun and self.kind == "thinking":
            text = self._begin_stretch(text)
        if text:
            self._frames.piece(self, text)
            self.begun, self.repeats = True, self._frames.streamed

    def name_call(self, call_id: str, name: str) -> None:
        """Take the id and the name of a tool call."""
        self._id, self._name = call_id or self._id, name or self._name

    def add_fields(self, fields: dict[str, Any]) -> None:
        """Take the dialect's own fields of a call, until it is written."""
        self._fields |= fields

    def end(self) -> None:
        """Write a call; text and thinking have no end."""
        self._end = self._frames.thinking_length
        if self.kind == "tool_call":
            carried = Carried(NAME, self._fields) if self._fields else None
            text = "".join(self._pieces)
            call = ToolCallBlock(id=self._id, name=self._name, arguments=text, carried=carried)
            self._frames.part({"tool_calls": [write_call(call, self._place)]})

    def owned(self) -> BlockStates:
        """Return the opaque state of the block, with its name in the seal of the message."""
        states = self.states.states()
        if self.kind == "thinking":
            return stretch(self._begin, self._end, states)
        return BlockStates(f"call:{self._place}" if self.kind == "tool_call" else "text", states)

    def _begin_stretch(self, text: str) -> str:
        gap = _GAP if text and self._frames.thinking_length else ""
        self._begin = self._frames.thinking_length + len(gap)
        return gap + text


def signature_of(writers: Sequence[LineWriter]) -> str:
    """Return the seal of all opaque state of a message, "" where there is none."""
    owned = [writer.owned() for writer in writers]
    thinking = [one for one in owned if one.owner.startswith("thinking")]
    calls = [one for one in owned if one.owner.startswith("call") and one.states]
    texts = tuple(state for one in owned if one.owner == "text" for state in one.states)
    # All stretches are named where one has state, so that the text can be cut where they begin.
    stretches = thinking if any(one.states for one in thinking) else []
    return seal_owned([*stretches, *calls, *([BlockStates("text", texts)] if texts else ())])
