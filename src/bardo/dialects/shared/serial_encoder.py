"""Encode a reply in a dialect whose blocks follow one another strictly, streamed or whole.

Text and thinking end when another block begins. While a tool call is open, the events of other blocks wait until it is complete. A whole
reply is written with the same writers, each block at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from bardo.dialects.shared.blocks import BlockWriter, Frames, Kind, ReplyValues, RunEncoder
from bardo.dialects.shared.json_values import INVALID_JSON, JsonObject, is_object
from bardo.dialects.shared.losses import with_wrapped
from bardo.dialects.shared.states import EMPTY, PendingState, SignedBlocks
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.errors import BardoError
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.runs import texts_of

BlockEvent = (
    ThinkStart
    | ThinkChunk
    | ThinkEnd
    | ContentChunk
    | RefusalChunk
    | ToolCallStart
    | ToolCallChunk
    | ToolCallEnd
    | OpaqueState
    | BlockFields
    | UnknownContent
)


Writer = TypeVar("Writer", bound=BlockWriter)
FramesOf = TypeVar("FramesOf", bound=Frames)


class SerialEncoder(ReplyValues, RunEncoder, Generic[Writer, FramesOf]):
    """Encode one streamed reply. `name` is the dialect's name: fields of other dialects are left out.

    `signed_blocks` hold opaque state of a block that has ended; a dialect with another place for it overrides `add_late_state`.
    `hides_thinking`: the caller asked, in this dialect, for thinking without its text.
    """

    signed_blocks: SignedBlocks | None = None

    def __init__(self, request: Request, frames: FramesOf) -> None:
        super().__init__(request)
        policy = request.reasoning
        self.hides_thinking = request.dialect == self.name and policy is not None and policy.visible is False
        self.frames = frames
        self.closed: dict[int, Writer] = {}
        self.has_calls = False
        self._block: Writer | None = None
        # In order, and the first leaves first: in a plain dict each search for the first passes all that have left.
        self._waiting: OrderedDict[int, list[BlockEvent]] = OrderedDict()
        self._late: list[JsonObject] = []
        self._empty_text: int | None = None
        self._empty_states: list[Opaque] = []
        self._pending = PendingState(frames, self.put_before_text)
        self._begun = False
        self._over = False

    def write_start(self) -> None:
        """Write what stands before the first block."""
        raise NotImplementedError

    def write_end(self, *, calls: bool) -> None:
        """Write what stands after the last block. `calls`: the reply has tool calls."""
        raise NotImplementedError

    def write_error(self, error: BardoError) -> None:
        """Write what ends a reply that failed."""
        raise NotImplementedError

    def open_block(self, number: int, kind: Kind) -> Writer:
        """Return the writer of a new block."""
        raise NotImplementedError

    def put_before_text(self, block: JsonObject) -> bool:
        """Put a block before the last one of a whole reply; False where that is no text."""
        return False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames of one event."""
        block = self._block
        if (
            block is not None
            and block.repeats
            and item.__class__ is block.chunk
            and item.block == block.number  # type: ignore[union-attr]
            and not item.choice  # type: ignore[union-attr]
        ):
            kind = type(item)
            if kind is ToolCallChunk:
                return (block.frame(item.arguments),)  # type: ignore[union-attr]
            if kind is not ThinkChunk or item.part == block.part:  # type: ignore[union-attr]
                return (block.frame(item.text),)  # type: ignore[union-attr]
        if not self._over:
            self.take(item)
        return self.frames.take()

    def go_on(self, first: Event, further: Sequence[Event]) -> Sequence[bytes] | None:
        """Return the frames of pieces that go on with the open block: thinking that was just written is of the same part."""
        block = self._block
        if block is None or not block.repeats or not block.goes_on_with(first):
            return None
        return [*map(block.frame, texts_of(further))]

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        if self._over:
            return ()
        self._over = True
        self.begin()
        if self._empty_text is not None or self._empty_states:
            self._end_empty_text()
        if self._block is not None or self._waiting or self._late:
            self.drain()
        self.extension = self._pending.end(self.extension)
        self.write_end(calls=self.has_calls)
        return self.frames.take()

    def begin(self) -> None:
        """Write the start of the reply, once."""
        if not self._begun:
            self._begun = True
            self.write_start()

    def drain(self, *, broken: bool = False) -> None:
        """End the open block, and write all that waited for it. `broken`: the reply failed, and no call is written any more."""
        if broken:
            waiting = self._waiting.items()
            self._waiting = OrderedDict(
                (number, held) for number, held in waiting if ToolCallStart not in map(type, held)
            )
        self._leave_block()
        while self._waiting:
            self._replay()
            self._leave_block()

    def _leave_block(self) -> None:
        """End the open block. A call that is still open is left without an end."""
        block = self._block
        if block is not None and block.kind == "tool_call":
            self._block = None
            block.abandon()
        self.close_block()

    def close_block(self) -> None:
        """End the open block."""
        block, self._block = self._block, None
        if block is not None:
            block.end()
            self.closed[block.number] = block
            self.has_calls = self.has_calls or block.kind == "tool_call"
            if self.signed_blocks is not None:
                self._pending.close(block, self.signed_blocks)
        late, self._late = self._late, []
        self._pending.hold(late)

    def interrupt(self) -> None:
        """Have the next piece of the open block written with what stands beside it."""
        if self._block is not None:
            self._block.repeats = False

    def block_of(self, number: int, kind: Kind) -> Writer:
        """Return the open block, which becomes `number` if it was another."""
        block = self._block
        if block is None or block.number != number or block.kind != kind:
            states = self._end_empty_text(number)
            self.close_block()
            self._pending.write()
            block = self._block = self.open_block(number, kind)
            for state in states:
                block.add_state(state)
        return block

    def _end_empty_text(self, number: int | None = None) -> list[Opaque]:
        """Write the text that has said nothing so far, or its state; return the state of block `number`, which now says something."""
        empty, self._empty_text = self._empty_text, None
        states, self._empty_states = self._empty_states, []
        if empty is None or empty == number:
            return states
        if states and self.signed_blocks is not None:
            self._late.append(self.signed_blocks.carrier(tuple(states), EMPTY))
        else:
            self.block_of(empty, "text").piece("")
        return []

    def open_or_closed(self, number: int) -> Writer | None:
        """Return the block `number` while it is open and after its end, or None if there was none."""
        if self._block is not None and self._block.number == number:
            return self._block
        return self.closed.get(number)

    def take(self, item: Event) -> None:
        """Have the event written, now or when the open tool call has ended."""
        if item.__class__ in _TAKE:
            if not item.choice:  # type: ignore[union-attr]
                self.begin()
                self._take_or_hold(item)  # type: ignore[arg-type]
        elif item.__class__ is Failed:
            self.fail(item.error)
        else:
            self.take_value(item)

    def fail(self, error: BardoError) -> None:
        """Write what waited, no call among it, leave the broken block open, and say what happened."""
        self._over = True
        if self._waiting:
            self.drain(broken=True)
        self._block = None
        self.write_error(error)

    def _take_or_hold(self, item: BlockEvent) -> None:
        block = self._block
        if block is not None and block.kind == "tool_call" and item.block != block.number:
            self._waiting.setdefault(item.block, []).append(item)
        else:
            _TAKE[type(item)](self, item)

    def _replay(self) -> None:
        """Write the blocks that waited, until one of them is an open tool call again."""
        while self._waiting and (self._block is None or self._block.kind != "tool_call"):
            for item in self._waiting.popitem(last=False)[1]:
                self._take_or_hold(item)

    def kind_of_thinking(self, number: int, style: str = "") -> Kind:
        """Return what kind of block thinking is. `style` is its format, which is known where the block begins."""
        return "thinking"

    def _take_think_start(self, item: ThinkStart) -> None:
        self.block_of(item.block, self.kind_of_thinking(item.block, item.format))

    def _take_think(self, item: ThinkChunk) -> None:
        self.write_thinking(self.block_of(item.block, self.kind_of_thinking(item.block)), item.text, item.part)

    def write_thinking(self, block: Writer, text: str, part: int | None) -> None:
        """Write a piece of thinking into its block. The parts of a summary are paragraphs of one text."""
        gap = "\n\n" if block.begun and part != block.part else ""
        block.part = part
        if not block.hidden:
            block.piece(gap + text)

    def _take_think_end(self, item: ThinkEnd) -> None:
        """State may still follow, so the block stays open until the next begins."""

    def _take_text(self, item: ContentChunk | RefusalChunk) -> None:
        block = self._block
        if not item.text and self.signed_blocks is not None and block is not None and block.kind == "text":
            if item.block != block.number:
                # It may only carry state: then the text before it stays open, for what belongs to that and is still to come.
                self._empty_states = self._end_empty_text(item.block)
                self._empty_text = item.block
            return
        self.block_of(item.block, "text").piece(item.text)

    def _take_call_start(self, item: ToolCallStart) -> None:
        self.block_of(item.block, "tool_call").name_call(item.id, item.name)

    def _take_call(self, item: ToolCallChunk) -> None:
        if item.block not in self.closed:
            self.block_of(item.block, "tool_call").piece(item.arguments)

    def _take_call_end(self, item: ToolCallEnd) -> None:
        if self._block is not None and self._block.number == item.block:
            self.close_block()
            self._replay()

    def _take_state(self, item: OpaqueState) -> None:
        if self._block is not None and self._block.number == item.block:
            self._block.add_state(item.opaque)
        elif item.block == self._empty_text:
            self._empty_states.append(item.opaque)
        else:
            self.add_late_state(item)

    def add_late_state(self, item: OpaqueState) -> None:
        """Keep opaque state of a block that is not open until no block is."""
        assert self.signed_blocks is not None
        self._late.extend(self.signed_blocks.late_blocks(self.closed.get(item.block), item.opaque))
        if self._block is None:
            self.close_block()

    def _take_fields(self, item: BlockFields) -> None:
        if item.dialect == self.name:
            self.add_block_fields(item)

    def add_block_fields(self, item: BlockFields) -> None:
        """Write fields of a block; a block that is not open begins as text."""
        block = self._block
        if block is None or block.number != item.block:
            block = self.block_of(item.block, "text")
        block.add_fields(item.fields)

    def _take_unknown(self, item: UnknownContent) -> None:
        if item.dialect == self.name:
            self._end_empty_text()
            self.close_block()
            self._pending.write()
            self.frames.write_block(item.value)


