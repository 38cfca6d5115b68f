"""Encode a reply as an Anthropic message, streamed or whole.

`message_start` waits for the first block, so that usage and fields known by then can stand in it. Stop reason, totals and bardo's own
`bardo` object close the reply in `message_delta`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.anthropic_messages.block_writer import MessageBlockWriter, MessageCollector, MessageFrames
from bardo.dialects.anthropic_messages.constants import NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.anthropic_messages.errors import error_object
from bardo.dialects.anthropic_messages.usage import encode_usage
from bardo.dialects.block_writer import Kind
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.whole_reply import write_response
from bardo.dialects.wire import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.errors import BardoError
from bardo.values.events import Event, Finish, FinishReason
from bardo.values.request import Request
from bardo.values.response import Response

_STOP_REASONS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "pause": "pause_turn",
}
# Where these stand in `message_delta`, clients overwrite what `message_start` said of them.
_AT_STOP = ("stop_reason", "container", "stop_details")


class Encoder(SerialEncoder[MessageBlockWriter, MessageFrames]):
    """Encode one streamed reply."""

    name = NAME
    signed_blocks = SIGNED_BLOCKS
    content_type = "text/event-stream"
    keep_alive = encode_sse(b'{"type": "ping"}', "ping")

    def __init__(self, request: Request, frames: MessageFrames | None = None) -> None:
        super().__init__(request, frames or MessageFrames())

    def put_before_text(self, block: dict[str, Any]) -> bool:
        """Put a block before the last one of a whole reply; False where that is no text."""
        return self.frames.put_before_text(block)

    def open_block(self, number: int, kind: Kind) -> MessageBlockWriter:
        """Return the writer of a new block."""
        return MessageBlockWriter(number, kind, self.frames, hidden=self.hides_thinking and kind == "thinking")

    def take_value(self, item: Event) -> None:
        """Keep what an event says of the reply as a whole. A count of the prompt that was told stays where none follows."""
        told = self.usage.input_tokens
        super().take_value(item)
        if self.usage.input_tokens is None and told is not None:
            self.usage = msgspec.structs.replace(self.usage, input_tokens=told)

    def write_start(self) -> None:
        """Write `message_start`."""
        message = {
            "id": self.start.id,
            "type": "message",
            "role": "assistant",
            "model": self.start.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            # The end of a whole message takes this place.
            "usage": encode_usage(self.usage) if self.frames.streamed else None,
            **self._take_fields_for_start(),
        }
        self.frames.write("message_start", message=message)

    def write_end(self, *, calls: bool) -> None:
        """Write `message_delta` and `message_stop`."""
        fields = dict(self.fields.fields)
        delta = stop(self.finish_event, calls=calls)
        if fields:
            delta |= {name: fields.pop(name) for name in _AT_STOP if name in fields}
        if self.extension:
            fields["bardo"] = self.extension
        self.frames.write("message_delta", delta=delta, usage=encode_usage(self.usage), **fields)
        self.frames.write("message_stop")

    def _take_fields_for_start(self) -> dict[str, Any]:
        if not self.fields.fields:
            return {}
        names = [name for name in self.fields.fields if name not in _AT_STOP]
        return {name: self.fields.pop(name) for name in names}

    def write_error(self, error: BardoError) -> None:
        """Write the `error` event."""
        own = {"bardo": self.extension} if self.extension else {}
        self.frames.write("error", error=error_object(error)["error"], **own)


def encode_response(response: Response, request: Request) -> bytes:
    """Encode one whole reply. The dialect has one choice, so alternatives are left out."""
    collector = MessageCollector()
    write_response(Encoder(request, collector), response, wraps="tool_use.input")
    return encode_json(collector.message)


def stop(finish: Finish | None, *, calls: bool) -> dict[str, Any]:
    """Return the stop fields: the provider's own word where it is one of this dialect.

    Clients run their tools only on `tool_use`, and some providers call a tool and say that they just stopped.
    """
    finish = finish or Finish("unknown")
    word: str = finish.raw
    if word not in REASONS:
        word = _STOP_REASONS.get(finish.reason, "end_turn")
        if word == "end_turn":
            word = "tool_use" if calls else "end_turn" if finish.stop_sequence is None else "stop_sequence"
    return {"stop_reason": word, "stop_sequence": finish.stop_sequence}
