"""Encode a reply as an interaction, streamed step by step or whole.

The last event has the totals, fields of the reply, and bardo's own `bardo` object.
"""

from __future__ import annotations

from bardo.dialects.block_writer import Kind
from bardo.dialects.gemini.constants import RAW_ARGUMENTS
from bardo.dialects.gemini_interactions.block_writer import InteractionCollector, StepFrames, StepWriter
from bardo.dialects.gemini_interactions.constants import NAME, status_of
from bardo.dialects.gemini_interactions.errors import error_fields
from bardo.dialects.gemini_interactions.usage import encode_usage
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.timestamps import stamp_of
from bardo.dialects.whole_reply import write_response
from bardo.dialects.wire import encode_json
from bardo.streams.sse import KEEP_ALIVE
from bardo.values.errors import BardoError
from bardo.values.events import BlockFields, Finish, OpaqueState
from bardo.values.request import Request
from bardo.values.response import Response


class Encoder(SerialEncoder[StepWriter, StepFrames]):
    """Encode one streamed reply."""

    name = NAME
    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request, frames: StepFrames | None = None) -> None:
        super().__init__(request, frames or StepFrames())

    def open_block(self, number: int, kind: Kind) -> StepWriter:
        """Return the writer of a new step."""
        return StepWriter(number, kind, self.frames, hidden=self.hides_thinking and kind == "thinking")

    def write_start(self) -> None:
        """Write `interaction.created`, and that it is in progress."""
        opening = {"id": self.start.id, "status": "in_progress", "object": "interaction", "model": self.start.model}
        self.frames.write("interaction.created", interaction=opening)
        self.frames.write("interaction.status_update", interaction_id=self.start.id, status="in_progress")

    def write_end(self, *, calls: bool) -> None:
        """Write `interaction.completed`."""
        created = stamp_of(self.start.created)
        finish = self.finish_event or Finish("unknown")
        interaction = {
            "id": self.start.id,
            "status": status_of(finish, called=self.frames.last_type == "function_call"),
            "usage": encode_usage(self.usage),
            "created": created,
            "updated": created,
            "service_tier": "standard",
            "object": "interaction",
            "model": self.start.model,
            **self.fields.fields,
            "bardo": self.extension or None,
        }
        known = {name: value for name, value in interaction.items() if value is not None}
        self.frames.write("interaction.completed", interaction=known)
        self.frames.close()

    def write_error(self, error: BardoError) -> None:
        """Write the `error` event."""
        own = {"bardo": self.extension} if self.extension else {}
        self.frames.write("error", error=error_fields(error), **own)
        self.frames.close()

    def fail(self, error: BardoError) -> None:
        """End an open step too, unless it is a call: the error belongs to the interaction."""
        self.begin()
        self.drain(broken=True)
        super().fail(error)

    def write_thinking(self, block: StepWriter, text: str, part: int | None) -> None:
        """Write a piece of thinking: each part of a summary is an item."""
        if block.hidden or not text:
            return
        goes_on = block.begun and part == block.part
        block.part = part
        if goes_on:
            block.piece(text)
        else:
            block.item(text)

    def add_late_state(self, item: OpaqueState) -> None:
        """Write state of a step that has ended: its index says whose it is."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_state(item.opaque)

    def add_block_fields(self, item: BlockFields) -> None:
        """Write fields of a step, after its end too."""
        (self.open_or_closed(item.block) or self.block_of(item.block, "text")).add_fields(item.fields)


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply."""
    collector = InteractionCollector()
    write_response(Encoder(request, collector), response, wraps="function_call.arguments", key=RAW_ARGUMENTS)
    return encode_json({**collector.interaction, "steps": collector.steps})
