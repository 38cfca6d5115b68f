"""Anthropic's replies to events.

A stream is `message_start`, blocks one after the other (`content_block_start`, `_delta`s, `_stop`), `message_delta` with the stop reason
and the totals, `message_stop`. A whole message is the same said at once, and takes the same functions. Plain deltas are decoded into
typed structs; everything rarer goes a generic way.

Read the blocks of a streamed reply: Anthropic's index and pieces to our numbered events.

The frames that a stream mostly consists of: a further piece of an open block, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, TypeAlias

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages.errors import refusal
from bardo.dialects.anthropic_messages.fast import read_plain
from bardo.dialects.anthropic_messages.usage import decode_usage, merge_usage
from bardo.dialects.anthropic_messages.wire import FORMAT, NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.shared.blocks import OpenBlock, add_piece, add_states
from bardo.dialects.shared.dialect import PlainReplyDecoder, RepeatingDecoder
from bardo.dialects.shared.json_values import (
    INVALID_JSON,
    WrongShape,
    arguments_of,
    decode_leniently,
    excerpt,
    input_of,
    want,
    without,
)
from bardo.dialects.shared.repeated_text import RepeatedText
from bardo.dialects.shared.states import EMPTY, TextStates, give
from bardo.dialects.shared.tools import CallsInFrames
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds
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
    UnknownContent,
    UsageUpdate,
)


# Fields nobody knows make these fail, so that the generic way can carry them.
class TextDelta(msgspec.Struct, tag_field="type", tag="text_delta", gc=False, forbid_unknown_fields=True):
    """A piece of the answer."""

    text: str


class ThinkingDelta(msgspec.Struct, tag_field="type", tag="thinking_delta", gc=False, forbid_unknown_fields=True):
    """A piece of the thinking. `estimated_tokens` comes with a beta header, instead of text that is not shown."""

    thinking: str
    estimated_tokens: int | None = None


class InputDelta(msgspec.Struct, tag_field="type", tag="input_json_delta", gc=False, forbid_unknown_fields=True):
    """A piece of a tool's input."""

    partial_json: str


Block: TypeAlias = OpenBlock[type | None]


