"""What the tests of the Gemini dialect share: bytes to events to bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects.gemini import DIALECT
from bardo.streams.frames import WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

ROW = ProviderRow(id="google", name="Google", dialect="gemini", auth="x-goog-api-key")
REQUEST = Request(model="gemini-2.5-flash", messages=(), dialect="gemini")


def row_with(*, excludes_reasoning: bool | None) -> ProviderRow:
    """Return the provider's row with its fact about thoughts."""
    return msgspec.structs.replace(ROW, quirks=Quirks(output_excludes_reasoning=excludes_reasoning))


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
    """Decode payloads as a stream of server-sent events."""
    return fold(events_of([sse(*payloads)], sse=True, row=row))


def read_whole(payload: Any, row: ProviderRow = ROW) -> Response:
    """Decode one whole body."""
    return fold(events_of([msgspec.json.encode(payload)], sse=False, row=row))


def sse(*payloads: Any) -> bytes:
    """Write payloads as Google does."""
    return b"".join(b"data: " + msgspec.json.encode(payload) + b"\r\n\r\n" for payload in payloads)


def parts(*given: dict[str, Any], finish: str = "", **candidate: Any) -> dict[str, Any]:
    """Return a chunk with one candidate."""
    body: dict[str, Any] = {"content": {"parts": list(given), "role": "model"}, "index": 0, **candidate}
    if finish:
        body["finishReason"] = finish
    return {"candidates": [body], "modelVersion": "gemini-test", "responseId": "reply-1"}


def streamed(events: Iterable[Event], framing: str = "sse") -> bytes:
    """Encode events as one streamed reply."""
    encoder = DIALECT.open_encoder(REQUEST, Arrival(framing=framing))
    written = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*written, *encoder.finish()])


def chunks_of(stream: bytes) -> list[Any]:
    """Return the payloads of a stream of server-sent events."""
    return [msgspec.json.decode(one.removeprefix(b"data: ")) for one in stream.split(b"\r\n\r\n") if one]


def written_parts(stream: bytes) -> list[dict[str, Any]]:
    """Return the parts of the first candidate of a stream, without the empty one that ends it."""
    found = [
        part
        for chunk in chunks_of(stream)
        for candidate in chunk.get("candidates", ())
        for part in candidate["content"].get("parts", ())
    ]
    return [part for part in found if part != {"text": ""}]
