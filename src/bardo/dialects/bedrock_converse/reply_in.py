"""Bedrock's Converse replies to events.

A stream is `messageStart`, blocks (`contentBlockStart` where it is a tool call, `contentBlockDelta`s, `contentBlockStop`), `messageStop`
with the stop reason, `metadata` with the totals. A whole reply is the same said at once. InvokeModel streams Nova's replies as the same
events, each an object under its event's name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects.bedrock_converse import wire
from bardo.dialects.bedrock_converse.errors import is_refusal, refusal, stream_refusal
from bardo.dialects.bedrock_converse.usage import decode_usage
from bardo.dialects.bedrock_converse.wire import (
    CALL,
    FIELD,
    NAME,
    PADDING,
    REASONS,
    SIGNED_BLOCKS,
    THOUGHT,
    is_hosted,
    unknown_fields,
)
from bardo.dialects.shared.blocks import OpenBlock, add_states
from bardo.dialects.shared.bounded_json import MAX_DEPTH
from bardo.dialects.shared.json_values import (
    INVALID_JSON,
    JsonObject,
    WrongShape,
    arguments_of,
    decode_leniently,
    excerpt,
    input_of,
    want,
    without,
    written_arguments,
)
from bardo.dialects.shared.states import EMPTY, TextStates, give
from bardo.dialects.shared.structs import as_it_came, carried_fields, read
from bardo.streams.frames import Frame
from bardo.values.errors import BrokenStream, InvalidRequest, MalformedReply, ProviderError
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

_EVENTS: dict[str, Any] = {
    "contentBlockDelta": wire.ContentBlockDelta,
    "contentBlockStart": wire.ContentBlockStart,
    "contentBlockStop": wire.ContentBlockStop,
    "messageStart": wire.MessageStart,
    "messageStop": wire.MessageStop,
    "metadata": wire.Metadata,
}
_DECODE_EVENT = {name: msgspec.json.Decoder(kind).decode for name, kind in _EVENTS.items()}
_NO_ARGUMENTS: Sequence[str] = ()
_MEMBERS = frozenset(("text", FIELD, "toolUse", "citation"))
_decode_reply = msgspec.json.Decoder(wire.Reply).decode
_IN_A_REPLY = MAX_DEPTH - 6
"""How many levels the input of a call may have inside the objects around it."""
_WHOLE: JsonObject = {"output": {"message": {"role": None, "content": None}}, "stopReason": None, "usage": None}


class Decoder:
    """One reply, whole or streamed. `join_text` is for Nova by InvokeModel, which cuts one text into many blocks."""

    def __init__(self, row: ProviderRow, *, join_text: bool = False) -> None:
        self._row = row
        self._content = _Content(join_text=join_text)
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
        event, arguments = item.event, _NO_ARGUMENTS
        try:
            if event:
                frame = _DECODE_EVENT[event](data)
            else:
                frame = _decode_reply(data)
                arguments = [_arguments_of_plain(block) for block in frame.output.message.content]
        except (KeyError, msgspec.MsgspecError, UnicodeError, RecursionError, WrongShape):
            return self._feed_leniently(item, data, [])
        if frame.__class__ is wire.ContentBlockDelta:
            block = self._open_blocks.get(frame.content_block_index)
            if block is not None and (chunk := _plain_chunk(block, frame.delta)) is not None:
                return [chunk]
            if _members(frame.delta) > 1:
                return self._feed_leniently(item, data, [])
        out: list[Event] = []
        try:
            if frame.__class__ is wire.Reply:
                self._whole(frame, arguments, out)
            else:
                self._read(frame, out)
        except WrongShape as problem:
            self._malformed(out, str(problem))
        return out

    def finish(self) -> list[Event]:
        """Close the reply. It is complete with `messageStop`; without, it is broken."""
        if self._over or self._stopped:
            return []
        what = "before its end" if self._begun else "before it began"
        return self._fail([], BrokenStream(f"the reply stopped {what}", provider=self._row.id))

    def _read(self, event: object, out: list[Event]) -> None:
        """Add what an event of a stream says. Raises WrongShape for input of a block that is no call."""
        content = self._content
        match event:
            case wire.ContentBlockDelta():
                content.add(event.content_block_index, event.delta, carried_fields(event) or {}, out)
            case wire.ContentBlockStart():
                content.open(event.content_block_index, event.start or wire.BlockStart(), out)
                content.add_fields(event.content_block_index, carried_fields(event) or {}, out)
            case wire.ContentBlockStop():
                content.add_fields(event.content_block_index, carried_fields(event) or {}, out)
                content.close(event.content_block_index, out)
            case wire.MessageStart():
                self._begun = True
                out.append(ReplyStart())
                self._carry(carried_fields(event), out)
            case wire.MessageStop():
                self._stop(event.stop_reason, event.additionalModelResponseFields, out)
                self._carry(carried_fields(event), out)
            case wire.Metadata():
                self._counted = True
                self._count(event.usage, out)
                self._carry(carried_fields(event), out)

    def _whole(self, reply: wire.Reply, arguments: Sequence[str], out: list[Event]) -> None:
        self._begun = self._stopped = True
        out.append(ReplyStart())
        for place, block in enumerate(reply.output.message.content):
            self._content.whole(place, block, arguments[place], {}, out)
        self._count(reply.usage, out)
        self._carry(carried_fields(reply), out)
        self._stop(reply.stop_reason, reply.additionalModelResponseFields, out)

    def _stop(self, reason: object, additional: object, out: list[Event]) -> None:
        self._content.close_all(out)
        self._stopped = True
        word = "" if reason is None else want(reason, str, "stopReason")
        if not word:
            return
        if word not in REASONS:
            self._carry({"stopReason": word}, out)
        # The sequence that stopped the model, which Claude tells where the caller asked for its field.
        sequence = additional.get("stop_sequence") if isinstance(additional, dict) else None
        out.append(Finish(REASONS.get(word, "unknown"), word, sequence if isinstance(sequence, str) else None))

    def _count(self, usage: JsonObject | None, out: list[Event]) -> None:
        if usage is None:
            return
        counted, doubts = decode_usage(usage)
        out.append(UsageUpdate(counted))
        out.extend(Degraded(doubt) for doubt in doubts)

    @staticmethod
    def _carry(fields: JsonObject | None, out: list[Event]) -> None:
        if fields:
            out.append(ReplyFields(NAME, fields))

    def _feed_leniently(self, item: Frame, data: bytes, out: list[Event]) -> list[Event]:
        """Read a frame that is not quite one, an error, or a payload of InvokeModel."""
        refused = stream_refusal(item, self._row.id)
        if refused is not None:
            return self._fail(out, refused)
        try:
            payload = decode_leniently(data, out)
        except (ValueError, RecursionError):
            # What was left of a message when the stream ended says nothing.
            return [] if not item.complete else self._malformed(out, f"no JSON: {excerpt(data, 80)}")
        try:
            self._read_leniently(item.event, want(payload, dict, "the frame"), data, out)
        except WrongShape as problem:
            return self._malformed(out, str(problem))
        return out

    def _read_leniently(self, event: str, payload: JsonObject, data: bytes, out: list[Event]) -> None:
        if event:
            self._event(event, payload, out)
        elif "output" in payload:
            self._whole_leniently(payload, data, out)
        elif payload.keys() & _EVENTS:
            for name, value in payload.items():
                if name in _EVENTS:
                    self._event(name, want(value, dict, name), out)
                else:
                    self._carry({name: value}, out)
        elif payload.get("usage"):
            # A body without an output holds nothing, however it says that it ended; it was billed all the same.
            self._whole_leniently({**without(payload, "stopReason"), "output": None}, data, out)
        elif is_refusal(payload):
            self._fail(out, refusal(payload, provider=self._row.id))
        else:
            raise WrongShape(f"neither a message nor an event: {excerpt(data, 80)}")

    def _event(self, name: str, payload: JsonObject, out: list[Event]) -> None:
        kind, delta = _EVENTS.get(name), payload.get("delta")
        if kind is None:
            self._carry({name: [without(payload, PADDING)]}, out)
        elif kind is wire.ContentBlockDelta and isinstance(delta, dict) and len(delta.keys() & _MEMBERS) > 1:
            # A piece is of one kind; where it is of several, each is read in its order.
            event = _second_look({**payload, "delta": {}}, wire.ContentBlockDelta, "")
            for member, value in without(delta).items():
                if member in _MEMBERS:
                    piece = _second_look({member: value}, wire.BlockDelta, "")
                    self._content.add(event.content_block_index, piece, {}, out)
                else:
                    self._content.add_fields(event.content_block_index, {member: [value]}, out)
            self._content.add_fields(event.content_block_index, carried_fields(event) or {}, out)
        else:
            self._read(_second_look(payload, kind, ""), out)

    def _whole_leniently(self, payload: JsonObject, data: bytes, out: list[Event]) -> None:
        output = want(payload["output"] or {}, dict, "output")
        message = want(output.get("message") or {}, dict, "output.message")
        blocks = want(message.get("content") or [], list, "content")
        self._begun = self._stopped = True
        out.append(ReplyStart())
        for place, arguments in enumerate(_arguments(data, blocks)):
            raw = want(blocks[place], dict, f"content[{place}]")
            self._content.whole(place, _whole_block(raw), arguments, raw, out)
        usage = payload.get("usage")
        self._count(None if usage is None else want(usage, dict, "usage"), out)
        self._carry(unknown_fields(payload, _WHOLE), out)
        self._stop(payload.get("stopReason"), payload.get("additionalModelResponseFields"), out)

    def _malformed(self, out: list[Event], problem: str) -> list[Event]:
        return self._fail(out, MalformedReply(f"the reply is not Bedrock's: {problem}", provider=self._row.id))

    def _fail(self, out: list[Event], error: ProviderError) -> list[Event]:
        self._content.flush(out)
        self._over = True
        out.append(Failed(error))
        return out


def _plain_chunk(block: Block, delta: wire.BlockDelta) -> Event | None:
    """Return the event of a piece that goes on with an open block, as nearly all do; None for any other."""
    text, thought, use = delta.text, delta.reasoning_content, delta.tool_use
    if delta.citation is not None:
        return None
    if text is not None:
        return ContentChunk(block.number, text) if thought is None and use is None and block.kind == "text" else None
    if thought is not None:
        if block.kind != "think" or use is not None or thought.text is None:
            return None
        plain = thought.signature is None and thought.redacted_content is None
        return ThinkChunk(block.number, thought.text) if plain else None
    if use is None or block.kind != "call" or use.input.__class__ is not str:
        return None
    block.has_content = block.has_content or use.input != ""
    return ToolCallChunk(block.number, use.input)


W = TypeVar("W", bound=wire.Shape)


def _second_look(value: JsonObject, kind: type[W], at: str) -> W:
    """Return a struct, with what it has no names for beside it. Raises WrongShape where a field has a wrong type."""
    try:
        return read(value, kind, at)
    except InvalidRequest as problem:
        name = (problem.param or "the frame").rpartition(".")[2].partition("[")[0]
        _, instead, given = problem.message.rpartition(", not ")
        raise WrongShape(f"{name} is {given if instead else 'null'}") from problem


def _whole_block(raw: JsonObject) -> wire.WrittenBlock:
    """Return a block by the one member that says of which kind it is. Raises WrongShape."""
    member = next((name for name in ("text", FIELD, "toolUse", "citationsContent") if raw.get(name) is not None), "")
    value = raw.get(member)
    if member == "toolUse" and isinstance(value, dict):
        # The arguments are read as they were written.
        value = {name: field for name, field in value.items() if name != "input"}
        if is_hosted(value.get("type"), "tool_use"):
            member = ""
    return _second_look({member: value}, wire.WrittenBlock, "") if member else wire.WrittenBlock()


def _members(delta: wire.BlockDelta) -> int:
    """Return of how many kinds a piece is."""
    return 4 - (delta.text, delta.reasoning_content, delta.tool_use, delta.citation).count(None)


def _arguments_of_plain(block: wire.WrittenBlock) -> str:
    """Return the arguments of a block as they were written, "" where it is no call. Raises WrongShape for one that holds more."""
    use = block.tool_use
    members = (block.text, block.reasoning_content, use)
    if members.count(None) != 2 or (use is not None and use.type is not None):
        raise WrongShape("a block of no kind that is read at first sight")
    return "" if use is None else written_arguments(use.input, _IN_A_REPLY)


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


def _arguments(data: bytes, blocks: list[JsonObject]) -> list[str]:
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


def _input_of(block: object) -> object:
    use = block.get("toolUse") if isinstance(block, dict) else None
    return use.get("input") if isinstance(use, dict) else None


def _written(value: object, raw: msgspec.Raw) -> str:
    # Text that is no JSON object stands in a string, or where bardo wrapped it.
    if value is None or isinstance(value, str):
        return value or ""
    wrapped = isinstance(value, dict) and INVALID_JSON in value
    return arguments_of(value) if wrapped or not bytes(raw) else bytes(raw).decode("utf-8", "replace")


Kind = Literal["text", "think", "redacted", "call", "other"]
Block: TypeAlias = OpenBlock[Kind]


class _Content:
    """The blocks of one reply: Bedrock's index and pieces to our numbered events. `open_blocks` holds those not yet closed.

    Only tool calls begin with an event of their own; text and reasoning begin with their first piece. The unknown fields of a block are
    carried in the shape they stood in. With `join_text`, text that follows text continues it: Nova streamed by InvokeModel gives every
    piece an index of its own.
    """

    def __init__(self, *, join_text: bool = False) -> None:
        self.open_blocks: dict[int, Block] = {}
        self._join_text = join_text
        self._count = 0
        self._calls: dict[str, int] = {}
        self._last_text: int | None = None
        self._states_of_texts = TextStates()
        self._last: Kind | None = None

    def whole(self, index: int, block: wire.WrittenBlock, arguments: str, raw: JsonObject, out: list[Event]) -> None:
        """Take a block that is complete: `arguments` are those of a call, `raw` is what holds more than its one member."""
        self._join_text = False
        use = block.tool_use
        if block.text is not None:
            self._text(index, block.text, without(raw, "text"), out)
        elif block.reasoning_content is not None:
            self._whole_thought(index, block.reasoning_content, out)
            self.add_fields(index, unknown_fields(raw, THOUGHT), out)
        elif use is not None and not is_hosted(use.type, "tool_use"):
            self._open_call(index, use, out)
            self.add_fields(index, unknown_fields(raw, CALL), out)
            self.open_blocks[index].has_content = True
            out.append(ToolCallChunk(self.open_blocks[index].number, arguments or "{}"))
        elif block.citations_content is not None and raw:
            self._cited(index, raw, out)
        else:
            self._begin(index, "other").value = dict(raw)
        self.close(index, out)

    def open(self, index: int, start: wire.BlockStart, out: list[Event]) -> None:
        """Begin a block that says what it is."""
        self.close(index, out)
        use = start.tool_use
        if use is None or is_hosted(use.type, "tool_use"):
            self._begin(index, "other").value = as_it_came(start)
            return
        self._open_call(index, use, out)
        if start.others is not None or use.others is not None or use.type is not None:
            self.add_fields(index, unknown_fields(as_it_came(start), CALL), out)

    def add(self, index: int, delta: wire.BlockDelta, beside: JsonObject, out: list[Event]) -> None:
        """Add a piece, which may begin a block, and what stood beside it. Raises WrongShape."""
        block = self.open_blocks.get(index)
        if beside and delta == wire.BlockDelta(text=""):
            self._text(index, "", beside, out)
            return
        fields = None if delta.others is None else carried_fields(delta)
        if block is None and fields and delta == wire.BlockDelta(others=delta.others):
            block = self._begin(index, "other")
        if block is not None and block.kind == "other":
            _grow(block, without(as_it_came(delta)))
            self.add_fields(index, beside, out)
            return
        if delta.text is not None:
            self._text(index, delta.text, {}, out)
        if delta.reasoning_content is not None:
            self._read_reasoning(index, delta.reasoning_content, out)
        if delta.tool_use is not None:
            self._add_input(index, delta.tool_use.input, out)
        if delta.citation is not None:
            self._text(index, "", {"citations": [delta.citation]}, out)
        for name, value in (fields or {}).items():
            self.add_fields(index, {name: [value]}, out)
        self.add_fields(index, beside, out)

    def add_fields(self, index: int, fields: JsonObject, out: list[Event]) -> None:
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
            self._count = self._states_of_texts.close_text(self._count, out)
        else:
            self._give(block, out)

    def close_all(self, out: list[Event]) -> None:
        """End all blocks that are open."""
        for index in sorted(self.open_blocks):
            self.close(index, out)

    def flush(self, out: list[Event]) -> None:
        """Return the held parts of unfinished blocks, without saying that they are finished: no call of the provider's tools."""
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

    def _text(self, index: int, text: str, fields: JsonObject, out: list[Event]) -> None:
        earlier = self.open_blocks.get(index)
        if not text and not fields and (earlier is None or earlier.kind != "text"):
            # gpt-oss begins with a block of no text, which says nothing.
            return
        if self._join_text and self._last == "text" and earlier is None and self._last_text is not None:
            block = self.open_blocks[index] = OpenBlock(self._last_text, "text")
        else:
            block = self._block_at(index, "text", out)
        self._last_text = block.number
        self._states_of_texts.open_text(block.number, out)
        if text or not fields:
            out.append(ContentChunk(block.number, text))
        self.add_fields(index, fields, out)

    def _cited(self, index: int, raw: JsonObject, out: list[Event]) -> None:
        cited = raw["citationsContent"]
        pieces = cited.get("content") or []
        text = "".join([piece.get("text") or "" for piece in pieces])
        fields = {"citations": [], **without(cited, "content")}
        if pieces != [{"text": text}]:
            fields["content"] = pieces
        if more := without(raw, "citationsContent"):
            fields["block"] = more
        self._text(index, text, fields, out)

    def _whole_thought(self, index: int, thought: wire.ReasoningContent, out: list[Event]) -> None:
        spoken = thought.reasoning_text
        if spoken is not None or thought.redacted_content is None:
            spoken = spoken or wire.ReasoningText()
            self._read_reasoning(index, wire.ReasoningDelta(text=spoken.text, signature=spoken.signature), out)
        if thought.redacted_content is not None:
            self._read_reasoning(index, wire.ReasoningDelta(redacted_content=thought.redacted_content), out)

    def _read_reasoning(self, index: int, piece: wire.ReasoningDelta, out: list[Event]) -> None:
        if piece.redacted_content:
            self._block_at(index, "redacted", out).pieces.append(piece.redacted_content)
            return
        earlier = self.open_blocks.get(index)
        block = self._block_at(index, "think", out)
        if block is not earlier:
            out.append(ThinkStart(block.number, FIELD))
        if piece.text:
            out.append(ThinkChunk(block.number, piece.text))
        if piece.signature:
            add_states(block.number, SIGNED_BLOCKS.decode_signature(piece.signature), out)
        if piece.others is not None and (fields := carried_fields(piece)):
            self.add_fields(index, {FIELD: fields}, out)

    def _open_call(self, index: int, use: wire.WrittenToolUse | wire.ToolUseStart, out: list[Event]) -> None:
        block = self._begin(index, "call")
        call = use.tool_use_id or ""
        self._calls[call] = block.number
        out.append(ToolCallStart(block.number, call, use.name or ""))

    def _add_input(self, index: int, value: object, out: list[Event]) -> None:
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
        redacted = SIGNED_BLOCKS.decode_redacted(_join_redacted(block.pieces))
        if self._states_of_texts.take(redacted):
            return
        if redacted.owner == EMPTY:
            self._last_text = block.number
            give(block.number, redacted.states, out)
            return
        target = redacted.number_of_owner(self._last_text, self._calls)
        if target is not None:
            add_states(target, redacted.states, out)
            return
        out.append(ThinkStart(block.number, FIELD))
        add_states(block.number, redacted.states, out)
        if block.value:
            out.append(BlockFields(block.number, NAME, block.value))
        out.append(ThinkEnd(block.number))


def _grow(block: Block, delta: JsonObject) -> None:
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


def _complete(block: Block) -> JsonObject:
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
