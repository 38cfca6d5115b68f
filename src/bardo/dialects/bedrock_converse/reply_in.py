"""Bedrock's Converse replies to events.

A stream is `messageStart`, blocks (`contentBlockStart` where it is a tool call, `contentBlockDelta`s, `contentBlockStop`), `messageStop`
with the stop reason, `metadata` with the totals. A whole reply is the same said at once. Plain deltas are decoded into typed structs;
everything rarer goes a generic way. InvokeModel streams Nova's replies as the same events, each an object under its event's name.

Read the blocks of a streamed reply: Bedrock's index and pieces to our numbered events.

Only tool calls begin with an event of their own; text and reasoning begin with their first piece. What a block holds beside what we know
is carried in the shape it stood in.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.bedrock_converse.errors import is_refusal, refusal, stream_refusal
from bardo.dialects.bedrock_converse.usage import decode_usage
from bardo.dialects.bedrock_converse.wire import (
    FIELD,
    NAME,
    PADDING,
    REASONS,
    SIGNED_BLOCKS,
    THOUGHT,
    string,
    unknown_fields,
)
from bardo.dialects.shared.blocks import OpenBlock, add_states
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
from bardo.dialects.shared.states import EMPTY, TextStates, give
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
    UnknownContent,
    UsageUpdate,
)

_KNOWN_FIELDS = frozenset(("text", FIELD, "toolUse", "citation"))
_CALL: dict[str, Any] = {"toolUse": {"toolUseId": None, "name": None, "input": None}}
_PIECE: dict[str, Any] = {FIELD: {"text": None, "signature": None, "redactedContent": None}}


Kind = Literal["text", "think", "redacted", "call", "other"]
Block: TypeAlias = OpenBlock[Kind]


class Content:
    """The blocks of one reply. `open_blocks` holds those not yet closed, by Bedrock's index.

    With `join_text`, text that follows text continues it: Nova streamed by InvokeModel gives every piece an index of its own.
    """

    def __init__(self, *, join_text: bool = False) -> None:
        self.open_blocks: dict[int, Block] = {}
        self._join_text = join_text
        self._count = 0
        self._calls: dict[str, int] = {}
        self._last_text: int | None = None
        self._text_states = TextStates()
        self._last: Kind | None = None

    def whole(self, index: int, block: dict[str, Any], arguments: str, out: list[Event]) -> None:
        """Take a block that is complete; `arguments` is the input of a tool call as text."""
        self._join_text = False
        if block.get("text") is not None:
            self._text(index, want(block["text"], str, "text"), without(block, "text"), out)
        elif block.get(FIELD) is not None:
            self._whole_thought(index, block, out)
        elif block.get("toolUse") is not None and not _is_hosted(block["toolUse"]):
            self._open_call(index, block, out)
            self.open_blocks[index].has_content = True
            out.append(ToolCallChunk(self.open_blocks[index].number, arguments or "{}"))
        elif block.get("citationsContent") is not None:
            self._cited(index, block, out)
        else:
            self._begin(index, "other").value = dict(block)
        self.close(index, out)

    def open(self, index: int, start: dict[str, Any], out: list[Event]) -> None:
        """Begin a block that says what it is."""
        self.close(index, out)
        if start.get("toolUse") is not None and not _is_hosted(start["toolUse"]):
            self._open_call(index, start, out)
        else:
            self._begin(index, "other").value = {
                name: dict(value) if isinstance(value, dict) else value for name, value in start.items()
            }

    def add(self, index: int, delta: dict[str, Any], other_fields: dict[str, Any], out: list[Event]) -> None:
        """Add a piece that is not plain, or that begins a block, and what stood beside it. Raises WrongShape."""
        other_fields = without(other_fields, PADDING)
        if other_fields and delta == {"text": ""}:
            self._text(index, "", other_fields, out)
            return
        self._add(index, without(delta), out)
        self.add_fields(index, other_fields, out)

    def _add(self, index: int, pieces: dict[str, Any], out: list[Event]) -> None:
        block = self.open_blocks.get(index)
        if block is None and pieces and not pieces.keys() & _KNOWN_FIELDS:
            block = self._begin(index, "other")
        if block is not None and block.kind == "other":
            _grow(block, pieces)
            return
        for name, value in pieces.items():
            if name == "text":
                self._text(index, want(value, str, "text"), {}, out)
            elif name == FIELD:
                self._read_reasoning(index, want(value, dict, FIELD), out)
            elif name == "toolUse":
                self._add_input(index, want(value, dict, "toolUse").get("input"), out)
            elif name == "citation":
                self._text(index, "", {"citations": [value]}, out)
            else:
                self.add_fields(index, {name: [value]}, out)

    def add_fields(self, index: int, fields: dict[str, Any], out: list[Event]) -> None:
        """Add fields that stood beside a block or a piece of it."""
        fields = without(fields, PADDING)
        block = self.open_blocks.get(index)
        if not fields or block is None:
            return
        if block.kind in ("other", "redacted"):
            block.value.update(fields)
        else:
            out.append(BlockFields(block.number, NAME, fields))

    def close(self, index: int, out: list[Event]) -> None:
        """End a block, if it is open."""
        block = self.open_blocks.pop(index, None)
        if block is None:
            return
        if block.kind == "think":
            out.append(ThinkEnd(block.number))
        elif block.kind == "call":
            if not block.has_content:
                out.append(ToolCallChunk(block.number, "{}"))
            out.append(ToolCallEnd(block.number))
        elif block.kind == "text":
            self._count = self._text_states.close_text(self._count, out)
        else:
            self._give(block, out)

    def close_all(self, out: list[Event]) -> None:
        """End all blocks that are open."""
        for index in sorted(self.open_blocks):
            self.close(index, out)

    def flush(self, out: list[Event]) -> None:
        """Return what is held of blocks that will not be finished, without saying that they are: no call of the provider's tools."""
        for block in self.open_blocks.values():
            if block.kind != "other" or "toolUse" not in block.value:
                self._give(block, out)
        self.open_blocks.clear()

    def _begin(self, index: int, kind: Kind) -> Block:
        block = self.open_blocks[index] = OpenBlock(self._count, kind)
        self._count += 1
        self._last = kind
        return block

    def _block_at(self, index: int, kind: Kind, out: list[Event]) -> Block:
        """Return the block at `index`, which begins here where it is new or was of another kind."""
        block = self.open_blocks.get(index)
        if block is not None and block.kind == kind:
            return block
        self.close(index, out)
        return self._begin(index, kind)

    def _text(self, index: int, text: str, fields: dict[str, Any], out: list[Event]) -> None:
        earlier = self.open_blocks.get(index)
        if not text and not fields and (earlier is None or earlier.kind != "text"):
            # gpt-oss begins with a block of no text, which says nothing.
            return
        if self._join_text and self._last == "text" and earlier is None and self._last_text is not None:
            block = self.open_blocks[index] = OpenBlock(self._last_text, "text")
        else:
            block = self._block_at(index, "text", out)
        self._last_text = block.number
        self._text_states.open_text(block.number, out)
        if text or not fields:
            out.append(ContentChunk(block.number, text))
        self.add_fields(index, fields, out)

    def _cited(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        cited = want(block["citationsContent"], dict, "citationsContent")
        pieces = want(cited.get("content") or [], list, "citationsContent.content")
        text = "".join(string(want(piece, dict, "content"), "text") for piece in pieces)
        fields = without(cited, "content")
        fields.setdefault("citations", [])
        if pieces != [{"text": text}]:
            fields["content"] = pieces
        if more := without(block, "citationsContent"):
            fields["block"] = more
        self._text(index, text, fields, out)

    def _whole_thought(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        thought = want(block[FIELD], dict, FIELD)
        spoken = thought.get("reasoningText")
        if spoken is not None or thought.get("redactedContent") is None:
            inner = want(spoken if spoken is not None else {}, dict, "reasoningText")
            self._read_reasoning(index, {"text": string(inner, "text"), "signature": string(inner, "signature")}, out)
        if thought.get("redactedContent") is not None:
            self._read_reasoning(index, {"redactedContent": thought["redactedContent"]}, out)
        self.add_fields(index, unknown_fields(block, THOUGHT), out)

    def _read_reasoning(self, index: int, piece: dict[str, Any], out: list[Event]) -> None:
        data = string(piece, "redactedContent")
        if data:
            self._block_at(index, "redacted", out).pieces.append(data)
            return
        earlier = self.open_blocks.get(index)
        block = self._block_at(index, "think", out)
        if block is not earlier:
            out.append(ThinkStart(block.number, FIELD))
        if text := string(piece, "text"):
            out.append(ThinkChunk(block.number, text))
        add_states(block.number, SIGNED_BLOCKS.decode_signature(string(piece, "signature")), out)
        self.add_fields(index, unknown_fields({FIELD: piece}, _PIECE), out)

    def _open_call(self, index: int, start: dict[str, Any], out: list[Event]) -> None:
        use = want(start["toolUse"], dict, "toolUse")
        call, name = string(use, "toolUseId"), string(use, "name")
        block = self._begin(index, "call")
        self._calls[call] = block.number
        out.append(ToolCallStart(block.number, call, name))
        self.add_fields(index, unknown_fields(start, _CALL), out)

    def _add_input(self, index: int, value: Any, out: list[Event]) -> None:
        block = self.open_blocks.get(index)
        if block is None or block.kind != "call":
            raise WrongShape(f"there is input for block {index}, which is no tool call")
        piece = value if isinstance(value, str) else arguments_of(value)
        block.has_content = block.has_content or bool(piece)
        out.append(ToolCallChunk(block.number, piece))

    def _give(self, block: Block, out: list[Event]) -> None:
        """Return what was held of a block."""
        if block.kind == "other":
            out.append(UnknownContent(block.number, NAME, _complete(block)))
        elif block.kind == "redacted":
            self._give_redacted(block, out)

    def _give_redacted(self, block: Block, out: list[Event]) -> None:
        found = SIGNED_BLOCKS.decode_redacted(_join_redacted(block.pieces))
        if self._text_states.take(found):
            return
        if found.owner == EMPTY:
            self._last_text = block.number
            give(block.number, found.states, out)
            return
        target = found.number_of_owner(self._last_text, self._calls)
        if target is not None:
            add_states(target, found.states, out)
            return
        out.append(ThinkStart(block.number, FIELD))
        add_states(block.number, found.states, out)
        if block.value:
            out.append(BlockFields(block.number, NAME, block.value))
        out.append(ThinkEnd(block.number))


def _is_hosted(use: Any) -> bool:
    """Whether Bedrock itself runs the tool that is called."""
    return isinstance(use, dict) and str(use.get("type") or "tool_use") != "tool_use"


def _grow(block: Block, delta: dict[str, Any]) -> None:
    """Add a piece to a block of no known kind."""
    for name, piece in delta.items():
        if name == "toolUse" and isinstance(piece, dict) and isinstance(piece.get("input"), str):
            block.pieces.append(piece["input"])
        elif name == "toolResult" and isinstance(piece, list):
            block.value[name] = _merged(block.value.get(name), {"content": piece})
        else:
            block.value[name] = _merged(block.value.get(name), piece)


def _merged(earlier: Any, piece: Any) -> Any:
    if isinstance(earlier, dict) and isinstance(piece, dict):
        return earlier | {name: _merged(earlier.get(name), item) for name, item in piece.items()}
    joins = isinstance(earlier, str | list) and type(earlier) is type(piece)
    return earlier + piece if joins else piece


def _complete(block: Block) -> dict[str, Any]:
    """Return a block of no known kind as the whole reply would have it."""
    text = "".join(block.pieces)
    use = block.value.get("toolUse")
    if not text or not isinstance(use, dict):
        return block.value
    return {**block.value, "toolUse": {**use, "input": msgspec.json.decode(input_of(text))}}


def _join_redacted(pieces: Sequence[str]) -> str:
    """Return one blob that came in pieces, each in base64 of its own."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except binascii.Error:
        return "".join(pieces)


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
