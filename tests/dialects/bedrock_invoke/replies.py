"""Reading and writing whole replies through the dialect, for its tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.eventstream import EventStreamDecoder, encode_event
from bardo.streams.frames import WholeBody
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

DIALECT = dialect("bedrock_invoke")
ROW = ProviderRow(id="bedrock-invoke", name="Bedrock", dialect="bedrock_invoke")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-micro-v1:0"
GPT = "openai.gpt-oss-20b-1:0"


def events_of(body: bytes, *, stream: bool) -> list[Event]:
    """Decode a reply."""
    framing = EventStreamDecoder() if stream else WholeBody()
    frames = [*framing.feed(body), *framing.finish()]
    decoder = DIALECT.open_decoder(ROW)
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()]


def read(body: bytes, *, stream: bool) -> Response:
    """Decode a reply to its Response."""
    return fold(events_of(body, stream=stream), provider="bedrock-invoke")


def write_stream(events: Sequence[Event], model: str) -> bytes:
    """Encode events as a stream."""
    encoder = DIALECT.open_encoder(Request(model=model, messages=()), Arrival(model=model))
    pieces = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*pieces, *encoder.finish()])


def chunks(*payloads: dict[str, Any]) -> bytes:
    """Write payloads as Bedrock does."""
    wrapped = [{"bytes": base64.b64encode(json.dumps(one).encode()).decode(), "p": "ab"} for one in payloads]
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return b"".join(encode_event(json.dumps(one).encode(), headers) for one in wrapped)


def payloads(body: bytes) -> list[dict[str, Any]]:
    """Return the payloads of a stream."""
    frames = EventStreamDecoder().feed(body)
    return [json.loads(base64.b64decode(json.loads(frame.data or b"{}")["bytes"])) for frame in frames]