class Content:
    """The blocks of one reply. `open_blocks` holds those not yet closed, by Anthropic's index; their kind is that of their pieces."""

    def __init__(self) -> None:
        self.open_blocks: dict[int, Block] = {}
        self._count = 0
        self._calls: dict[str, int] = {}
        self._last_text: int | None = None
        self._text_states = TextStates()

    def open(self, index: int, block: dict[str, Any], arguments: str, out: list[Event]) -> None:
        """Begin a block with whatever it already holds; `arguments` is the input of a tool call as text."""
        self.close(index, out)
        kind = _text_of(block, "type")
        if kind == "text":
            self._open_text(index, block, out)
        elif kind == "thinking":
            self._open_thinking(index, block, out)
        elif kind == "redacted_thinking":
            self._open_redacted(index, block, out)
        elif kind == "tool_use":
            self._open_call(index, block, arguments, out)
        else:
            self._begin(index, None).value = dict(block)

    def _begin(self, index: int, kind: type | None) -> Block:
        block = self.open_blocks[index] = OpenBlock(self._count, kind)
        self._count += 1
        return block

    def _open_text(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        text = _text_of(block, "text")
        opened = self._begin(index, TextDelta)
        self._last_text = opened.number
        self._text_states.open_text(opened.number, out)
        _add_fields(opened, without(block, "type", "text"), out)
        if text:
            opened.has_content = True
            out.append(ContentChunk(opened.number, text))

    def _open_thinking(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        text, signature = _text_of(block, "thinking"), _text_of(block, "signature")
        number = self._open_think(index, out)
        if text:
            out.append(ThinkChunk(number, text))
        add_states(number, SIGNED_BLOCKS.decode_signature(signature), out)
        _add_fields(self.open_blocks[index], without(block, "type", "thinking", "signature"), out)

    def _open_redacted(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        found = SIGNED_BLOCKS.decode_redacted(_text_of(block, "data"))
        if self._text_states.take(found):
            return
        if found.owner == EMPTY:
            self._last_text = self._count
            give(self._count, found.states, out)
            self._count += 1
            return
        target = found.number_of_owner(self._last_text, self._calls)
        if target is not None:
            add_states(target, found.states, out)
            return
        add_states(self._open_think(index, out), found.states, out)
        _add_fields(self.open_blocks[index], without(block, "type", "data"), out)

    def _open_think(self, index: int, out: list[Event]) -> int:
        number = self._begin(index, ThinkingDelta).number
        out.append(ThinkStart(number, FORMAT))
        return number

    def _open_call(self, index: int, block: dict[str, Any], arguments: str, out: list[Event]) -> None:
        call, name = _text_of(block, "id"), _text_of(block, "name")
        opened = self._begin(index, InputDelta)
        opened.initial = arguments
        self._calls[call] = opened.number
        out.append(ToolCallStart(opened.number, call, name))
        _add_fields(opened, without(block, "type", "id", "name", "input"), out)

    def add(self, index: int, kind: str, delta: dict[str, Any], out: list[Event]) -> None:
        """Add a piece that is not plain, or that begins a block which nobody opened. Raises WrongShape."""
        block = self.open_blocks.get(index)
        if block is not None and block.kind is None:
            _grow(block, kind, without(delta, "type"))
            return
        expected = _BLOCK_OF.get(kind)
        if expected is not None and (block is None or block.kind is not expected[0]):
            self.open(index, {"type": expected[1]}, "", out)
            block = self.open_blocks[index]
        if block is None or (kind == "input_json_delta" and block.kind is not InputDelta):
            raise WrongShape(f"{kind} for block {index}, which is not such a block")
        self._add_known(block, kind, delta, out)

    def _add_known(self, block: Block, kind: str, delta: dict[str, Any], out: list[Event]) -> None:
        number = block.number
        if kind == "text_delta":
            block.has_content = True
            out.append(ContentChunk(number, _text_of(delta, "text")))
        elif kind == "thinking_delta":
            out.append(ThinkChunk(number, _text_of(delta, "thinking")))
        elif kind == "signature_delta":
            add_states(number, SIGNED_BLOCKS.decode_signature(_text_of(delta, "signature")), out)
        elif kind == "input_json_delta":
            piece = _text_of(delta, "partial_json")
            block.has_content = block.has_content or bool(piece)
            out.append(ToolCallChunk(number, piece))
        elif kind == "citations_delta":
            _add_fields(block, {"citations": [delta.get("citation")]}, out)
        else:
            _add_fields(block, {kind: [without(delta, "type")]}, out)
            return
        _add_fields(block, without(delta, "type", *_PIECES), out)

    def add_fields(self, index: int, fields: dict[str, Any], out: list[Event]) -> None:
        """Add fields that stood beside a block or a piece of it."""
        block = self.open_blocks.get(index)
        if block is not None:
            _add_fields(block, fields, out)

    def close(self, index: int, out: list[Event]) -> None:
        """End a block, if it is open."""
        block = self.open_blocks.pop(index, None)
        if block is None:
            return
        if block.kind is None:
            out.append(UnknownContent(block.number, NAME, _whole(block)))
        elif block.kind is TextDelta:
            if not block.has_content:
                out.append(ContentChunk(block.number, ""))
            self._count = self._text_states.close_text(self._count, out)
        elif block.kind is ThinkingDelta:
            out.append(ThinkEnd(block.number))
        else:
            if not block.has_content:
                out.append(ToolCallChunk(block.number, block.initial or "{}"))
            out.append(ToolCallEnd(block.number))

    def close_all(self, out: list[Event]) -> None:
        """End all blocks that are open."""
        for index in sorted(self.open_blocks):
            self.close(index, out)

    def flush(self, out: list[Event]) -> None:
        """Return what is held of blocks that will not be finished, without saying that they are: no call of the provider's tools."""
        for block in self.open_blocks.values():
            if block.kind is None and not str(block.value.get("type")).endswith("tool_use"):
                out.append(UnknownContent(block.number, NAME, _whole(block)))
            elif block.kind is InputDelta and not block.has_content and block.initial not in ("", "{}"):
                out.append(ToolCallChunk(block.number, block.initial))
        self.open_blocks.clear()


_BLOCK_OF: dict[str, tuple[type, str]] = {
    "text_delta": (TextDelta, "text"),
    "citations_delta": (TextDelta, "text"),
    "thinking_delta": (ThinkingDelta, "thinking"),
    "signature_delta": (ThinkingDelta, "thinking"),
}

_PIECES = ("text", "thinking", "signature", "partial_json", "citation")


def _add_fields(block: Block, fields: dict[str, Any], out: list[Event]) -> None:
    if not fields:
        return
    if block.kind is None:
        block.value.update(fields)
    else:
        out.append(BlockFields(block.number, NAME, fields))


def _grow(block: Block, kind: str, fields: dict[str, Any]) -> None:
    if kind == "input_json_delta":
        block.pieces.append(_text_of(fields, "partial_json"))
        return
    add_piece(block.value, fields)


def _whole(block: Block) -> dict[str, Any]:
    text = "".join(block.pieces)
    if not text.strip():
        return block.value
    return {**block.value, "input": msgspec.json.decode(input_of(text))}


def _text_of(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongShape(f"{name} is not a string")
    return value


class _Delta(msgspec.Struct, tag_field="type", tag="content_block_delta", gc=False, forbid_unknown_fields=True):
    index: int
    delta: TextDelta | ThinkingDelta | InputDelta


_decode = msgspec.json.Decoder(_Delta).decode


class PlainDeltas:
    """Reads them. `open_blocks` are the blocks of the reply that are not closed, by Anthropic's index; `repeated` are those that repeat."""

    __slots__ = ("_open_blocks", "repeated")

    def __init__(self, open_blocks: dict[int, Block]) -> None:
        self._open_blocks = open_blocks
        self.repeated = RepeatedText(_parse_delta)

    def read(self, item: Frame) -> list[Event] | None:
        """Return the events of a plain delta; None for any other frame."""
        try:
            frame = _decode(item.data or b"")
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        delta = frame.delta
        block = self._open_blocks.get(frame.index)
        if block is None or block.kind is not delta.__class__:
            return None
        if isinstance(delta, ThinkingDelta) and delta.estimated_tokens is not None:
            fields = BlockFields(block.number, NAME, {"estimated_tokens": delta.estimated_tokens})
            return [ThinkChunk(block.number, delta.thinking), fields]
        text = _text(delta)
        if self.repeated.note(item, (frame.index, delta.__class__), text):
            self.repeated.follow((frame.index, delta.__class__), _maker(block))
        return [self.repeated.event(text)]


def _text(delta: TextDelta | ThinkingDelta | InputDelta) -> str:
    if isinstance(delta, TextDelta):
        return delta.text
    return delta.partial_json if isinstance(delta, InputDelta) else delta.thinking


def _parse_delta(data: bytes) -> tuple[Hashable, str] | None:
    """Return which block a plain delta continues, and its text."""
    try:
        frame = _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    delta = frame.delta
    if isinstance(delta, ThinkingDelta) and delta.estimated_tokens is not None:
        return None
    return (frame.index, delta.__class__), _text(delta)


def _maker(block: Block) -> Callable[[str], Event]:
    """Return what makes the event of a further text of a block."""
    if block.kind is ThinkingDelta:
        return partial(ThinkChunk, block.number)
    if block.kind is InputDelta:
        return partial(_input, block)
    block.has_content = True
    return partial(ContentChunk, block.number)


def _input(block: Block, text: str) -> Event:
    block.has_content = block.has_content or text != ""
    return ToolCallChunk(block.number, text)


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
