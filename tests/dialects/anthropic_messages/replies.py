"""Reading and writing whole replies through the dialect, for its tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects import dialect
from bardo.streams.frames import WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

DIALECT = dialect("anthropic_messages")
ROW = ProviderRow(
    id="anthropic", name="Anthropic", dialect="anthropic_messages", quirks=Quirks(output_excludes_reasoning=False)
)
REQUEST = Request(model="claude-sonnet-5", messages=(), dialect="anthropic_messages")
ARRIVAL = Arrival()


def events_of(body: bytes, *, stream: bool, row: ProviderRow = ROW) -> list[Event]:
    """Decode a reply."""
    framing = SseDecoder() if stream else WholeBody()
    decoder = DIALECT.open_decoder(row)
    frames = [*framing.feed(body), *framing.finish()]
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()]


def read(body: bytes, *, stream: bool, row: ProviderRow = ROW) -> Response:
    """Decode a reply to its Response."""
    return fold(events_of(body, stream=stream, row=row), provider="anthropic")


def read_frames(*payloads: dict[str, Any]) -> list[Event]:
    """Decode a stream given as its payloads."""
    return events_of(sse(*payloads), stream=True)


def sse(*payloads: dict[str, Any]) -> bytes:
    """Write payloads as Anthropic's server does."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in payloads)


def write_stream(events: Sequence[Event], request: Request = REQUEST) -> bytes:
    """Encode events as a stream."""
    encoder = DIALECT.open_encoder(request, ARRIVAL)
    pieces = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*pieces, *encoder.finish()])


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """Return the payloads of a stream."""
    return [json.loads(line[6:]) for line in stream.decode().split("\n") if line.startswith("data: ")]


def kinds(stream: bytes) -> list[str]:
    """Return what happens in a stream: the types of its payloads, of its blocks and of its deltas."""
    return [
        one["content_block"]["type"] if "content_block" in one else one.get("delta", {}).get("type") or one["type"]
        for one in payloads(stream)
    ]


START = {
    "type": "message_start",
    "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []},
}
STOP = {"type": "message_stop"}


def began(index: int, **block: Any) -> dict[str, Any]:
    """Return a block's start."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, **delta: Any) -> dict[str, Any]:
    """Return a block's delta."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ended(index: int) -> dict[str, Any]:
    """Return a block's stop."""
    return {"type": "content_block_stop", "index": index}


def closing(word: str = "end_turn", **usage: Any) -> dict[str, Any]:
    """Return the message_delta that ends a reply."""
    return {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None}, "usage": usage}
