"""Reading and writing whole replies through the dialect, for its tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.frames import WholeBody
from bardo.streams.json_frames import NdjsonDecoder
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

DIALECT = dialect("ollama")
ROW = ProviderRow(id="ollama", name="Ollama", dialect="ollama")
REQUEST = Request(model="qwen3:4b", messages=(), dialect="ollama")
ARRIVAL = Arrival()
TIME = "2026-08-07T06:08:23.577476Z"


def events_of(body: bytes, *, stream: bool) -> list[Event]:
    """Decode a reply."""
    framing = NdjsonDecoder() if stream else WholeBody()
    decoder = DIALECT.open_decoder(ROW)
    frames = [*framing.feed(body), *framing.finish()]
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()]


def read(body: bytes, *, stream: bool) -> Response:
    """Decode a reply to its Response."""
    return fold(events_of(body, stream=stream), provider="ollama")


def read_lines(*lines: dict[str, Any]) -> list[Event]:
    """Decode a stream given as its lines."""
    return events_of(ndjson(*lines), stream=True)


def ndjson(*lines: dict[str, Any]) -> bytes:
    """Write lines as the server does."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def write_stream(events: Sequence[Event], request: Request = REQUEST) -> bytes:
    """Encode events as a stream."""
    encoder = DIALECT.open_encoder(request, ARRIVAL)
    pieces = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*pieces, *encoder.finish()])


def lines_of(stream: bytes) -> list[dict[str, Any]]:
    """Return the lines of a stream."""
    assert stream.endswith(b"\n")
    return [json.loads(line) for line in stream.splitlines()]


def piece(content: str = "", **message: Any) -> dict[str, Any]:
    """Return a line with a piece of the message."""
    said = {"role": "assistant", "content": content, **message}
    return {"model": "qwen3:4b", "created_at": TIME, "message": said, "done": False}


def last(content: str = "", word: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return the last line."""
    return {**piece(content), "done": True, "done_reason": word, **fields}
