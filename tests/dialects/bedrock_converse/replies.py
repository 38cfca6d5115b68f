"""Reading and writing whole replies through the dialect, for its tests."""

from __future__ import annotations

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

DIALECT = dialect("bedrock_converse")
ROW = ProviderRow(id="bedrock", name="Bedrock", dialect="bedrock_converse")
REQUEST = Request(model="us.anthropic.claude-sonnet-4-5-20250929-v1:0", messages=(), dialect="bedrock_converse")
ARRIVAL = Arrival(model=REQUEST.model)


def events_of(body: bytes, *, stream: bool, row: ProviderRow = ROW) -> list[Event]:
    """Decode a reply."""
    framing = EventStreamDecoder() if stream else WholeBody()
    frames = [*framing.feed(body), *framing.finish()]
    decoder = DIALECT.open_decoder(row)
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()]


def read(body: bytes, *, stream: bool) -> Response:
    """Decode a reply to its Response."""
    return fold(events_of(body, stream=stream), provider="bedrock")


def read_whole(*content: dict[str, Any], **fields: Any) -> list[Event]:
    """Decode a whole reply given as its content blocks."""
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn", **META[1]}
    return events_of(json.dumps(body | fields).encode(), stream=False)


def read_frames(*payloads: tuple[str, Any]) -> list[Event]:
    """Decode a stream given as the names and payloads of its events."""
    return events_of(stream(*payloads), stream=True)


def stream(*payloads: tuple[str, Any]) -> bytes:
    """Write events as Bedrock does."""
    return b"".join(message(name, json.dumps(payload).encode()) for name, payload in payloads)


def message(name: str, payload: bytes, kind: str = "event") -> bytes:
    """Write one message."""
    headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
    return encode_event(payload, headers)


def write_stream(events: Sequence[Event], request: Request = REQUEST) -> bytes:
    """Encode events as a stream."""
    encoder = DIALECT.open_encoder(request, ARRIVAL)
    pieces = [piece for event in events for piece in encoder.feed(event)]
    return b"".join([*pieces, *encoder.finish()])


def payloads(body: bytes) -> list[tuple[str, Any]]:
    """Return the names and payloads of a stream."""
    frames = EventStreamDecoder().feed(body)
    return [(frame.event, json.loads(frame.data or b"null")) for frame in frames]


def kinds(body: bytes) -> list[str]:
    """Return what happens in a stream: what each piece and each start is of, and the other events."""
    names = []
    for name, payload in payloads(body):
        inner = payload.get("delta") or payload.get("start")
        if inner is None:
            names.append(name)
        else:
            key = next(iter(inner))
            names.append(next(iter(inner[key])) if key == "reasoningContent" else key)
    return names


START = ("messageStart", {"role": "assistant"})
META = ("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}, "metrics": {"latencyMs": 5}})


def piece(index: int, **delta: Any) -> tuple[str, Any]:
    """Return a piece of a block."""
    return ("contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "abc"})


def thought(index: int, **inner: Any) -> tuple[str, Any]:
    """Return a piece of reasoning."""
    return piece(index, reasoningContent=inner)


def began(index: int, **start: Any) -> tuple[str, Any]:
    """Return the start of a block."""
    return ("contentBlockStart", {"contentBlockIndex": index, "start": start})


def ended(index: int) -> tuple[str, Any]:
    """Return the stop of a block."""
    return ("contentBlockStop", {"contentBlockIndex": index})


def closing(word: str = "end_turn", **fields: Any) -> tuple[str, Any]:
    """Return the event that ends the message."""
    return ("messageStop", {"stopReason": word, **fields})