_TAKE: dict[type, Callable[[SerialEncoder[Any, Any], Any], None]] = {
    ThinkStart: SerialEncoder._take_think_start,
    ThinkChunk: SerialEncoder._take_think,
    ThinkEnd: SerialEncoder._take_think_end,
    ContentChunk: SerialEncoder._take_text,
    RefusalChunk: SerialEncoder._take_text,
    ToolCallStart: SerialEncoder._take_call_start,
    ToolCallChunk: SerialEncoder._take_call,
    ToolCallEnd: SerialEncoder._take_call_end,
    OpaqueState: SerialEncoder._take_state,
    BlockFields: SerialEncoder._take_fields,
    UnknownContent: SerialEncoder._take_unknown,
}


_Encoder = SerialEncoder[Any, Any]


def write_response(encoder: _Encoder, response: Response, *, wraps: str = "", key: str = INVALID_JSON) -> None:
    """Have an encoder write a whole reply into the collector that it has for frames; alternatives are left out.

    `wraps` names the field in which the dialect must have an object. Arguments that are none stand under `key` of one, which is reported.
    """
    encoder.usage = response.usage
    encoder.take_start(ReplyStart(id=response.id, model=response.model, created=response.created))
    for carried, choice in ((response.carried, None), (response.choice_carried, 0)):
        if carried is not None and carried.dialect == encoder.name:
            encoder.take_reply_fields(ReplyFields(carried.dialect, carried.fields, choice))
    encoder.begin()
    write_blocks(encoder, response.blocks)
    encoder.finish_event = response.finish
    encoder.extension = _with_wrapped(response, wraps, key) if wraps else response.bardo
    encoder.finish()


