"""Encode a reply for Cohere's clients, streamed as events or whole.

The last event has the finish reason, the totals, fields of the reply, and bardo's own `bardo` object.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.block_writer import Kind
from bardo.dialects.cohere.block_writer import CohereBlockWriter, CohereCollector, CohereFrames
from bardo.dialects.cohere.constants import NAME, PLAN, encode_finish
from bardo.dialects.cohere.errors import ending
from bardo.dialects.cohere.usage import encode_usage
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.whole_reply import write_response
from bardo.dialects.wire import encode_json
from bardo.streams.sse import KEEP_ALIVE
from bardo.values.collected import CarriedFields
from bardo.values.errors import BardoError
from bardo.values.events import BlockFields, Finish, OpaqueState, ReplyFields
from bardo.values.request import Request
from bardo.values.response import Response


class Encoder(SerialEncoder[CohereBlockWriter, CohereFrames]):
    """Encode one streamed reply."""

    name = NAME
    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request, frames: CohereFrames | None = None) -> None:
        super().__init__(request, frames or CohereFrames())
        self._message = CarriedFields(NAME)
        self._plans: set[int] = set()

    def open_block(self, number: int, kind: Kind) -> CohereBlockWriter:
        """Return the writer of a new block."""
        return CohereBlockWriter(number, kind, self.frames)

    def write_start(self) -> None:
        """Write `message-start`."""
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        self.frames.write("message-start", id=self.start.id, delta={"message": message})

    def write_end(self, *, calls: bool) -> None:
        """Write `message-end`."""
        word = self.fields.pop("finish_reason") or encode_finish(self.finish_event or Finish("unknown"), calls=calls)
        self._write_last({"finish_reason": word})

    def write_error(self, error: BardoError) -> None:
        """Write `message-end` with what went wrong."""
        self._write_last(ending(error))

    def fail(self, error: BardoError) -> None:
        """End an open text too: the last event of a failed reply is the same as that of a complete one."""
        self.begin()
        self.drain(broken=True)
        super().fail(error)

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

    def kind_of_thinking(self, number: int, style: str = "") -> Kind:
        """Return whether a block is thinking or a plan."""
        if style == PLAN:
            self._plans.add(number)
        return "plan" if number in self._plans else "thinking"

    def add_late_state(self, item: OpaqueState) -> None:
        """Write state of a block that has ended: the index of its frame says whose it is."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_state(item.opaque)

    def add_block_fields(self, item: BlockFields) -> None:
        """Write fields of a block, after its end too."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_fields(item.fields)

    def _write_last(self, delta: dict[str, Any]) -> None:
        logprobs = {"logprobs": self.frames.logprobs} if self.frames.logprobs else {}
        extension = {"bardo": self.extension} if self.extension else {}
        delta = {**delta, "usage": encode_usage(self.usage)}
        if self._message.fields:
            delta["message"] = self._message.fields
        self.frames.logprobs = []
        self.frames.write("message-end", delta=delta, **self.fields.fields, **logprobs, **extension)
        self.frames.close()


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply. The dialect has no place for the model's name."""
    collector = CohereCollector()
    write_response(Encoder(request, collector), response)
    return encode_json(collector.reply)
