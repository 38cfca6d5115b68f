"""Events to InvokeModel's stream: what the payload's dialect writes, each payload wrapped as a chunk; and whole replies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bardo.dialects import dialect
from bardo.dialects.bedrock_converse.errors import exception_of
from bardo.dialects.bedrock_converse.reply_out import Encoder as ConverseEncoder
from bardo.dialects.bedrock_converse.reply_out import encode_response as encode_converse
from bardo.dialects.bedrock_invoke.payloads import payload_for
from bardo.dialects.bedrock_invoke.signatures import event_of_anthropic, response_of_anthropic
from bardo.dialects.shared.dialect import ReplyEncoder
from bardo.dialects.shared.json_values import JsonObject
from bardo.streams.eventstream import CONTENT_TYPE, EventStreamDecoder, encode_event
from bardo.streams.frames import Frame
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Stage
from bardo.values.errors import BardoError
from bardo.values.events import Event, Extension, Failed
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

_HEADERS = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


def encode_response(response: Response, request: Request) -> bytes:
    """Write one whole reply in the language of the request's model."""
    payload = payload_for(request)
    if payload == "bedrock_converse":
        return encode_converse(response, request, metrics=False)
    if payload == "anthropic_messages":
        response = response_of_anthropic(response)
    return dialect(payload).encode_response(response, request)


class Encoder:
    """One streamed reply."""

    content_type = CONTENT_TYPE
    # Readers of this framing take every message for an event.
    keep_alive = b""

    def __init__(self, request: Request, arrival: Arrival) -> None:
        self._payload = payload_for(request)
        self._inner: ReplyEncoder
        self._frames: Stage[bytes, Frame]
        if self._payload == "bedrock_converse":
            self._inner, self._frames = ConverseEncoder(request, metrics=False), EventStreamDecoder()
        else:
            self._inner, self._frames = dialect(self._payload).open_encoder(request, arrival), SseDecoder()
        self._failed = False
        self._extension: JsonObject = {}

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the chunks the event makes."""
        if self._failed:
            return ()
        if type(item) is Extension:
            self._extension |= item.fields
        if type(item) is Failed:
            return self._fail(item.error)
        event = event_of_anthropic(item) if self._payload == "anthropic_messages" else item
        return self._wrapped(self._inner.feed(event))

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        return () if self._failed else self._wrapped(self._inner.finish())

    def _fail(self, error: BardoError) -> Sequence[bytes]:
        """Return what was held, and say what happened as Bedrock does: its own event, instead of one of the payload's."""
        self._failed = True
        held = list(self._inner.feed(Failed(error)))
        name, payload = exception_of(error, self._extension)
        headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
        kept = [chunk for chunk in self._payloads(held) if not _tells_of_error(chunk)]
        return (*map(_chunk, kept), encode_event(payload, headers))

    def _wrapped(self, pieces: Iterable[bytes]) -> Sequence[bytes]:
        return tuple(_chunk(payload) for payload in self._payloads(pieces))

    def _payloads(self, pieces: Iterable[bytes]) -> list[bytes]:
        frames = [frame for piece in pieces for frame in self._frames.feed(piece)]
        named = self._payload == "bedrock_converse"
        return [
            b'{"%b":%b}' % (frame.event.encode(), frame.data) if named else frame.data
            for frame in frames
            if frame.data and frame.data != b"[DONE]"
        ]


def _chunk(payload: bytes) -> bytes:
    return encode_event(msgspec.json.encode({"bytes": payload}), _HEADERS)


def _tells_of_error(payload: bytes) -> bool:
    value = msgspec.json.decode(payload)
    return value.get("type") == "error" or "error" in value or any(name.endswith("Exception") for name in value)