def _with_wrapped(response: Response, wraps: str, key: str) -> JsonObject:
    calls = [block for block in response.blocks if type(block) is ToolCallBlock and block.complete]
    if not calls:
        return response.bardo
    wrapped = [call for call in calls if not has_no_arguments(call.arguments) and not is_object(call.arguments)]
    return with_wrapped(response.bardo, wrapped, what=wraps, key=key) if wrapped else response.bardo


def write_blocks(encoder: _Encoder, blocks: Sequence[ReplyBlock]) -> None:
    """Have an encoder write blocks into its collector."""
    for number, block in enumerate(blocks):
        _WRITE[type(block)](encoder, number, block)


# Within a block its fields come first, then the id of its thinking, its text, and its other opaque state. Opaque state of a text
# comes before the text, as Gemini sends it.


def _write_text(encoder: _Encoder, number: int, block: TextBlock) -> None:
    fields = fields_for(encoder.name, block.carried)
    if not fields and not block.opaque:
        encoder.frames.text(block.text)
        return
    writer = encoder.block_of(number, "text")
    _write_fields(writer, fields)
    if block.opaque:
        # The block begins before its state.
        writer.piece("")
        for state in block.opaque:
            writer.add_state(state)
    writer.piece(block.text)
    encoder.close_block()


