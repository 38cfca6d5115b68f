"""Encode a reply for Ollama's clients, streamed as lines or whole.

The last line has the totals, fields of the reply, the seal of opaque state, and bardo's own `bardo` object. Blocks of a kind are one field
of the message, in a whole reply and in what a client makes of a stream. A line has a piece of thinking or of text, or a whole call, since
arguments are objects here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bardo.dialects.ollama.errors import error_object
from bardo.dialects.ollama.sealed import BlockStates, seal_owned, stretch
from bardo.dialects.ollama.usage import encode_usage
from bardo.dialects.ollama.wire import NAME, encode_finish, write_call
from bardo.dialects.shared.blocks import BlockWriter, Kind
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.serial_encoder import SerialEncoder, write_response
from bardo.dialects.shared.spellings import stamp_of
from bardo.streams.json_frames import encode_ndjson
from bardo.values.blocks import Carried, ToolCallBlock
from bardo.values.errors import BardoError
from bardo.values.events import BlockFields, Finish, OpaqueState, ReplyFields, ReplyStart
from bardo.values.fold import CarriedFields
from bardo.values.request import Request
from bardo.values.response import Response

_END = b'},"done":false}\n'
_GAP = "\n\n"


class LineFrames:
    """The lines in order, with the scores that wait for their piece, and how far the thinking of the message and its calls have come.

    `writers` are those of all blocks that may have opaque state, which stands in the last line.
    """

    streamed = True

    def __init__(self) -> None:
        self.logprobs: list[object] = []
        self.thinking_length = 0
        self.call_count = 0
        self.writers: list[LineWriter] = []
        self.prefix = b""
        self._head: JsonObject = {}
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

    def part(self, message: JsonObject) -> None:
        """Write a line with part of the message."""
        logprobs, self.logprobs = self.logprobs, []
        line = {**self._head, "message": {"role": "assistant", "content": "", **message}, "done": False}
        self.write({**line, "logprobs": logprobs} if logprobs else line)

    def end(self, line: JsonObject) -> None:
        """Write the last line, with the scores that are left."""
        self.write({**line, "logprobs": self.logprobs} if self.logprobs else line)

    def write(self, line: JsonObject) -> None:
        """Write one line."""
        self._out.append(encode_ndjson(encode_json(line)))

    def write_block(self, block: object) -> None:
        """Leave out a block of no known kind: the dialect has none."""


class LineCollector(LineFrames):
    """Collect one whole reply. `reply` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self.reply: JsonObject = {}
        self._message: JsonObject = {"role": "assistant", "content": ""}
        self._logprobs: list[object] = []

    def piece(self, block: LineWriter, text: str) -> None:
        """Take a piece of text or of thinking."""
        if block.kind == "thinking":
            self.thinking_length += len(text)
        self.part({block.field: text})

    def part(self, message: JsonObject) -> None:
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

    def end(self, line: JsonObject) -> None:
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
        self._fields: JsonObject = {}
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

    def add_fields(self, fields: JsonObject) -> None:
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
    thinking = [owner for owner in owned if owner.owner.startswith("thinking")]
    calls = [owner for owner in owned if owner.owner.startswith("call") and owner.states]
    texts = tuple(state for owner in owned if owner.owner == "text" for state in owner.states)
    # All stretches are named where one has state, so that the text can be cut where they begin.
    stretches = thinking if any(owner.states for owner in thinking) else []
    return seal_owned([*stretches, *calls, *([BlockStates("text", texts)] if texts else ())])


_EPOCH = "1970-01-01T00:00:00Z"
"""The time of a reply that has none: clients take for granted that there is one."""


class Encoder(SerialEncoder[LineWriter, LineFrames]):
    """Encode one streamed reply."""

    name = NAME
    content_type = "application/x-ndjson"
    # Ollama's own library reads an empty line as JSON, and fails.
    keep_alive = b" "

    def __init__(self, request: Request, frames: LineFrames | None = None) -> None:
        super().__init__(request, frames or LineFrames())
        self._message = CarriedFields(NAME)

    def open_block(self, number: int, kind: Kind) -> LineWriter:
        """Return the writer of a new block."""
        return LineWriter(number, kind, self.frames)

    def write_start(self) -> None:
        """Set the fields with which every line begins."""
        self.frames.begin(model=self.start.model, created_at=self._created_at())

    def write_end(self, *, calls: bool) -> None:
        """Write the last line."""
        line = {
            "model": self.start.model,
            # The time may have come behind the first line.
            "created_at": self._created_at(),
            "message": {"role": "assistant", "content": "", **self._message.fields},
            "done": True,
            "done_reason": encode_finish(self.finish_event or Finish("unknown")),
            **encode_usage(self.usage),
            **{name: value for name, value in self.fields.fields.items() if name != "created_at"},
        }
        if signature := signature_of(self.frames.writers):
            line["message"]["signature"] = signature
        self.frames.end({**line, "bardo": self.extension} if self.extension else line)

    def write_error(self, error: BardoError) -> None:
        """Write the line of an error."""
        own = {"bardo": self.extension} if self.extension else {}
        self.frames.write({**error_object(error), **own})

    def take_reply_fields(self, item: ReplyFields) -> None:
        """Keep fields of the message and of the reply; scores go with the next piece."""
        if item.choice is not None:
            self._message.merge(NAME, item.fields)
            return
        fields = dict(item.fields)
        logprobs = fields.pop("logprobs", None)
        if isinstance(logprobs, list) and logprobs:
            self.frames.logprobs += logprobs
            self.interrupt()
        self.fields.merge(NAME, fields)

    def add_late_state(self, item: OpaqueState) -> None:
        """Keep state of a block that has ended, or that never began: all state stands in the last line."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_state(item.opaque)

    def add_block_fields(self, item: BlockFields) -> None:
        """Keep fields of a call."""
        if block := self.open_or_closed(item.block):
            block.add_fields(item.fields)

    def _created_at(self) -> str:
        return self.fields.fields.get("created_at") or stamp_of(self.start.created) or _EPOCH


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply."""
    collector = LineCollector()
    write_response(Encoder(request, collector), response, wraps="function.arguments")
    return encode_json(collector.reply)


def encode_partial(value: object, start: ReplyStart) -> bytes:
    """Write a partial answer as a line with an empty piece of the message."""
    head = {"model": start.model, "created_at": stamp_of(start.created) or _EPOCH}
    message = {"role": "assistant", "content": ""}
    return encode_ndjson(encode_json({**head, "message": message, "done": False, "bardo": {"partial": value}}))
