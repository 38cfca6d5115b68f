"""Anthropic's replies to events.

A stream is `message_start`, blocks one after the other (`content_block_start`, `_delta`s, `_stop`), `message_delta` with the stop reason
and the totals, `message_stop`. A whole message is the same said at once, and takes the same functions. Plain deltas are decoded into
typed structs; everything rarer goes a generic way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.block_reader import Content
from bardo.dialects.anthropic_messages.constants import NAME, REASONS
from bardo.dialects.anthropic_messages.errors import refusal
from bardo.dialects.anthropic_messages.plain_deltas import PlainDeltas
from bardo.dialects.anthropic_messages.plain_message import read_plain
from bardo.dialects.anthropic_messages.usage import decode_usage, merge_usage
from bardo.dialects.base import PlainReplyDecoder, RepeatingDecoder
from bardo.dialects.call_ids import CallsInFrames
from bardo.dialects.lenient import decode_leniently, excerpt
from bardo.dialects.wire import INVALID_JSON, WrongShape, arguments_of, want, without
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import (
    Degraded,
    Event,
    Failed,
    Finish,
    ReplyFields,
    ReplyStart,
    UsageUpdate,
)


class _Input(msgspec.Struct, frozen=True):
    input: msgspec.Raw = msgspec.Raw(b"")


class _Inputs(msgspec.Struct):
    """The tool inputs of a frame, as the text they stood in."""

    content_block: _Input = _Input()
    content: list[_Input] = []


_decode_inputs = msgspec.json.Decoder(_Inputs).decode


class Decoder(PlainReplyDecoder, RepeatingDecoder):
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._content = Content()
        self._deltas = PlainDeltas(self._content.open_blocks)
        self._usage: dict[str, Any] = {}
        self._begun = False
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._over

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._over

    def feed(self, item: Frame) -> list[Event]:
        """Return what the frame says. Never raises: what cannot be read ends the reply with Failed."""
        data = item.data
        if data is None or self._over:
            return []
        events = self._deltas.read(item)
        return self._feed_rare(item, data) if events is None else events

    def read_plain(self, data: bytes) -> list[Event] | None:
        """Return the events of a whole message that holds only text and thinking."""
        events = read_plain(data, excludes_reasoning=self._row.quirks.output_excludes_reasoning)
        if events is not None:
            self._begun = self._over = True
        return events

    def read_plain_frame(self, item: Frame) -> list[Event] | None:
        """Return the events of a delta that only continues an open block."""
        return None if self._over else self._deltas.read(item)

    def repeated(self) -> FrameEnds | None:
        """Return the bytes around the text of the deltas that repeat."""
        return None if self._over else self._deltas.repeated.around

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of deltas that repeat."""
        return self._deltas.repeated.again(values, joined=joined)

    def finish(self) -> list[Event]:
        """Close the reply. One that has not come to its end is broken, even where only `message_stop` is missing."""
        if self._over:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._row.id))

    def _feed_rare(self, item: Frame, data: bytes) -> list[Event]:
        out: list[Event] = []
        self._deltas.repeated.forget()
        try:
            payload = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # Half a frame at the end of a stream says nothing, and proxies close with OpenAI's [DONE].
            if not item.complete or data.strip() in (b"", b"[DONE]"):
                return []
            return self._malformed(out, f"no JSON: {excerpt(data, 80)}")
        try:
            self._read(want(payload, dict, "the frame"), data, item.event, out)
        except WrongShape as problem:
            return self._malformed(out, str(problem))
        return out

    def _read(self, payload: dict[str, Any], data: bytes, event: str, out: list[Event]) -> None:
        kind = payload.get("type") or event
        if kind == "error" or (payload.get("error") and "content" not in payload):
            self._fail(out, refusal(payload, provider=self._row.id))
        elif kind == "message_start":
            self._start(want(payload.get("message"), dict, "message"), data, out)
        elif kind == "message" or "content" in payload or (not kind and payload.get("usage")):
            self._whole(payload, data, out)
        elif kind == "content_block_start":
            block = want(payload.get("content_block"), dict, "content_block")
            self._content.open(_index(payload), block, _arguments(data, [block])[0], out)
            self._content.add_fields(_index(payload), without(payload, "type", "index", "content_block"), out)
        elif kind == "content_block_delta":
            delta = want(payload.get("delta"), dict, "delta")
            self._content.add(_index(payload), want(delta.get("type"), str, "delta.type"), delta, out)
            self._content.add_fields(_index(payload), without(payload, "type", "index", "delta"), out)
        elif kind == "content_block_stop":
            self._content.add_fields(_index(payload), without(payload, "type", "index"), out)
            self._content.close(_index(payload), out)
        elif kind == "message_delta":
            self._end(payload, out)
        elif kind == "message_stop":
            self._content.close_all(out)
            self._over = True
        elif kind != "ping":
            out.append(ReplyFields(NAME, {want(kind, str, "type"): [without(payload, "type")]}))

    def _whole(self, message: dict[str, Any], data: bytes, out: list[Event]) -> None:
        content = want(message.get("content") or [], list, "content")
        head = {
            name: value for name, value in message.items() if name not in ("content", "stop_reason", "stop_sequence")
        }
        self._start({**head, "content": content}, data, out)
        self._content.close_all(out)
        self._end({"delta": {name: message.get(name) for name in ("stop_reason", "stop_sequence")}}, out)
        self._over = True

    def _start(self, message: dict[str, Any], data: bytes, out: list[Event]) -> None:
        self._begun = True
        out.append(ReplyStart(id=_string(message, "id"), model=_string(message, "model")))
        self._count(message.get("usage"), out)
        self._carry(without(message, *_KNOWN_FIELDS), out)
        blocks = want(message.get("content") or [], list, "content")
        for place, arguments in enumerate(_arguments(data, blocks)):
            self._content.open(place, want(blocks[place], dict, f"content[{place}]"), arguments, out)
            self._content.close(place, out)

    def _end(self, payload: dict[str, Any], out: list[Event]) -> None:
        delta = want(payload.get("delta") or {}, dict, "delta")
        word = _string(delta, "stop_reason")
        if word:
            self._content.close_all(out)
        self._count(payload.get("usage"), out)
        self._carry(
            {**without(payload, "type", "delta", "usage"), **without(delta, "stop_reason", "stop_sequence")}, out
        )
        if not word:
            return
        if word not in REASONS:
            self._carry({"stop_reason": word}, out)
        out.append(Finish(REASONS.get(word, "unknown"), word, _string(delta, "stop_sequence") or None))

    def _count(self, usage: Any, out: list[Event]) -> None:
        if usage is None:
            return
        self._usage = merge_usage(self._usage, want(usage, dict, "usage"))
        counted, doubts = decode_usage(self._usage, excludes_reasoning=self._row.quirks.output_excludes_reasoning)
        out.append(UsageUpdate(counted))
        out.extend(Degraded(doubt) for doubt in doubts)

    @staticmethod
    def _carry(fields: dict[str, Any], out: list[Event]) -> None:
        if fields:
            out.append(ReplyFields(NAME, fields))

    def _malformed(self, out: list[Event], problem: str) -> list[Event]:
        return self._fail(
            out, MalformedReply(f"the reply is not an Anthropic message: {problem}", provider=self._row.id)
        )

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._content.flush(out)
        self._over = True
        out.append(Failed(error))
        return out


