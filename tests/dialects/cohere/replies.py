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

DIALECT = dialect("cohere")
ROW = ProviderRow(id="cohere", name="Cohere", dialect="cohere", quirks=Quirks(output_excludes_reasoning=False))
REQUEST = Request(model="command-a-reasoning-08-2025", messages=(), dialect="cohere")
ARRIVAL = Arrival()


def events_of(body: bytes, *, stream: bool) -> list[Event]:
    """Decode a reply."""
    framing = SseDecoder() if stream else WholeBody()
    decoder = DIALECT.open_decoder(ROW)
    frames = [*framing.feed(body), *framing.finish()]
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()]


def read(body: bytes, *, stream: bool) -> Response:
    """Decode a reply to its Response."""
    return fold(events_of(body, stream=stream), provider="cohere")


def read_frames(*payloads: dict[str, Any]) -> list[Event]:
    """Decode a stream given as its payloads."""
    return events_of(sse(*payloads), stream=True)


def sse(*payloads: dict[str, Any]) -> bytes:
    """Write payloads as the server does."""
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in payloads)


def write_stream(events: Sequence[Event], request: Request = REQUEST) -> bytes:
    """Encode events as a stream."""
    encoder = DIALECT.open_encoder(request, ARRIVAL)
    pieces = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*pieces, *encoder.finish()])


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """Return the payloads of a stream, which ends as the server's does."""
    assert stream.endswith(b"data: [DONE]\n\n")
    lines = [line[6:] for line in stream.decode().split("\n") if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def kinds(stream: bytes) -> list[str]:
    """Return the types of the payloads."""
    return [one["type"] for one in payloads(stream)]


START: dict[str, Any] = {
    "id": "r1",
    "type": "message-start",
    "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}},
}


def frame(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    """Return a frame whose delta is of the message."""
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, **({"delta": {"message": message}} if message else {})}


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    """Return a whole block of text."""
    return _content(index, "text", pieces)


def thinking(index: int, *pieces: str) -> list[dict[str, Any]]:
    """Return a whole block of thinking."""
    return _content(index, "thinking", pieces)


def _content(index: int, kind: str, pieces: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        frame("content-start", index, content={"type": kind, kind: ""}),
        *(frame("content-delta", index, content={kind: piece}) for piece in pieces),
        frame("content-end", index),
    ]


def closing(word: str = "COMPLETE", usage: dict[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    """Return the last frame."""
    return {"type": "message-end", "delta": {"finish_reason": word, "usage": usage or {}, **delta}}
