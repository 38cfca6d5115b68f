"""What the tests of the Responses dialect share: bytes to events to bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects.openai_responses import DIALECT
from bardo.streams.frames import WholeBody
from bardo.streams.sse import SseDecoder, encode_sse
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

ROW = ProviderRow(id="openai", name="OpenAI", dialect="openai_responses")
TEXT_REPLAYING = msgspec.structs.replace(ROW, quirks=Quirks(replay="reasoning_content"))
REQUEST = Request(model="gpt-6", messages=(), dialect="openai_responses", body={"model": "gpt-6", "input": "hi"})
ARRIVAL = Arrival()


def events_of(pieces: Iterable[bytes], *, sse: bool, row: ProviderRow = ROW) -> list[Event]:
    """Decode a body that arrives in pieces."""
    framing = SseDecoder() if sse else WholeBody()
    decoder = DIALECT.open_decoder(row)
    events: list[Event] = []
    for piece in pieces:
        for frame in framing.feed(piece):
            events += decoder.feed(frame)
    for frame in framing.finish():
        events += decoder.feed(frame)
    return [*events, *decoder.finish()]


def read(*payloads: Any, row: ProviderRow = ROW) -> Response:
    """Decode payloads as a stream."""
    return fold(events_of([stream_of(*payloads)], sse=True, row=row))


def read_whole(payload: Any, row: ProviderRow = ROW) -> Response:
    """Decode one whole body."""
    return fold(events_of([msgspec.json.encode(payload)], sse=False, row=row))


def stream_of(*payloads: Any) -> bytes:
    """Write payloads as a provider does."""
    return b"".join(encode_sse(msgspec.json.encode(payload), payload.get("type", "")) for payload in payloads)


def write_stream(events: Iterable[Event], request: Request = REQUEST) -> bytes:
    """Encode events for a client that streams."""
    encoder = DIALECT.open_encoder(request, ARRIVAL)
    written = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*written, *encoder.finish()])


def payloads(stream: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects of a stream."""
    decoder = SseDecoder()
    frames = [*decoder.feed(stream), *decoder.finish()]
    return [msgspec.json.decode(frame.data) for frame in frames if frame.data not in (None, b"[DONE]")]
