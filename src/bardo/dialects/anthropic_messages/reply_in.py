"""Anthropic's replies to events.

A stream is `message_start`, blocks one after the other (`content_block_start`, `_delta`s, `_stop`), `message_delta` with the stop reason
and the totals, `message_stop`. A whole message says the same at once, and is read by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias, TypeVar

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.anthropic_messages import wire
from bardo.dialects.anthropic_messages.errors import refusal
from bardo.dialects.anthropic_messages.fast import RepeatedDeltas, text_alone
from bardo.dialects.anthropic_messages.usage import decode_usage, merge_usage
from bardo.dialects.anthropic_messages.wire import FORMAT, NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.shared.blocks import OpenBlock, add_piece, add_states
from bardo.dialects.shared.bounded_json import MAX_DEPTH, SLICED_BYTES, has_few_brackets
from bardo.dialects.shared.dialect import PlainReplyDecoder, RepeatingDecoder
from bardo.dialects.shared.json_values import (
    INVALID_JSON,
    JsonObject,
    JsonValue,
    WrongShape,
    arguments_of,
    decode_leniently,
    excerpt,
    input_of,
    want,
    without,
)
from bardo.dialects.shared.states import EMPTY, TextStates, give
from bardo.dialects.shared.structs import Wire, as_it_came, carried_fields, read_apart, wrong_field
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

Block: TypeAlias = OpenBlock[type[wire.ReplyBlock] | None]
"""A block that is open: its kind is the struct that it began as, None for one that bardo has no word for."""
W = TypeVar("W", bound=Wire)


_BLOCKS: dict[str, type[wire.ReplyBlock]] = {
    "text": wire.ReplyText,
    "thinking": wire.ReplyThinking,
    "redacted_thinking": wire.ReplyRedactedThinking,
    "tool_use": wire.ReplyToolUse,
}
_DELTAS: dict[str, type[wire.Delta]] = {
    "text_delta": wire.TextDelta,
    "citations_delta": wire.CitationsDelta,
    "thinking_delta": wire.ThinkingDelta,
    "signature_delta": wire.SignatureDelta,
    "input_json_delta": wire.InputDelta,
}
_BLOCK_OF: dict[type[wire.Delta], type[wire.ReplyBlock]] = {
    wire.TextDelta: wire.ReplyText,
    wire.CitationsDelta: wire.ReplyText,
    wire.ThinkingDelta: wire.ReplyThinking,
    wire.SignatureDelta: wire.ReplyThinking,
    wire.InputDelta: wire.ReplyToolUse,
}
"""The block that a piece belongs to."""
_PIECES = frozenset(("text", "thinking", "signature", "partial_json", "citation"))
_STOP = ("stop_reason", "stop_sequence")

_decode = msgspec.json.Decoder(wire.Frame).decode


def _strictly(data: bytes) -> wire.Frame | None:
    """Return a frame that any strict reader can read and that holds only known fields, or None for any other."""
    if len(data) >= SLICED_BYTES:
        return None
    try:
        frame: wire.Frame = _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return frame if len(data) <= MAX_DEPTH or has_few_brackets(data) else None


class Decoder(PlainReplyDecoder, RepeatingDecoder):
    """One reply, whole or streamed. `_open` are the blocks that have not ended, by Anthropic's index."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._open: dict[int, Block] = {}
        self._count = 0
        self._calls: dict[str, int] = {}
        self._last_text: int | None = None
        self._states_of_texts = TextStates()
        self._usage: JsonObject = {}
        self._repeated = RepeatedDeltas()
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
        frame = _strictly(data)
        if (event := self._continued(frame, item)) is not None:
            return [event]
        self._repeated.forget()
        out: list[Event] = []
        try:
            if frame is not None:
                self._take(frame, data, out)
            else:
                self._take_odd(item, data, out)
        except WrongShape as problem:
            self._malformed(str(problem), out)
        return out

    def read_plain(self, data: bytes) -> list[Event] | None:
        """Return the events of a whole message that is text and thinking and nothing else."""
        message = _strictly(data)
        if (
            type(message) is not wire.ReplyMessage
            or not message.content
            or message.stop_reason not in REASONS
            or not isinstance(message.stop_sequence, str | None)
            or not isinstance(message.usage, dict | None)
            or not all(map(_is_plain, message.content))
        ):
            return None
        out: list[Event] = []
        self._take(message, data, out)
        return out

    def read_plain_frame(self, item: Frame) -> list[Event] | None:
        """Return the events of a delta that only continues an open block."""
        event = None if self._over else self._continued(_strictly(item.data or b""), item)
        return None if event is None else [event]

    def repeated(self) -> FrameEnds | None:
        """Return the bytes around the text of the deltas that repeat."""
        return None if self._over else self._repeated.around

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of deltas that repeat."""
        return self._repeated.again(values, joined=joined)

    def finish(self) -> list[Event]:
        """Close the reply. One that has not come to its end is broken, even where only `message_stop` is missing."""
        out: list[Event] = []
        if not self._over:
            what = "before its end" if self._begun else "before it began"
            self._fail(BrokenStream(f"the reply stopped {what}", provider=self._row.id), out)
        return out

    def _continued(self, frame: wire.Frame | None, item: Frame) -> Event | None:
        """Return the event of a delta that only continues an open block; None for any other frame."""
        if type(frame) is not wire.BlockDelta or frame.others is not None:
            return None
        delta = frame.delta
        block, kind = self._open.get(frame.index), type(delta)
        if block is None or block.kind is not _BLOCK_OF[kind]:
            return None
        text = text_alone(delta)
        return None if text is None else self._repeated.event_of(item, frame.index, block, kind, text)

    def _take(self, frame: wire.Frame, data: bytes, out: list[Event]) -> None:
        match frame:
            case wire.BlockDelta(index=index, delta=delta):
                self._add(index, delta, out)
                self._add_beside(index, frame.others, out)
            case wire.BlockStart(index=index, content_block=block):
                self._begin_block(index, block, _inputs(data, [block])[0], out)
                self._add_beside(index, frame.others, out)
            case wire.BlockStop(index=index):
                self._add_beside(index, frame.others, out)
                self._end_block(index, out)
            case wire.MessageStart(message=message):
                self._start(message, message.content or (), data, out)
                self._carry(carried_fields(frame), out)
            case wire.MessageDelta(delta=delta, usage=usage):
                self._end(delta or wire.StopDelta(), usage, carried_fields(frame) or {}, out)
            case wire.MessageStop():
                self._end_blocks(out)
                self._over = True
                self._carry(carried_fields(frame), out)
            case wire.Ping():
                self._carry(carried_fields(frame), out)
            case wire.ReplyMessage():
                stop = wire.StopDelta(stop_reason=frame.stop_reason, stop_sequence=frame.stop_sequence)
                self._whole(frame, frame.content or (), stop, data, out)

    def _take_odd(self, item: Frame, data: bytes, out: list[Event]) -> None:
        """Take a frame with unknown or malformed fields. Its readable fields are read, in the same order."""
        try:
            value = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # Half a frame at the end of a stream says nothing, and proxies close with OpenAI's [DONE].
            if item.complete and data.strip() not in (b"", b"[DONE]"):
                self._malformed(f"no JSON: {excerpt(data, 80)}", out)
            return
        frame: JsonObject = want(value, dict, "the frame")
        kind = frame.get("type") or ("content_block_delta" if self._continues(frame) else item.event)
        if kind == "error" or (frame.get("error") and "content" not in frame):
            self._fail(refusal(frame, provider=self._row.id), out)
        elif kind == "message_start":
            message: JsonObject = want(frame.get("message"), dict, "message")
            self._start(_head(message), message.get("content") or (), data, out)
            self._carry(without(frame, "type", "message"), out)
        elif kind == "message" or "content" in frame or (not kind and frame.get("usage")):
            content = want(frame.get("content") or [], list, "content")
            self._whole(_head(frame), content, {name: frame.get(name) for name in _STOP}, data, out)
        elif kind == "content_block_start":
            block: JsonObject = want(frame.get("content_block"), dict, "content_block")
            index = _index(frame)
            self._begin_block(index, block, _inputs(data, [block])[0], out)
            self._add_beside(index, without(frame, "type", "index", "content_block"), out)
        elif kind == "content_block_delta":
            delta: JsonObject = want(frame.get("delta"), dict, "delta")
            index = _index(frame)
            want(delta.get("type"), str, "delta.type")
            self._add(index, delta, out)
            self._add_beside(index, without(frame, "type", "index", "delta"), out)
        elif kind == "content_block_stop":
            index = _index(frame)
            self._add_beside(index, without(frame, "type", "index"), out)
            self._end_block(index, out)
        elif kind == "message_delta":
            end: JsonObject = want(frame.get("delta") or {}, dict, "delta")
            self._end(end, frame.get("usage"), without(frame, "type", "delta", "usage"), out)
        elif kind in ("message_stop", "ping"):
            if kind == "message_stop":
                self._end_blocks(out)
                self._over = True
            self._carry(without(frame, "type"), out)
        else:
            self._carry({want(kind, str, "type"): [without(frame, "type")]}, out)

    def _continues(self, frame: JsonObject) -> bool:
        """Whether a frame without a type is a piece of an open block: Bedrock's chunks have no names that would tell."""
        index, delta = frame.get("index"), frame.get("delta")
        if len(frame) != 2 or type(index) is not int or index not in self._open or not isinstance(delta, dict):
            return False
        tag = delta.get("type")
        piece = _DELTAS.get(tag) if isinstance(tag, str) else None
        return piece is not None and self._open[index].kind is _BLOCK_OF[piece]

    def _whole(
        self,
        head: wire.ReplyMessage,
        blocks: Sequence[wire.ReplyBlock | JsonValue],
        stop: wire.StopDelta | JsonObject,
        data: bytes,
        out: list[Event],
    ) -> None:
        self._start(head, blocks, data, out)
        self._end_blocks(out)
        self._end(stop, None, {}, out)
        self._over = True

    def _start(
        self, head: wire.ReplyMessage, blocks: Sequence[wire.ReplyBlock | JsonValue], data: bytes, out: list[Event]
    ) -> None:
        self._begun = True
        out.append(ReplyStart(id=head.id or "", model=head.model or ""))
        self._take_usage(head.usage, out)
        self._carry(carried_fields(head), out)
        if blocks:
            want(blocks, list, "content")
            for place, (block, written) in enumerate(zip(blocks, _inputs(data, blocks), strict=True)):
                if not isinstance(block, Wire):
                    want(block, dict, f"content[{place}]")
                self._begin_block(place, block, written, out)
                self._end_block(place, out)

    def _end(self, stop: wire.StopDelta | JsonObject, usage: JsonValue, beside: JsonObject, out: list[Event]) -> None:
        if not isinstance(stop, wire.StopDelta):
            # A reason may be missing in any way.
            given = {name: value for name, value in stop.items() if value or name != "stop_reason"}
            stop = _read_message_part(given, wire.StopDelta)
        word = stop.stop_reason or ""
        if word:
            self._end_blocks(out)
        self._take_usage(usage, out)
        self._carry({**beside, **(carried_fields(stop) or {})}, out)
        if word:
            if word not in REASONS:
                self._carry({"stop_reason": word}, out)
            sequence = want(stop.stop_sequence or "", str, "stop_sequence")
            out.append(Finish(REASONS.get(word, "unknown"), word, sequence or None))

    def _take_usage(self, usage: JsonValue, out: list[Event]) -> None:
        if usage is None:
            return
        self._usage = merge_usage(self._usage, want(usage, dict, "usage"))
        counted, doubts = decode_usage(self._usage, excludes_reasoning=self._row.quirks.output_excludes_reasoning)
        out.append(UsageUpdate(counted))
        out.extend(map(Degraded, doubts))

    def _begin_block(self, index: int, block: wire.ReplyBlock | JsonObject, written: str, out: list[Event]) -> None:
        """Begin a block with whatever it already holds; `written` is the input of a call as text."""
        self._end_block(index, out)
        if isinstance(block, dict):
            kind = _BLOCKS.get(_text_of(block, "type"))
            if kind is None:
                self._open_block(index, None).value = dict(block)
                return
            block = _read_block_part(block, kind)
        match block:
            case wire.ReplyText(text=text):
                opened = self._open_block(index, wire.ReplyText)
                self._last_text = opened.number
                self._states_of_texts.open_text(opened.number, out)
                _add_fields(opened, carried_fields(block), out)
                if text:
                    opened.has_content = True
                    out.append(ContentChunk(opened.number, text))
            case wire.ReplyThinking(thinking=text, signature=signature):
                opened = self._open_block(index, wire.ReplyThinking)
                out.append(ThinkStart(opened.number, FORMAT))
                if text:
                    out.append(ThinkChunk(opened.number, text))
                add_states(opened.number, SIGNED_BLOCKS.decode_signature(signature or ""), out)
                _add_fields(opened, carried_fields(block), out)
            case wire.ReplyRedactedThinking():
                self._begin_redacted(index, block, out)
            case wire.ReplyToolUse(id=call, name=name):
                opened = self._open_block(index, wire.ReplyToolUse)
                opened.initial = written
                self._calls[call or ""] = opened.number
                out.append(ToolCallStart(opened.number, call or "", name or ""))
                _add_fields(opened, carried_fields(block), out)

    def _begin_redacted(self, index: int, block: wire.ReplyRedactedThinking, out: list[Event]) -> None:
        redacted = SIGNED_BLOCKS.decode_redacted(block.data or "")
        if self._states_of_texts.take(redacted):
            return
        if redacted.owner == EMPTY:
            self._last_text = self._count
            give(self._count, redacted.states, out)
            self._count += 1
            return
        target = redacted.number_of_owner(self._last_text, self._calls)
        if target is not None:
            add_states(target, redacted.states, out)
            return
        opened = self._open_block(index, wire.ReplyThinking)
        out.append(ThinkStart(opened.number, FORMAT))
        add_states(opened.number, redacted.states, out)
        _add_fields(opened, carried_fields(block), out)

    def _open_block(self, index: int, kind: type[wire.ReplyBlock] | None) -> Block:
        block = self._open[index] = OpenBlock(self._count, kind)
        self._count += 1
        return block

    def _add(self, index: int, delta: wire.Delta | JsonObject, out: list[Event]) -> None:
        """Add a piece to its block; text and thinking begin one where none of theirs is open. Raises WrongShape."""
        block = self._open.get(index)
        kind = _DELTAS.get(delta["type"]) if isinstance(delta, dict) else type(delta)
        if block is not None and block.kind is None:
            if kind is wire.InputDelta:
                block.pieces.append(_as_delta(delta, wire.InputDelta).partial_json or "")
            else:
                add_piece(block.value, without(as_it_came(delta), "type"))
            return
        expected = _BLOCK_OF.get(kind) if kind is not None else None
        if expected is not None and kind is not wire.InputDelta and (block is None or block.kind is not expected):
            self._begin_block(index, expected(), "", out)
            block = self._open[index]
        if block is None or (kind is wire.InputDelta and block.kind is not expected):
            tag = delta["type"] if isinstance(delta, dict) else delta.__struct_config__.tag
            raise WrongShape(f"{tag} for block {index}, which is not such a block")
        if kind is None:
            assert isinstance(delta, dict)
            _add_fields(block, {delta["type"]: [without(delta, "type")]}, out)
            return
        delta = _as_delta(delta, kind)
        match delta:
            case wire.TextDelta(text=text):
                block.has_content = True
                out.append(ContentChunk(block.number, text or ""))
            case wire.ThinkingDelta(thinking=text):
                out.append(ThinkChunk(block.number, text or ""))
            case wire.InputDelta(partial_json=piece):
                block.has_content = block.has_content or bool(piece)
                out.append(ToolCallChunk(block.number, piece or ""))
            case wire.SignatureDelta(signature=signature):
                add_states(block.number, SIGNED_BLOCKS.decode_signature(signature or ""), out)
            case wire.CitationsDelta(citation=citation):
                _add_fields(block, {"citations": [citation]}, out)
        beside = carried_fields(delta)
        if beside is not None:
            _add_fields(block, beside if _PIECES.isdisjoint(beside) else without(beside, *_PIECES), out)

    def _add_beside(self, index: int, fields: JsonObject | None, out: list[Event]) -> None:
        """Add fields that stood beside a block or a piece of it; to the reply, where the block is not open."""
        block = self._open.get(index)
        if block is None:
            self._carry(fields, out)
        elif fields:
            _add_fields(block, without(fields), out)

    def _end_block(self, index: int, out: list[Event]) -> None:
        """End a block, if it is open."""
        block = self._open.pop(index, None)
        if block is None:
            return
        if block.kind is None:
            out.append(UnknownContent(block.number, NAME, _whole_value(block)))
        elif block.kind is wire.ReplyText:
            if not block.has_content:
                out.append(ContentChunk(block.number, ""))
            self._count = self._states_of_texts.close_text(self._count, out)
        elif block.kind is wire.ReplyThinking:
            out.append(ThinkEnd(block.number))
        else:
            if not block.has_content:
                out.append(ToolCallChunk(block.number, block.initial or "{}"))
            out.append(ToolCallEnd(block.number))

    def _end_blocks(self, out: list[Event]) -> None:
        for index in sorted(self._open):
            self._end_block(index, out)

    @staticmethod
    def _carry(fields: JsonObject | None, out: list[Event]) -> None:
        if fields:
            out.append(ReplyFields(NAME, fields))

    def _malformed(self, problem: str, out: list[Event]) -> None:
        message = f"the reply is not an Anthropic message: {problem}"
        self._fail(MalformedReply(message, provider=self._row.id), out)

    def _fail(self, error: ProviderError, out: list[Event]) -> None:
        """End the reply: the held parts of unfinished blocks are given, but no call of the provider's tools."""
        for block in self._open.values():
            if block.kind is None and not str(block.value.get("type")).endswith("tool_use"):
                out.append(UnknownContent(block.number, NAME, _whole_value(block)))
            elif block.kind is wire.ReplyToolUse and not block.has_content and block.initial not in ("", "{}"):
                out.append(ToolCallChunk(block.number, block.initial))
        self._open.clear()
        self._over = True
        out.append(Failed(error))