_KNOWN_FIELDS = ("id", "type", "role", "model", "content", "usage", "stop_reason", "stop_sequence")


def _string(fields: dict[str, Any], name: str) -> str:
    return want(fields.get(name) or "", str, name)


def _index(payload: dict[str, Any]) -> int:
    return want(payload.get("index"), (int, bool), "index")


def _arguments(data: bytes, blocks: list[Any]) -> list[str]:
    """Return, for each block, its input as it was written, where the block is a tool call."""
    values = [
        block.get("input") if isinstance(block, dict) and block.get("type") == "tool_use" else None for block in blocks
    ]
    if not any(values):
        return ["" if value is None else arguments_of(value) for value in values]
    try:
        inputs = _decode_inputs(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        inputs = _Inputs()
    raws = inputs.content or [inputs.content_block]
    return [_written(value, raw.input) for value, raw in zip_longest(values, raws[: len(values)], fillvalue=_Input())]


def _written(value: Any, raw: msgspec.Raw) -> str:
    # Some servers write the input as a string of JSON, and bardo wraps what is none.
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, dict) or INVALID_JSON in value or not bytes(raw):
        return arguments_of(value)
    return bytes(raw).decode("utf-8", "replace")


def _calls(payload: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the calls of a frame, of a message or of the start of one, with their places and the name of their id."""
    message = payload.get("message", payload)
    blocks = message.get("content") if isinstance(message, dict) else None
    placed = (
        enumerate(blocks) if isinstance(blocks, list) else iter([(payload.get("index"), payload.get("content_block"))])
    )
    for place, block in placed:
        if isinstance(place, int) and isinstance(block, dict) and block.get("type") == "tool_use":
            yield place, block, "id"


CALLS = CallsInFrames(b'"tool_use"', _calls)
