"""InvokeModel's replies to events: the payloads unwrapped and handed to the dialect they are in.

A stream is `chunk` events with the payload as base64 under `bytes`; a whole reply is the payload itself. What Bedrock adds to a payload
under names of its own (`amazon-bedrock-…`) is carried as fields of the payload's dialect.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.bedrock_converse.errors import is_refusal, refusal, stream_refusal
from bardo.dialects.bedrock_converse.reply_in import Decoder as ConverseDecoder
from bardo.dialects.bedrock_invoke import wire
from bardo.dialects.bedrock_invoke.payloads import Payload, payload_in
from bardo.dialects.bedrock_invoke.signatures import event_of_bedrock
from bardo.dialects.bedrock_invoke.wire import NAME
from bardo.dialects.shared.dialect import ReplyDecoder
from bardo.dialects.shared.json_values import JsonObject, decode_leniently, encode_json, excerpt
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import Event, Failed, ReplyFields

_ADDED = "amazon-bedrock-"
_ADDED_BYTES = _ADDED.encode()


_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_chunk = msgspec.json.Decoder(wire.Chunk).decode


class Decoder:
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._payload: Payload | None = None
        self._inner: ReplyDecoder | None = None
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._over or (self._inner is not None and self._inner.over)

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._inner is not None and self._inner.complete

    def feed(self, item: Frame) -> list[Event]:
        """Return what the frame says. Never raises: what cannot be read ends the reply with Failed."""
        data = item.data
        if data is None or self._over or (not data and not item.complete):
            return []
        if item.event == "chunk":
            try:
                return self._feed_payload(Frame(_decode_chunk(data).payload))
            except (msgspec.MsgspecError, UnicodeError):
                return self._fail(self._malformed(f"no chunk: {excerpt(data, 80)}"))
        if not item.event:
            return self._feed_payload(item)
        refused = stream_refusal(item, self._row.id)
        if refused is not None:
            return self._fail(refused)
        return [ReplyFields(NAME, {item.event: [excerpt(data)]})]

    def finish(self) -> list[Event]:
        """Close the reply."""
        if self._over:
            return []
        if self._inner is None:
            return self._fail(BrokenStream("the reply stopped before it began", provider=self._row.id))
        self._over = True
        return self._ours(self._inner.finish())

    def _feed_payload(self, item: Frame) -> list[Event]:
        data = item.data or b""
        if self._inner is not None and _ADDED_BYTES not in data:
            return self._ours(self._inner.feed(item))
        try:
            value = decode_leniently(data)
        except (ValueError, RecursionError):
            return self._fail(self._malformed(f"no JSON: {excerpt(data, 80)}"))
        if not isinstance(value, dict):
            return self._fail(self._malformed(f"no object: {excerpt(data, 80)}"))
        inner = self._inner or self._open(value)
        if inner is None:
            if is_refusal(value):
                return self._fail(refusal(value, provider=self._row.id))
            return self._fail(self._malformed(f"a payload of no known language: {excerpt(data, 80)}"))
        return self._with_added(inner, value, item)

    def _open(self, value: JsonObject) -> ReplyDecoder | None:
        self._payload = payload_in(value)
        if self._payload is None:
            return None
        if self._payload == "bedrock_converse":
            self._inner = ConverseDecoder(self._row, join_text=True)
        else:
            self._inner = dialect(self._payload).open_decoder(self._row)
        return self._inner

    def _with_added(self, inner: ReplyDecoder, value: JsonObject, item: Frame) -> list[Event]:
        """Feed a payload that may hold what Bedrock added: Anthropic's dialect would not look for it there."""
        added = {name: value.pop(name) for name in list(value) if name.startswith(_ADDED)}
        if not added or self._payload is None:
            return self._ours(inner.feed(item))
        out: list[Event] = [ReplyFields(self._payload, added)]
        if value:
            # What is left stays as it was written, where a strict reader can read it.
            try:
                raw: JsonObject = {**_decode_raw(item.data or b"")}
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                raw = value
            left = {name: one for name, one in raw.items() if name not in added}
            out += self._ours(inner.feed(Frame(encode_json(left))))
        return out

    def _ours(self, events: Iterable[Event]) -> list[Event]:
        if self._payload == "anthropic_messages":
            return [*map(event_of_bedrock, events)]
        return list(events)

    def _malformed(self, problem: str) -> MalformedReply:
        return MalformedReply(f"the reply is not InvokeModel's: {problem}", provider=self._row.id)

    def _fail(self, error: ProviderError) -> list[Event]:
        """End the reply, after what the payload's decoder still held."""
        self._over = True
        held = self._ours(self._inner.finish()) if self._inner is not None else []
        return [*(event for event in held if type(event) is not Failed), Failed(error)]
