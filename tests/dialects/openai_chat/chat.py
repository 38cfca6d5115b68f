"""What the tests of this dialect share: bytes to events to bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects.openai_chat import DIALECT
from bardo.dialects.shared.dialect import ReplyDecoder
from bardo.streams.frames import Frame, WholeBody
from bardo.streams.sse import SseDecoder
from bardo.values.events import Event
from bardo.values.fold import fold
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest

ROW = ProviderRow(id="p", name="P", dialect="openai_chat")
REQUEST = Request(model="m", messages=(), dialect="openai_chat")
DONE = b"data: [DONE]\n\n"


def row_with(**quirks: Any) -> ProviderRow:
    """Return the provider's row with these quirks."""
    return msgspec.structs.replace(ROW, quirks=Quirks(**quirks))


def events_of(pieces: Sequence[bytes], *, sse: bool, row: ProviderRow = ROW) -> list[Event]:
    """Decode a body that arrives in pieces."""
    framing = SseDecoder() if sse else WholeBody()
    frames = [frame for piece in pieces for frame in framing.feed(piece)] + list(framing.finish())
    return events_of_frames(DIALECT.open_decoder(row), frames)


def events_of_frames(decoder: ReplyDecoder, frames: Sequence[Frame]) -> list[Event]:
    """Decode frames."""
    events = [event for frame in frames for event in decoder.feed(frame)]
    return [*events, *decoder.finish()]


def sse(*bodies: Any) -> bytes:
    """Write a stream; text stands for itself."""
    said = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return b"".join(b"data: " + text.encode() + b"\n\n" for text in said)


def chunk(delta: Any = None, finish: str | None = None, *, index: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a chunk with one choice; `choice_…` fields go on the choice."""
    inner = {name.removeprefix("choice_"): value for name, value in fields.items() if name.startswith("choice_")}
    outer = {name: value for name, value in fields.items() if not name.startswith("choice_")}
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish, **inner}
    return {"id": "r", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [choice], **outer}


def events(*chunks: Any, row: ProviderRow = ROW) -> list[Event]:
    """Decode chunks as a stream that ends properly."""
    return events_of([sse(*chunks, "[DONE]")], sse=True, row=row)


def streamed(*chunks: Any, row: ProviderRow = ROW) -> Response:
    """Read chunks as a stream that ends properly."""
    return fold(events(*chunks, row=row))


def message(finish: str | None = "stop", *, row: ProviderRow = ROW, usage: Any = None, **fields: Any) -> Response:
    """Read a whole reply with one message."""
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": finish}
    body = {"id": "r", "object": "chat.completion", "created": 7, "model": "m", "choices": [choice]}
    return whole({**body, "usage": usage} if usage else body, row=row)


def whole(body: Any, *, row: ProviderRow = ROW) -> Response:
    """Read a whole body."""
    return fold(events_of([json.dumps(body).encode()], sse=False, row=row))


def written(said: Sequence[Event], request: Request = REQUEST) -> bytes:
    """Write events as a stream."""
    encoder = DIALECT.open_encoder(request, Arrival())
    return b"".join([piece for event in said for piece in encoder.feed(event)] + list(encoder.finish()))


def written_chunks(said: Sequence[Event], request: Request = REQUEST) -> list[dict[str, Any]]:
    """Write events as a stream, and return its chunks as objects."""
    frames = written(said, request).split(b"\n\n")
    return [json.loads(frame[6:]) for frame in frames if frame.startswith(b"data: {")]


def written_body(response: Response) -> dict[str, Any]:
    """Write a whole reply, and return it as an object."""
    body: dict[str, Any] = json.loads(DIALECT.encode_response(response, REQUEST))
    return body


def asked(**fields: Any) -> Request:
    """Read a request."""
    body = {"model": "m", "messages": [], **fields}
    return DIALECT.decode_request(json.dumps(body).encode(), Arrival())


def sent(request: Request, row: ProviderRow = ROW) -> tuple[dict[str, Any], WireRequest]:
    """Write a request, and return its body as an object."""
    wire = DIALECT.encode_request(request, row)
    body: dict[str, Any] = json.loads(wire.body)
    return body, wire


def request_of(*messages: Message, **fields: Any) -> Request:
    """Return a request of another dialect."""
    return Request(**{"model": "m", "messages": messages, "dialect": "other", **fields})
