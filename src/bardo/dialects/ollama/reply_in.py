"""Ollama's replies to events.

A stream is JSON lines, each with a piece of the message, and `done` in the last, which has the totals. A whole reply is one such line, and
takes the same functions. Lines with nothing but a piece of text or thinking are decoded into typed structs; everything else goes a generic
way.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.ollama.calls import read_call, written_arguments
from bardo.dialects.ollama.errors import refusal
from bardo.dialects.ollama.usage import FIELDS, decode_usage
from bardo.dialects.ollama.wire import FORMAT, NAME, REASONS
from bardo.dialects.shared.bounded_json import SLICED_BYTES
from bardo.dialects.shared.json_values import as_text, decode_leniently, excerpt, kind_of, without
from bardo.dialects.shared.spellings import seconds_of
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)

Kind = Literal["", "text", "thinking"]

_READ = ("model", "created_at", "message", "done", "done_reason", "error", *FIELDS)
# New in each line, however alike two of them are.
_PIECES = ("logprobs",)


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str = "assistant"
    content: str = ""
    thinking: str = ""


# Fields nobody knows make it fail, so that the generic way can carry them.
class _Line(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    message: _Message
    done: bool
    model: str = ""
    created_at: str = ""


_decode_line = msgspec.json.Decoder(_Line).decode


class Decoder:
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._provider = row.id
        self._stamp = ""
        self._emitted: dict[str, Any] = {}
        self._kind: Kind = ""
        self._number = -1
        self._calls = 0
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
        """Return what the line says. Never raises: what cannot be read ends the reply with Failed."""
        data = item.data
        if data is None or self._over:
            return []
        if len(data) >= SLICED_BYTES:
            return self._feed_rare(item, data)
        try:
            line = _decode_line(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._feed_rare(item, data)
        message, kind = line.message, self._kind
        if line.done or not kind:
            return self._feed_rare(item, data)
        if kind == "text" and message.content and not message.thinking:
            return [ContentChunk(self._number, message.content)]
        if kind == "thinking" and message.thinking and not message.content:
            return [ThinkChunk(self._number, message.thinking)]
        return self._feed_rare(item, data)

    def finish(self) -> list[Event]:
        """Close the reply. One without a line that says `done` is broken."""
        if self._over:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._provider))

    def _feed_rare(self, item: Frame, data: bytes) -> list[Event]:
        out: list[Event] = []
        try:
            line = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # Half a line at the end of a stream says nothing.
            if item.complete or not data.startswith(b"{"):
                self._malformed(out, f"no JSON: {excerpt(data, 80)}")
            return out
        if not isinstance(line, dict):
            return self._malformed(out, f"a line is {kind_of(line)}")
        if line.get("error"):
            return self._fail(out, refusal(line, provider=self._provider))
        message = line.get("message")
        if message is None and (line.get("done") is True or line.get("eval_count")) and "response" not in line:
            message = {}  # The model said nothing.
        if not isinstance(message, dict):
            return self._malformed(out, f"message is {kind_of(message)}")
        self._read(line, message, data, out)
        return out

    def _read(self, line: dict[str, Any], message: dict[str, Any], data: bytes, out: list[Event]) -> None:
        self._begin(line, out)
        self._carry(line, message, out)
        # One line says these in the order in which a model does.
        if thinking := as_text(message.get("thinking")):
            self._enter("thinking", out)
            out.append(ThinkChunk(self._number, thinking))
        if content := as_text(message.get("content")):
            self._enter("text", out)
            out.append(ContentChunk(self._number, content))
        calls = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            self._call(calls, data, out)
        if line.get("done") is True:
            self._end(line, out)
        elif line.get("eval_count"):
            # A body that was counted, and does not say that it is done.
            usage, doubts = decode_usage(line)
            out.extend([] if usage is None else [UsageUpdate(usage)])
            out.extend(Degraded(doubt) for doubt in doubts)

    def _begin(self, line: dict[str, Any], out: list[Event]) -> None:
        if self._begun:
            return
        self._begun = True
        self._stamp = as_text(line.get("created_at"))
        out.append(ReplyStart(model=as_text(line.get("model")), created=seconds_of(self._stamp)))
        if self._stamp:
            # Each line has a time of its own; the first is the reply's.
            out.append(ReplyFields(NAME, {"created_at": self._stamp}))

    def _carry(self, line: dict[str, Any], message: dict[str, Any], out: list[Event]) -> None:
        if fields := self._changed_fields(without(line, *_READ), ""):
            out.append(ReplyFields(NAME, fields))
        if fields := self._changed_fields(without(message, "role", "content", "thinking", "tool_calls"), "message."):
            out.append(ReplyFields(NAME, fields, choice=0))

    def _changed_fields(self, fields: dict[str, Any], prefix: str) -> dict[str, Any]:
        new = {
            name: value
            for name, value in fields.items()
            if name in _PIECES or self._emitted.get(prefix + name) != value
        }
        self._emitted |= {prefix + name: value for name, value in new.items()}
        return new

    def _enter(self, kind: Kind, out: list[Event]) -> None:
        if self._kind == kind:
            return
        self._leave(out)
        self._kind = kind
        self._number += 1
        if kind == "thinking":
            out.append(ThinkStart(self._number, FORMAT))

    def _leave(self, out: list[Event]) -> None:
        was, self._kind = self._kind, ""
        if was == "thinking":
            out.append(ThinkEnd(self._number))

    def _call(self, calls: list[Any], data: bytes, out: list[Event]) -> None:
        self._leave(out)
        for call, raw in zip(calls, written_arguments(data, calls), strict=True):
            block = read_call(call if isinstance(call, dict) else {}, raw)
            self._calls += 1
            self._number += 1
            out.append(ToolCallStart(self._number, block.id, block.name))
            if block.carried is not None:
                out.append(BlockFields(self._number, NAME, block.carried.fields))
            out += [ToolCallChunk(self._number, block.arguments), ToolCallEnd(self._number)]

    def _end(self, line: dict[str, Any], out: list[Event]) -> None:
        self._over = True
        self._leave(out)
        usage, doubts = decode_usage(line)
        if usage is not None:
            out.append(UsageUpdate(usage))
        out.extend(Degraded(doubt) for doubt in doubts)
        word = as_text(line.get("done_reason"))
        if word and word not in REASONS:
            out.append(ReplyFields(NAME, {"done_reason": word}))
        reason = REASONS.get(word or "stop", "unknown")
        out.append(Finish("tool_calls" if self._calls and reason == "stop" else reason, word))

    def _malformed(self, out: list[Event], problem: str) -> list[Event]:
        return self._fail(
            out, MalformedReply(f"the reply is not an Ollama message: {problem}", provider=self._provider)
        )

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._over = True
        out.append(Failed(error))
        return out


def without_calls(data: bytes, places: Collection[int]) -> bytes:
    """Return a line without the calls at these places."""
    line = decode_leniently(data)
    message = line["message"]
    calls = [call for place, call in enumerate(message.pop("tool_calls")) if place not in places]
    return msgspec.json.encode(line | {"message": message | ({"tool_calls": calls} if calls else {})})
