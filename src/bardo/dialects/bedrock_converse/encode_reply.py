"""Encode a streamed reply as Converse events.

`messageStop` and `metadata` close the reply; bardo's own `bardo` object stands in `metadata`.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.bedrock_converse.block_writer import ConverseBlockWriter, ConverseFrames
from bardo.dialects.bedrock_converse.encode_whole import hides_thinking, stop_fields, stop_word
from bardo.dialects.bedrock_converse.errors import exception_of
from bardo.dialects.bedrock_converse.usage import write_usage
from bardo.dialects.bedrock_converse.words import NAME, SIGNED_BLOCKS
from bardo.dialects.block_writer import Kind
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.streams.eventstream import CONTENT_TYPE
from bardo.values.errors import BardoError
from bardo.values.events import ReplyStart
from bardo.values.request import Request

_AT_STOP = ("stopReason", "additionalModelResponseFields")


class Encoder(SerialEncoder[ConverseBlockWriter, ConverseFrames]):
    """Encode one streamed reply. `metrics`: the latency is there, which Converse's clients take for granted."""

    name = NAME
    signed_blocks = SIGNED_BLOCKS
    content_type = CONTENT_TYPE
    # Readers of this framing take every message for an event.
    keep_alive = b""

    def __init__(self, request: Request, *, metrics: bool = True) -> None:
        super().__init__(request, ConverseFrames())
        self._hide = hides_thinking(request)
        self._metrics: dict[str, Any] = {"metrics": {"latencyMs": 0}} if metrics else {}

    def open_block(self, number: int, kind: Kind) -> ConverseBlockWriter:
        """Return the writer of a new block."""
        return ConverseBlockWriter(number, kind, self.frames, hidden=self._hide and kind == "thinking")

    def take_start(self, item: ReplyStart) -> None:
        """Begin the reply: its start names neither id nor model."""
        self.begin()

    def write_start(self) -> None:
        """Write `messageStart`."""
        self.frames.write("messageStart", {"role": "assistant"})

    def write_end(self, *, calls: bool) -> None:
        """Write `messageStop` and `metadata`."""
        fields = self.fields.fields
        stop = {"stopReason": stop_word(self.finish_event, calls=calls), **stop_fields(self.finish_event, fields)}
        self.frames.write("messageStop", stop | {name: fields[name] for name in _AT_STOP if name in fields})
        metadata = {"usage": write_usage(self.usage), **self._metrics}
        metadata |= {name: value for name, value in fields.items() if name not in _AT_STOP}
        if self.extension:
            metadata["bardo"] = self.extension
        self.frames.write("metadata", metadata)

    def write_error(self, error: BardoError) -> None:
        """Write the exception of an error."""
        self.frames.exception(*exception_of(error))
