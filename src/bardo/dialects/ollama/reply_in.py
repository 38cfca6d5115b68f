"""Ollama's replies to events.

A stream is JSON lines, each with a piece of the message, and `done` in the last, which has the totals. A whole reply is one such line.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.ollama.errors import refusal
from bardo.dialects.ollama.usage import decode_usage
from bardo.dialects.ollama.wire import COUNTS, FORMAT, NAME, REASONS, Answer, Line, WrittenCall, WrittenFunction
from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES
from bardo.dialects.shared.json_values import (
    JsonObject,
    as_text,
    decode_leniently,
    excerpt,
    kind_of,
    without,
    write_json,
    written_arguments,
)
from bardo.dialects.shared.spellings import seconds_of
from bardo.dialects.shared.structs import Others, carried_fields
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

_decode_line = msgspec.json.Decoder(Line).decode
_IN_A_LINE = MAX_DEPTH - 5
"""How many levels the arguments of a call may have inside the objects around them."""


class Decoder:
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._provider = row.id
        self._emitted: JsonObject = {}
        self._kind: Literal["", "text", "thinking"] = ""
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
        out: list[Event] = []
        arguments: list[str] | None = None
        try:
            # A long line is decoded in slices.
            line = _decode_line(data) if len(data) < SLICED_BYTES else None
            if line is not None and line.message.tool_calls:
                calls = line.message.tool_calls
                arguments = [written_arguments(call.function.arguments, _IN_A_LINE) for call in calls]
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            line = None
        if line is None:
            line, arguments = self._read_leniently(item, data, out)
            if line is None:
                return out
        message = line.message
        if not self._begun:
            self._begin(line, out)
        if line.others is not None or line.logprobs is not None or message.others is not None:
            self._carry(line, out)
        # One line says these in the order in which a model does.
        if message.thinking:
            if self._kind != "thinking":
                self._enter("thinking", out)
                out.append(ThinkStart(self._number, FORMAT))
            out.append(ThinkChunk(self._number, message.thinking))
        if message.content:
            if self._kind != "text":
                self._enter("text", out)
            out.append(ContentChunk(self._number, message.content))
        if arguments:
            self._leave(out)
            for call, written in zip(message.tool_calls or (), arguments, strict=True):
                self._call(call, written, out)
        if line.done:
            self._end(line, out)
        elif line.eval_count:
            # A body that was counted, and does not say that it is done.
            self._count(line, out)
        return out

    def finish(self) -> list[Event]:
        """Close the reply. One without a line that says `done` is broken."""
        if self._over:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._provider))

    def _begin(self, line: Line, out: list[Event]) -> None:
        self._begun = True
        stamp = line.created_at or ""
        out.append(ReplyStart(model=line.model or "", created=seconds_of(stamp)))
        if stamp:
            # Each line has a time of its own; the first is the reply's.
            out.append(ReplyFields(NAME, {"created_at": stamp}))

    def _carry(self, line: Line, out: list[Event]) -> None:
        """Add unknown fields where they say something new. Scores are new in each line, however alike two of them are."""
        for struct, prefix, choice in ((line, "", None), (line.message, "message.", 0)):
            fields = carried_fields(struct) or {}
            new = {
                name: value
                for name, value in fields.items()
                if name == "logprobs" or self._emitted.get(prefix + name) != value
            }
            self._emitted |= {prefix + name: value for name, value in new.items()}
            if new:
                out.append(ReplyFields(NAME, new, choice=choice))

    def _enter(self, kind: Literal["text", "thinking"], out: list[Event]) -> None:
        self._leave(out)
        self._kind = kind
        self._number += 1

    def _leave(self, out: list[Event]) -> None:
        was, self._kind = self._kind, ""
        if was == "thinking":
            out.append(ThinkEnd(self._number))

    def _call(self, call: WrittenCall, arguments: str, out: list[Event]) -> None:
        """Add a call. Its fields say how it was written: `id` is null where there was none, and `function` holds its index."""
        self._calls += 1
        self._number += 1
        fields: JsonObject = {"function": carried_fields(call.function) or {}, **(carried_fields(call) or {})}
        if not call.id:
            fields["id"] = None
        out += [
            ToolCallStart(self._number, call.id or "", call.function.name),
            BlockFields(self._number, NAME, fields),
            ToolCallChunk(self._number, arguments),
            ToolCallEnd(self._number),
        ]

    def _end(self, line: Line, out: list[Event]) -> None:
        self._over = True
        self._leave(out)
        self._count(line, out)
        word = line.done_reason or ""
        if word and word not in REASONS:
            out.append(ReplyFields(NAME, {"done_reason": word}))
        reason = REASONS.get(word or "stop", "unknown")
        out.append(Finish("tool_calls" if self._calls and reason == "stop" else reason, word))

    def _count(self, line: Line, out: list[Event]) -> None:
        raw = {name: count for name in COUNTS if (count := getattr(line, name)) is not None}
        if raw:
            usage, doubts = decode_usage(raw)
            out.append(UsageUpdate(usage))
            out.extend(Degraded(doubt) for doubt in doubts)

    def _read_leniently(self, item: Frame, data: bytes, out: list[Event]) -> tuple[Line, list[str]] | tuple[None, None]:
        """Return a line that is not quite one, with the arguments of its calls, or None if it ends the reply, or says nothing."""
        try:
            value = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # Half a line at the end of a stream says nothing.
            if item.complete or not data.startswith(b"{"):
                self._malformed(out, f"no JSON: {excerpt(data, 80)}")
            return None, None
        if not isinstance(value, dict):
            self._malformed(out, f"a line is {kind_of(value)}")
            return None, None
        if value.get("error"):
            self._fail(out, refusal(value, provider=self._provider))
            return None, None
        message = value.get("message")
        if message is None and (value.get("done") is True or value.get("eval_count")) and "response" not in value:
            message = {}  # The model said nothing.
        if not isinstance(message, dict):
            self._malformed(out, f"message is {kind_of(message)}")
            return None, None
        listed = message.get("tool_calls")
        given = [call if isinstance(call, dict) else {} for call in listed] if isinstance(listed, list) else []
        line = Line(
            model=as_text(value.get("model")),
            created_at=as_text(value.get("created_at")),
            message=Answer(
                content=as_text(message.get("content")),
                thinking=as_text(message.get("thinking")),
                tool_calls=[_written_call(call) for call in given],
                others=Others(without(message, "role", "content", "thinking", "tool_calls")) or None,
            ),
            done=value.get("done") is True,
            done_reason=as_text(value.get("done_reason")),
            logprobs=value.get("logprobs"),
            others=Others(without(value, *_LINE)) or None,
            # A count that is none is told as such.
            **{name: value.get(name) for name in COUNTS},
        )
        return line, _arguments(data, given)

    def _malformed(self, out: list[Event], problem: str) -> None:
        self._fail(out, MalformedReply(f"the reply is not an Ollama message: {problem}", provider=self._provider))

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._over = True
        out.append(Failed(error))
        return out


_LINE = ("model", "created_at", "message", "done", "done_reason", "error", "logprobs", *COUNTS)


def _written_call(call: JsonObject) -> WrittenCall:
    function = call.get("function")
    fields: JsonObject = function if isinstance(function, dict) else {}
    given = call.get("id")
    return WrittenCall(
        function=WrittenFunction(
            name=str(fields.get("name") or ""), others=Others(without(fields, "name", "arguments")) or None
        ),
        id=given if isinstance(given, str) else None,
        others=Others(without(call, "id", "function")) or None,
    )


class _AnyFunction(msgspec.Struct, frozen=True):
    arguments: msgspec.Raw = msgspec.Raw()


class _AnyCall(msgspec.Struct, frozen=True):
    function: _AnyFunction = _AnyFunction()


class _AnyMessage(msgspec.Struct, frozen=True):
    tool_calls: tuple[_AnyCall, ...] = ()


class _AnyLine(msgspec.Struct, frozen=True):
    """A line of which only the arguments of calls are looked at, as the text they stood in."""

    message: _AnyMessage = _AnyMessage()


_decode_any_line = msgspec.json.Decoder(_AnyLine).decode


def _arguments(data: bytes, calls: list[JsonObject]) -> list[str]:
    """Return the arguments of each call as they were written, where that can be told."""
    functions = [call.get("function") for call in calls]
    values = [function.get("arguments") if isinstance(function, dict) else None for function in functions]
    try:
        written = [written_arguments(call.function.arguments) for call in _decode_any_line(data).message.tool_calls]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        written = []
    if len(written) == len(values):
        return written
    return [
        as_text(value) if value is None or isinstance(value, str) else write_json(value).decode() for value in values
    ]


def without_calls(data: bytes, places: Collection[int]) -> bytes:
    """Return a line without the calls at these places."""
    line = decode_leniently(data)
    message = line["message"]
    calls = [call for place, call in enumerate(message.pop("tool_calls")) if place not in places]
    return msgspec.json.encode(line | {"message": message | ({"tool_calls": calls} if calls else {})})