def _write_thinking(encoder: _Encoder, number: int, block: ReasoningBlock) -> None:
    fields, kind = fields_for(encoder.name, block.carried), encoder.kind_of_thinking(number, block.format)
    parts = (block.text, *block.summary) if block.text else block.summary
    if kind == "thinking" and not fields and not block.opaque and all(parts) and not encoder.hides_thinking:
        encoder.frames.thinking(parts)
        return
    writer = encoder.block_of(number, kind)
    _write_fields(writer, fields)
    for state in block.opaque:
        if state.kind == "id":
            writer.add_state(state)
    if block.text:
        encoder.write_thinking(writer, block.text, None)
    for part, text in enumerate(block.summary):
        encoder.write_thinking(writer, text, part)
    for state in block.opaque:
        if state.kind != "id":
            writer.add_state(state)
    encoder.close_block()


def _write_call(encoder: _Encoder, number: int, block: ToolCallBlock) -> None:
    if not block.complete:
        return
    encoder.has_calls = True
    fields = fields_for(encoder.name, block.carried)
    if not fields and not block.opaque:
        encoder.frames.call(block)
        return
    writer = encoder.block_of(number, "tool_call")
    writer.name_call(block.id, block.name)
    _write_fields(writer, fields)
    writer.piece(block.arguments)
    for state in block.opaque:
        writer.add_state(state)
    encoder.close_block()


def _write_refusal(encoder: _Encoder, number: int, block: RefusalBlock) -> None:
    fields = fields_for(encoder.name, block.carried)
    if not fields:
        encoder.frames.text(block.text)
        return
    writer = encoder.block_of(number, "text")
    writer.add_fields(fields)
    writer.piece(block.text)
    encoder.close_block()


def _write_unknown(encoder: _Encoder, number: int, block: UnknownBlock) -> None:
    if block.dialect == encoder.name:
        encoder.frames.write_block(block.value)


def _write_fields(writer: BlockWriter, fields: JsonObject) -> None:
    if fields:
        writer.add_fields(fields)


_WRITE: dict[type, Callable[[_Encoder, int, Any], None]] = {
    TextBlock: _write_text,
    ReasoningBlock: _write_thinking,
    ToolCallBlock: _write_call,
    RefusalBlock: _write_refusal,
    UnknownBlock: _write_unknown,
}
