"""Reading and writing whole replies through the dialect, for its tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.frames import WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

DIALECT = dialect("gemini_interactions")
ROW = ProviderRow(id="gemini-interactions", name="Gemini", dialect="gemini_interactions")
REQUEST = Request(model="gemini-3-flash-preview", messages=(), dialect="openai_chat")
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
    return fold(events_of(body, stream=stream), provider="gemini-interactions")


def write_stream(events: Sequence[Event], request: Request = REQUEST) -> bytes:
    """Encode events as a stream."""
    encoder = DIALECT.open_encoder(request, ARRIVAL)
    pieces = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*pieces, *encoder.finish()])


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """Return the payloads of a stream, which ends as the server's does."""
    assert stream.endswith(b"event: done\ndata: [DONE]\n\n")
    return [json.loads(line[6:]) for line in stream.decode().split("\n") if line.startswith("data: {")]


def sse(*given: dict[str, Any]) -> bytes:
    """Write payloads as the server does."""
    return b"".join(f"event: {one['event_type']}\ndata: {json.dumps(one)}\n\n".encode() for one in given)


def start(index: int, **step: Any) -> dict[str, Any]:
    """Return the beginning of a step."""
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, **piece: Any) -> dict[str, Any]:
    """Return a piece of a step."""
    return {"event_type": "step.delta", "index": index, "delta": piece}


def stop(index: int) -> dict[str, Any]:
    """Return the end of a step."""
    return {"event_type": "step.stop", "index": index}


def completed(status: str = "completed", **fields: Any) -> dict[str, Any]:
    """Return the last event."""
    return {"event_type": "interaction.completed", "interaction": {"id": "v1_1", "status": status, **fields}}


def read_stream(*given: dict[str, Any]) -> Response:
    """Decode a stream given as its payloads."""
    return read(sse(*given), stream=True)


def read_steps(*steps: dict[str, Any], status: str = "completed", **fields: Any) -> Response:
    """Decode a whole interaction given as its steps."""
    body = {"id": "v1_1", "object": "interaction", "status": status, "steps": list(steps), **fields}
    return read(json.dumps(body).encode(), stream=False)