def _is_plain(block: wire.ReplyBlock) -> bool:
    return isinstance(block, wire.ReplyText | wire.ReplyThinking) and carried_fields(block) is None


def _head(message: JsonObject) -> wire.ReplyMessage:
    """Return what an odd message says beside its content and its end. An id and a model may be missing in any way."""
    elsewhere = ("type", "content", *_STOP)
    fields = {name: value for name, value in message.items() if value or name not in ("id", "model")}
    return _read_message_part({name: part for name, part in fields.items() if name not in elsewhere}, wire.ReplyMessage)


def _read_message_part(fields: JsonObject, kind: type[W]) -> W:
    try:
        return read_apart(fields, kind)
    except msgspec.ValidationError as problem:
        raise WrongShape(" is ".join(wrong_field(problem))) from None


def _read_block_part(fields: JsonObject, kind: type[W]) -> W:
    try:
        return read_apart(fields, kind)
    except msgspec.ValidationError as problem:
        raise WrongShape(f"{wrong_field(problem)[0]} is not a string") from None


def _as_delta(delta: wire.Delta | JsonObject, kind: type[W]) -> W:
    return _read_block_part(delta, kind) if isinstance(delta, dict) else delta  # type: ignore[return-value]


def _text_of(fields: JsonObject, name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise WrongShape(f"{name} is not a string")
    return value or ""


def _index(frame: JsonObject) -> int:
    return want(frame.get("index"), (int, bool), "index")


def _add_fields(block: Block, fields: JsonObject | None, out: list[Event]) -> None:
    if not fields:
        return
    if block.kind is None:
        block.value.update(fields)
    else:
        out.append(BlockFields(block.number, NAME, fields))


def _whole_value(block: Block) -> JsonObject:
    """Return a block of an unknown kind, with the input that came in pieces."""
    text = "".join(block.pieces)
    return {**block.value, "input": msgspec.json.decode(input_of(text))} if text.strip() else block.value


class _Input(msgspec.Struct, frozen=True):
    input: msgspec.Raw = msgspec.Raw(b"")


class _Inputs(msgspec.Struct):
    """The tool inputs of a frame, as the text they stood in."""

    content_block: _Input = _Input()
    content: list[_Input] = []


_decode_inputs = msgspec.json.Decoder(_Inputs).decode


def _inputs(data: bytes, blocks: Sequence[wire.ReplyBlock | JsonValue]) -> list[str]:
    """Return, for each block, its input as it was written, where the block is a call."""
    values = [
        block.input
        if isinstance(block, wire.ReplyToolUse)
        else block.get("input")
        if isinstance(block, dict) and block.get("type") == "tool_use"
        else None
        for block in blocks
    ]
    if not any(values):
        return ["" if value is None else arguments_of(value) for value in values]
    try:
        inputs = _decode_inputs(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        inputs = _Inputs()
    raws = inputs.content or [inputs.content_block]
    return [_written(value, raw.input) for value, raw in zip_longest(values, raws[: len(values)], fillvalue=_Input())]


def _written(value: JsonValue, raw: msgspec.Raw) -> str:
    # Some servers write the input as a string of JSON, and bardo wraps other text.
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, dict) or INVALID_JSON in value or not bytes(raw):
        return arguments_of(value)
    return bytes(raw).decode("utf-8", "replace")


def _calls(frame: JsonObject) -> Iterator[tuple[int, JsonObject, str]]:
    """Yield the calls of a frame, of a message or of the start of one, with their places and the name of their id."""
    message = frame.get("message", frame)
    blocks = message.get("content") if isinstance(message, dict) else None
    pairs = enumerate(blocks) if isinstance(blocks, list) else iter([(frame.get("index"), frame.get("content_block"))])
    for place, block in pairs:
        if isinstance(place, int) and isinstance(block, dict) and block.get("type") == "tool_use":
            yield place, block, "id"


CALLS = CallsInFrames(b'"tool_use"', _calls)
