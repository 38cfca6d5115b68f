"""Encode a reply for Converse's clients, streamed as events or whole.

`messageStop` and `metadata` close the reply; bardo's own `bardo` object stands in `metadata`.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.bedrock_converse.block_writer import ConverseBlockWriter, ConverseCollector, ConverseFrames
from bardo.dialects.bedrock_converse.constants import NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.bedrock_converse.errors import exception_of
from bardo.dialects.bedrock_converse.usage import encode_usage
from bardo.dialects.block_writer import Kind
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.whole_reply import write_response
from bardo.dialects.wire import encode_json
from bardo.streams.eventstream import CONTENT_TYPE
from bardo.values.errors import BardoError
from bardo.values.events import Finish, FinishReason, ReplyStart
from bardo.values.request import Request
from bardo.values.response import Response

_REASON_WORDS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "content_filtered",
    "error": "malformed_model_output",
}
_AT_STOP = ("stopReason", "additionalModelResponseFields")


class Encoder(SerialEncoder[ConverseBlockWriter, ConverseFrames]):
    """Encode one streamed reply. `metrics`: the latency is there, which Converse's clients take for granted."""

    name = NAME
    signed_blocks = SIGNED_BLOCKS
    content_type = CONTENT_TYPE
    # Readers of this framing take every message for an event.
    keep_alive = b""

    def __init__(self, request: Request, frames: ConverseFrames | None = None, *, metrics: bool = True) -> None:
        super().__init__(request, frames or ConverseFrames())
        self._metrics: dict[str, Any] = {"metrics": {"latencyMs": 0}} if metrics else {}

    def put_before_text(self, block: dict[str, Any]) -> bool:
        """Put a block before the last one of a whole reply; False where that is no text."""
        return self.frames.put_before_text(block)

    def open_block(self, number: int, kind: Kind) -> ConverseBlockWriter:
        """Return the writer of a new block."""
        return ConverseBlockWriter(number, kind, self.frames, hidden=self.hides_thinking and kind == "thinking")

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
        metadata = {"usage": encode_usage(self.usage), **self._metrics}
        metadata |= {name: value for name, value in fields.items() if name not in _AT_STOP}
        if self.extension:
            metadata["bardo"] = self.extension
        self.frames.write("metadata", metadata)

    def write_error(self, error: BardoError) -> None:
        """Write the exception of an error."""
        self.frames.exception(*exception_of(error, self.extension))


def encode_response(response: Response, request: Request, *, metrics: bool = True) -> bytes:
    """Encode one whole reply."""
    collector = ConverseCollector()
    write_response(Encoder(request, collector, metrics=metrics), response, wraps="toolUse.input")
    return encode_json(collector.reply)


def stop_word(finish: Finish | None, *, calls: bool) -> str:
    """Return the stop reason: the provider's own word where it is one of this dialect.

    Clients run their tools only on `tool_use`, and some providers call a tool and say that they just stopped.
    """
    finish = finish or Finish("unknown")
    if finish.raw in REASONS:
        return finish.raw
    word = _REASON_WORDS.get(finish.reason, "end_turn")
    if word != "end_turn":
        return word
    return "tool_use" if calls else "end_turn" if finish.stop_sequence is None else "stop_sequence"


def stop_fields(finish: Finish | None, carried: dict[str, Any]) -> dict[str, Any]:
    """Return the stop sequence where Claude's own fields have it, unless they are carried."""
    if finish is None or finish.stop_sequence is None or "additionalModelResponseFields" in carried:
        return {}
    return {"additionalModelResponseFields": {"stop_sequence": finish.stop_sequence}}
