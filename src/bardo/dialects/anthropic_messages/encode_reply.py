"""Encode a streamed reply as an Anthropic message.

`message_start` waits for the first block, so that usage and fields known by then can stand in it. Stop reason, totals and bardo's own
`bardo` object close the reply in `message_delta`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.anthropic_messages.block_writer import MessageBlockWriter, MessageFrames
from bardo.dialects.anthropic_messages.encode_whole import hides_thinking, stop
from bardo.dialects.anthropic_messages.errors import error_object
from bardo.dialects.anthropic_messages.opaque import carrier, sign, thinking
from bardo.dialects.anthropic_messages.usage import encode_usage
from bardo.dialects.anthropic_messages.words import NAME
from bardo.dialects.block_writer import Kind
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque
from bardo.values.errors import BardoError
from bardo.values.request import Request

# Where these stand in `message_delta`, clients overwrite what `message_start` said of them.
_AT_STOP = ("stop_reason", "container", "stop_details")


class Encoder(SerialEncoder[MessageBlockWriter, MessageFrames]):
    """Encode one streamed reply."""

    name = NAME
    content_type = "text/event-stream"
    keep_alive = encode_sse(b'{"type": "ping"}', "ping")

    def __init__(self, request: Request) -> None:
        super().__init__(request, MessageFrames())
        self._hide = hides_thinking(request)

    def open_block(self, number: int, kind: Kind) -> MessageBlockWriter:
        """Return the writer of a new block."""
        return MessageBlockWriter(number, kind, self.frames, hidden=self._hide and kind == "thinking")

    def late_blocks(self, block: MessageBlockWriter | None, state: Opaque) -> Sequence[dict[str, Any]]:
        """Return thinking blocks, or a block that names its owner where the state belongs to text or a tool call."""
        if block is None or block.kind != "thinking":
            return [carrier([state], "" if block is None else block.owner)]
        signed = sign([state])
        return signed.behind or [thinking("", signed.signature)]

    def write_start(self) -> None:
        """Write `message_start`."""
        kept = {name: self.fields.pop(name) for name in _AT_STOP if name in self.fields}
        message = {
            "id": self.start.id,
            "type": "message",
            "role": "assistant",
            "model": self.start.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": encode_usage(self.usage),
            **self.fields,
        }
        self.fields = kept
        self.frames.write("message_start", message=message)

    def write_end(self, *, calls: bool) -> None:
        """Write `message_delta` and `message_stop`."""
        fields = dict(self.fields)
        delta = stop(self.finish_event, calls=calls)
        delta |= {name: fields.pop(name) for name in _AT_STOP if name in fields}
        if self.extension:
            fields["bardo"] = self.extension
        self.frames.write("message_delta", delta=delta, usage=encode_usage(self.usage), **fields)
        self.frames.write("message_stop")

    def write_error(self, error: BardoError) -> None:
        """Write the `error` event."""
        self.frames.write("error", error=error_object(error)["error"])
