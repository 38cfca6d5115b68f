"""Encode a reply for Ollama's clients, streamed as lines or whole.

The last line has the totals, fields of the reply, the seal of opaque state, and bardo's own `bardo` object. Blocks of a kind are one field
of the message, in a whole reply and in what a client makes of a stream.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.block_writer import Kind
from bardo.dialects.ollama.block_writer import LineCollector, LineFrames, LineWriter, signature_of
from bardo.dialects.ollama.constants import NAME, encode_finish
from bardo.dialects.ollama.errors import error_object
from bardo.dialects.ollama.usage import encode_usage
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.timestamps import stamp_of
from bardo.dialects.whole_reply import write_response
from bardo.dialects.wire import encode_json
from bardo.streams.ndjson import encode_ndjson
from bardo.values.collected import CarriedFields
from bardo.values.errors import BardoError
from bardo.values.events import BlockFields, Finish, OpaqueState, ReplyFields, ReplyStart
from bardo.values.request import Request
from bardo.values.response import Response

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


def encode_partial(value: Any, start: ReplyStart) -> bytes:
    """Write a partial answer as a line with an empty piece of the message."""
    head = {"model": start.model, "created_at": stamp_of(start.created) or _EPOCH}
    message = {"role": "assistant", "content": ""}
    return encode_ndjson(encode_json({**head, "message": message, "done": False, "bardo": {"partial": value}}))
