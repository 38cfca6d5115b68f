"""Bedrock's Converse replies to events.

A stream is `messageStart`, blocks (`contentBlockStart` where it is a tool call, `contentBlockDelta`s, `contentBlockStop`), `messageStop`
with the stop reason, `metadata` with the totals. A whole reply is the same said at once. Plain deltas are decoded into typed structs;
everything rarer goes a generic way. InvokeModel streams Nova's replies as the same events, each an object under its event's name.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.bedrock_converse.block_reader import Content
from bardo.dialects.bedrock_converse.constants import NAME, PADDING, REASONS, string, unknown_fields
from bardo.dialects.bedrock_converse.errors import is_refusal, refusal, stream_refusal
from bardo.dialects.bedrock_converse.usage import decode_usage
from bardo.dialects.lenient import decode_leniently, excerpt
from bardo.dialects.wire import INVALID_JSON, WrongShape, arguments_of, want, without
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, MalformedReply, ProviderError
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Failed,
    Finish,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    UsageUpdate,
)


# Fields nobody knows make these fail, so that the generic way can carry them.
class _Thought(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str


class _Input(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    input: str


class _Piece(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    text: str | None = None
    reasoning_content: _Thought | None = None
    tool_use: _Input | None = None


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    content_block_index: int
    delta: _Piece
    p: str = ""


_decode_delta = msgspec.json.Decoder(_Delta).decode
_EVENTS = frozenset(
    ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
)
_WHOLE: dict[str, Any] = {"output": {"message": {"role": None, "content": None}}, "stopReason": None, "usage": None}


class Decoder:
    """One reply, whole or streamed. `join_text` is for Nova by InvokeModel, which cuts one text into many blocks."""

    def __init__(self, row: ProviderRow, *, join_text: bool = False) -> None:
        self._row = row
        self._content = Content(join_text=join_text)
        self._open_blocks = self._content.open_blocks
        self._begun = False
        self._stopped = False
        self._counted = False
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._over or (self._stopped and self._counted)

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._over or self._stopped

    def feed(self, item: Frame) -> list[Event]:
        """Return what the frame says. Never raises: what cannot be read ends the reply with Failed."""
        data = item.data
        if data is None or self._over:
            return []
        if item.event != "contentBlockDelta":
            return self._feed_rare(item, data)
        try:
            frame = _decode_delta(data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self._feed_rare(item, data)
        block, piece = self._open_blocks.get(frame.content_block_index), frame.delta
        if block is None:
            return self._feed_rare(item, data)
        text, thought, use = piece.text, piece.reasoning_content, piece.tool_use
        if text is not None:
            if block.kind == "text" and thought is None and use is None:
                return [ContentChunk(block.number, text)]
        elif thought is not None:
            if block.kind == "think" and use is None:
                return [ThinkChunk(block.number, thought.text)]
        elif use is not None and block.kind == "call":
            block.has_content = block.has_content or use.input != ""
            return [ToolCallChunk(block.number, use.input)]
        return self._feed_rare(item, data)

    def finish(self) -> list[Event]:
        """Close the reply. It is complete with `messageStop`; without, it is broken."""
        if self._over or self._stopped:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._row.id))

    def _feed_rare(self, item: Frame, data: bytes) -> list[Event]:
        out: list[Event] = []
        refused = stream_refusal(item, self._row.id)
        if refused is not None:
            return self._fail(out, refused)
        try:
            payload = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # What was left of a message when the stream ended says nothing.
            return [] if not item.complete else self._malformed(out, f"no JSON: {excerpt(data, 80)}")
        try:
            self._read(item.event, want(payload, dict, "the frame"), data, out)
        except WrongShape as problem:
            return self._malformed(out, str(problem))
        return out

    def _read(self, event: str, payload: dict[str, Any], data: bytes, out: list[Event]) -> None:
        if event:
            self._event(event, payload, out)
        elif "output" in payload:
            self._whole(payload, data, out)
        elif payload.keys() & _EVENTS:
            for name, value in payload.items():
                if name in _EVENTS:
                    self._event(name, want(value, dict, name), out)
                else:
                    self._carry({name: value}, out)
        elif payload.get("usage"):
            # A body without an output holds nothing, however it says that it ended; it was billed all the same.
            self._whole({**without(payload, "stopReason"), "output": None}, data, out)
        elif is_refusal(payload):
            self._fail(out, refusal(payload, provider=self._row.id))
        else:
            raise WrongShape(f"neither a message nor an event: {excerpt(data, 80)}")

    def _event(self, name: str, payload: dict[str, Any], out: list[Event]) -> None:
        if name == "contentBlockDelta":
            delta, beside = want(payload.get("delta"), dict, "delta"), without(payload, "contentBlockIndex", "delta")
            self._content.add(_index(payload), delta, beside, out)
        elif name == "contentBlockStart":
            self._content.open(_index(payload), want(payload.get("start") or {}, dict, "start"), out)
            self._content.add_fields(_index(payload), without(payload, "contentBlockIndex", "start"), out)
        elif name == "contentBlockStop":
            self._content.add_fields(_index(payload), without(payload, "contentBlockIndex"), out)
            self._content.close(_index(payload), out)
        elif name == "messageStart":
            self._begun = True
            out.append(ReplyStart())
            self._carry(without(payload, "role", PADDING), out)
        elif name == "messageStop":
            self._stop(payload, out)
            self._carry(without(payload, "stopReason", PADDING), out)
        elif name == "metadata":
            self._counted = True
            self._count(payload.get("usage"), out)
            self._carry(without(payload, "usage", PADDING), out)
        else:
            self._carry({name: [without(payload, PADDING)]}, out)

    def _whole(self, payload: dict[str, Any], data: bytes, out: list[Event]) -> None:
        output = want(payload["output"] or {}, dict, "output")
        message = want(output.get("message") or {}, dict, "output.message")
        blocks = want(message.get("content") or [], list, "content")
        self._begun = self._stopped = True
        out.append(ReplyStart())
        for place, arguments in enumerate(_arguments(data, blocks)):
            self._content.whole(place, want(blocks[place], dict, f"content[{place}]"), arguments, out)
        self._count(payload.get("usage"), out)
        self._carry(unknown_fields(payload, _WHOLE), out)
        self._stop(payload, out)

    def _stop(self, payload: dict[str, Any], out: list[Event]) -> None:
        self._content.close_all(out)
        self._stopped = True
        word = string(payload, "stopReason")
        if not word:
            return
        if word not in REASONS:
            self._carry({"stopReason": word}, out)
        out.append(Finish(REASONS.get(word, "unknown"), word, _stop_sequence(payload)))

    def _count(self, usage: Any, out: list[Event]) -> None:
        if usage is None:
            return
        counted, doubts = decode_usage(want(usage, dict, "usage"))
        out.append(UsageUpdate(counted))
        out.extend(Degraded(doubt) for doubt in doubts)

    @staticmethod
    def _carry(fields: dict[str, Any], out: list[Event]) -> None:
        if fields:
            out.append(ReplyFields(NAME, fields))

    def _malformed(self, out: list[Event], problem: str) -> list[Event]:
        return self._fail(out, MalformedReply(f"the reply is not Bedrock's: {problem}", provider=self._row.id))

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._content.flush(out)
        self._over = True
        out.append(Failed(error))
        return out


def _index(payload: dict[str, Any]) -> int:
    return want(payload.get("contentBlockIndex"), int, "contentBlockIndex")


def _stop_sequence(payload: dict[str, Any]) -> str | None:
    """Return the sequence that stopped the model, which Claude tells where the caller asked for its field."""
    fields = payload.get("additionalModelResponseFields")
    found = fields.get("stop_sequence") if isinstance(fields, dict) else None
    return found if isinstance(found, str) else None


class _Use(msgspec.Struct, frozen=True):
    input: msgspec.Raw = msgspec.Raw(b"")


class _Block(msgspec.Struct, rename="camel"):
    tool_use: _Use = _Use()


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block] = []


class _Output(msgspec.Struct, frozen=True):
    message: _Message = _Message()


class _Inputs(msgspec.Struct):
    """The tool inputs of a whole reply, as the text they stood in."""

    output: _Output = _Output()


_decode_inputs = msgspec.json.Decoder(_Inputs).decode


def _arguments(data: bytes, blocks: list[Any]) -> list[str]:
    """Return, for each block, its input as it was written, where the block is a tool call."""
    values = [_input_of(block) for block in blocks]
    if not any(values):
        return ["" if value is None else arguments_of(value) for value in values]
    try:
        raws = [block.tool_use.input for block in _decode_inputs(data).output.message.content]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raws = []
    pairs = zip_longest(values, raws[: len(values)], fillvalue=msgspec.Raw(b""))
    return [_written(value, raw) for value, raw in pairs]


def _input_of(block: Any) -> Any:
    use = block.get("toolUse") if isinstance(block, dict) else None
    return use.get("input") if isinstance(use, dict) else None


def _written(value: Any, raw: msgspec.Raw) -> str:
    # Text that is no JSON object stands in a string, or where bardo wrapped it.
    if value is None or isinstance(value, str):
        return value or ""
    wrapped = isinstance(value, dict) and INVALID_JSON in value
    return arguments_of(value) if wrapped or not bytes(raw) else bytes(raw).decode("utf-8", "replace")
