"""Events to the stream of a Responses client, in the order OpenAI's own servers keep, and whole replies.

What bardo itself has to say stands in the last frame, under `bardo` in the finished response. One message or reasoning item is open at a
time; calls stay open beside it until they end, since their pieces may alternate. An item is announced when there is something to say of it,
so that its id and fields, which follow its start, stand in the announcement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from bardo.dialects.openai_responses.envelope import Envelope
from bardo.dialects.openai_responses.errors import error_object
from bardo.dialects.openai_responses.functions import FunctionNames
from bardo.dialects.openai_responses.items_out import (
    ItemIds,
    ItemStream,
    MergedFields,
    WrittenCall,
    WrittenCarrier,
    WrittenItem,
    WrittenMessage,
    WrittenOther,
    WrittenPart,
    WrittenReasoning,
    call_for,
    joins,
    message_for,
    target_of,
)
from bardo.dialects.openai_responses.wire import FORMAT, NAME, asks_summary
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.states import with_late_state
from bardo.streams.sse import KEEP_ALIVE
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Failed,
    OpaqueState,
    RefusalChunk,
    ReplyStart,
    ThinkChunk,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)
from bardo.values.fold import OpaqueStates
from bardo.values.request import Request
from bardo.values.response import Response

Unit = WrittenPart | WrittenReasoning | WrittenCall
_THOUGHTS = frozenset({"reasoning_text", "summary_text"})


class _EarlyParts:
    """The pieces of a block that came before the block did."""

    __slots__ = ("fields", "states")

    def __init__(self) -> None:
        self.fields: JsonObject = {}
        self.states: list[Opaque] = []

    def learn(self, fields: JsonObject) -> None:
        """Take fields of this dialect."""
        if not isinstance(self.fields, MergedFields):
            self.fields = MergedFields(self.fields)
        self.fields.merge(fields)


class BlockStream:
    """Writes the blocks of one reply. The dialect has one choice; pieces of others are left out. `names` are the client's tools."""

    def __init__(self, stream: ItemStream, names: FunctionNames, *, as_summary: bool = False) -> None:
        self._stream = stream
        self._names = names
        self._as_summary = as_summary
        self._live: dict[int, WrittenPart] = {}
        self._units: dict[int, Unit] = {}
        self._early: dict[int, _EarlyParts] = {}
        self._pending: tuple[int, Unit] | None = None
        self._current: WrittenItem | None = None
        self._ended: WrittenCall | None = None
        self._open_calls: dict[int, WrittenCall] = {}

    def settle(self, out: list[bytes]) -> None:
        """Announce what was waiting for something to say."""
        if self._pending is not None:
            (block, unit), self._pending = self._pending, None
            self._announce(block, unit, out)

    def close(self, status: str, out: list[bytes]) -> bool:
        """The reply is over: close everything, in order. A call that did not end is not closed: programs execute closed calls.

        State of a text that would follow its message is not written: clients look for the answer in the last item. Return whether there
        was any.
        """
        self._drop_empty_text()
        self.settle(out)
        self._close_ended(out)
        last = self._stream.items[-1] if self._stream.items else None
        if isinstance(last, WrittenMessage) and not last.closed:
            last.seal_states()
        unended = set(map(id, self._open_calls.values()))
        for item in self._stream.items:
            if id(item) not in unended:
                self._stream.close(item, status, out)
        for early in self._early.values():
            if early.states:
                self._stream.ride("text", early.states)
        ends_in_text = bool(self._stream.items) and isinstance(self._stream.items[-1], WrittenMessage)
        left_out = ends_in_text and self._stream.drop_riders("text")
        self._stream.write_riders(out)
        return left_out

    def _drop_empty_text(self) -> None:
        """Drop an empty text behind the last one of a message, and keep its state."""
        unit = self._pending[1] if self._pending is not None else None
        if isinstance(unit, WrittenPart) and unit.is_empty and isinstance(self._current, WrittenMessage):
            self._pending = None
            if unit.states and not self._current.has_states:
                self._current.seal_empty_text(list(unit.states))
            elif unit.states:
                self._stream.ride("text", list(unit.states))

    def take_content(self, event: ContentChunk) -> Sequence[bytes]:
        """Write answer text."""
        part = self._live.get(event.block)
        if part is not None and part.kind == "output_text" and not event.choice:
            return (self._stream.delta(part, event.text),)
        return self._text("output_text", event.block, event.text, event.choice)

    def take_refusal(self, event: RefusalChunk) -> Sequence[bytes]:
        """Write words of a refusal."""
        return self._text("refusal", event.block, event.text, event.choice)

    def take_thought(self, event: ThinkChunk) -> Sequence[bytes]:
        """Write thinking."""
        part = self._live.get(event.block)
        number = 0 if event.part is None and self._as_summary else event.part
        if part is not None and part.number == number and part.kind in _THOUGHTS and not event.choice:
            return (self._stream.delta(part, event.text),)
        return self._first_thought(event)

    def take_think_start(self, event: ThinkStart) -> Sequence[bytes]:
        """Begin a reasoning item. Its end is told when the next item begins, since state of it may still follow."""
        out: list[bytes] = []
        if not event.choice and not self._thinks(event.block):
            self._wait(event.block, self._new_reasoning(event.block), out)
            if event.format != FORMAT:
                # No id of its own will follow: the client learns at once that there is thinking.
                self.settle(out)
        return out

    def take_call(self, event: ToolCallStart) -> Sequence[bytes]:
        """Begin a call."""
        out: list[bytes] = []
        if not event.choice:
            early = self._early.pop(event.block, None)
            call = call_for(event.id, event.name, early.fields if early else {}, self._names)
            if early:
                call.states = OpaqueStates.of(early.states)
            self._wait(event.block, call, out)
            self._open_calls[event.block] = call
        return out

    def take_arguments(self, event: ToolCallChunk) -> Sequence[bytes]:
        """Write a piece of a call's arguments."""
        out: list[bytes] = []
        if event.choice:
            return out
        self.settle(out)
        part = self._live.get(event.block)
        if part is not None and isinstance(part.item, WrittenCall) and not part.closed:
            text = part.item.read(event.arguments)
            if text:
                out.append(self._stream.delta(part, text))
        return out

    def take_call_end(self, event: ToolCallEnd) -> Sequence[bytes]:
        """End a call. It is closed when something else follows, since state and fields of it may come until then."""
        out: list[bytes] = []
        unit = self._units.get(event.block)
        if isinstance(unit, WrittenCall) and not event.choice:
            self.settle(out)
            self._close_ended(out)
            self._ended = unit
            self._open_calls.pop(event.block, None)
        return out

    def take_opaque(self, event: OpaqueState) -> Sequence[bytes]:
        """Keep state for its item; what comes too late for that gets an item of its own."""
        out: list[bytes] = []
        unit = self._units.get(event.block)
        if event.choice:
            return out
        if unit is None:
            self._early.setdefault(event.block, _EarlyParts()).states.append(event.opaque)
        elif unit.over:
            self._stream.ride(target_of(unit), [event.opaque])
        else:
            unit.take(event.opaque)
            if isinstance(unit, WrittenReasoning) and event.opaque.kind == "id":
                self.settle(out)
        return out

    def take_fields(self, event: BlockFields) -> Sequence[bytes]:
        """Keep fields of this dialect for their block, and tell annotations at once."""
        out: list[bytes] = []
        if event.choice or event.dialect != NAME:
            return out
        unit = self._units.get(event.block)
        if unit is None:
            self._early.setdefault(event.block, _EarlyParts()).learn(event.fields)
            return out
        told = len(unit.fields.get("annotations") or ())
        unit.learn(event.fields)
        if isinstance(unit, WrittenPart) and unit.item is not None and not unit.closed:
            self._stream.annotate(unit, told, out)
        return out

    def take_unknown(self, event: UnknownContent) -> Sequence[bytes]:
        """Pass on an item of this dialect."""
        out: list[bytes] = []
        if event.choice or event.dialect != NAME or not isinstance(event.value, dict):
            return out
        self.settle(out)
        self._close_ended(out)
        self._turn(out)
        item = WrittenOther(event.value)
        self._stream.open(item, out)
        self._stream.close(item, "completed", out)
        return out

    def _text(self, kind: str, block: int, text: str, choice: int) -> Sequence[bytes]:
        out: list[bytes] = []
        if choice:
            return out
        unit = self._units.get(block)
        if not isinstance(unit, WrittenPart) or unit.closed or unit.kind != kind:
            early = self._early.pop(block, None)
            unit = WrittenPart(kind, early.fields if early else None)
            if early:
                unit.states = OpaqueStates.of(early.states)
            self._wait(block, unit, out)
        if text:
            self.settle(out)
            out.append(self._stream.delta(unit, text))
        return out

    def _first_thought(self, event: ThinkChunk) -> Sequence[bytes]:
        out: list[bytes] = []
        if event.choice:
            return out
        if not self._thinks(event.block):
            self._wait(event.block, self._new_reasoning(event.block), out)
        self.settle(out)
        if not event.text and event.part is None:
            # Thinking without text is no part, as in a whole reply.
            return out
        item = self._units[event.block]
        assert isinstance(item, WrittenReasoning)
        kind, number = item.place_of(event.part)
        part = item.find(kind, number)
        if part is None:
            part = WrittenPart(kind, number=number)
            part.plain = event.part is None
            self._stream.open_part(item, part, out)
        self._set_live(event.block, part, item)
        out.append(self._stream.delta(part, event.text))
        return out

    def _thinks(self, block: int) -> bool:
        unit = self._units.get(block)
        return isinstance(unit, WrittenReasoning) and not unit.closed

    def _new_reasoning(self, block: int) -> WrittenReasoning:
        early = self._early.pop(block, None)
        item = WrittenReasoning(early.fields if early else {}, as_summary=self._as_summary)
        for opaque in early.states if early else ():
            item.take(opaque)
        return item

    def _wait(self, block: int, unit: Unit, out: list[bytes]) -> None:
        self.settle(out)
        self._close_ended(out)
        self._live.pop(block, None)
        self._units[block] = unit
        self._pending = (block, unit)

    def _close_ended(self, out: list[bytes]) -> None:
        if self._ended is not None:
            ended, self._ended = self._ended, None
            self._stream.close(ended, "completed", out)

    def _announce(self, block: int, unit: Unit, out: list[bytes]) -> None:
        if isinstance(unit, WrittenPart):
            message = self._message_of(unit, out)
            self._stream.open_part(message, unit, out)
            self._stream.annotate(unit, 0, out)
            self._set_live(block, unit, message)
            return
        self._turn(out)
        self._stream.open(unit, out)
        if isinstance(unit, WrittenCall):
            self._live[block] = part = WrittenPart(unit.part_kind, {"name": unit.name})
            self._stream.open_part(unit, part, out)
        else:
            self._current = unit

    def _message_of(self, part: WrittenPart, out: list[bytes]) -> WrittenMessage:
        current = self._current
        if isinstance(current, WrittenMessage) and joins(current, part):
            self._forget(current)
            return current
        self._turn(out)
        self._current = message = message_for(part)
        self._stream.open(message, out)
        return message

    def _turn(self, out: list[bytes]) -> None:
        """The open message or reasoning item is over: something else begins."""
        if self._current is not None:
            closing, self._current = self._current, None
            self._forget(closing)
            self._stream.close(closing, "completed", out)
        self._stream.write_riders(out)

    def _forget(self, item: WrittenItem) -> None:
        blocks, item.blocks = item.blocks, set()
        for block in blocks:
            part = self._live.get(block)
            if part is not None and part.item is item:
                del self._live[block]

    def _set_live(self, block: int, part: WrittenPart, item: WrittenItem) -> None:
        self._live[block] = part
        item.blocks.add(block)


BLOCKS: dict[type[Event], Callable[[BlockStream, Any], Sequence[bytes]]] = {
    ThinkStart: BlockStream.take_think_start,
    ThinkChunk: BlockStream.take_thought,
    ContentChunk: BlockStream.take_content,
    RefusalChunk: BlockStream.take_refusal,
    ToolCallStart: BlockStream.take_call,
    ToolCallChunk: BlockStream.take_arguments,
    ToolCallEnd: BlockStream.take_call_end,
    OpaqueState: BlockStream.take_opaque,
    BlockFields: BlockStream.take_fields,
    UnknownContent: BlockStream.take_unknown,
}


class ReplyWriter:
    """Writes one streamed reply."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._envelope = Envelope(request)
        self._stream = ItemStream(ItemIds(lambda: self._envelope.id))
        self._blocks = BlockStream(self._stream, FunctionNames(request), as_summary=asks_summary(request))
        self._begun = self._over = False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Take one event."""
        take = BLOCKS.get(type(item))
        if take is None:
            return self._take(item)
        return take(self._blocks, item) if self._begun else [*self._begin(), *take(self._blocks, item)]

    def finish(self) -> Sequence[bytes]:
        """Close the open parts, and end the stream. After a failure there is nothing left to say."""
        if self._over:
            return ()
        self._over = True
        out = self._begin()
        if self._blocks.close(self._envelope.item_status, out):
            self._envelope.extension = with_late_state(self._envelope.extension)
        response = self._envelope.closing(self._stream.output())
        ending = response["status"] if response["status"] in ("incomplete", "failed") else "completed"
        self._stream.write(f"response.{ending}", {"response": response}, out)
        return out

    def _take(self, event: Event) -> Sequence[bytes]:
        if type(event) is Failed:
            return self._fail(event)
        self._envelope.take(event)
        return self._begin() if type(event) is ReplyStart else ()

    def _begin(self) -> list[bytes]:
        out: list[bytes] = []
        if not self._begun:
            self._begun = True
            for name in ("response.created", "response.in_progress"):
                self._stream.write(name, {"response": self._envelope.opening()}, out)
        return out

    def _fail(self, event: Failed) -> Sequence[bytes]:
        """End the stream. Where it never began, frames were forwarded, and the client has been told of a response already."""
        out: list[bytes] = []
        self._over = True
        self._blocks.settle(out)
        self._envelope.error = event.error
        told = error_object(event.error)
        # Typed clients read the flat fields; OpenAI's servers write the object.
        flat = {"code": told["code"], "message": told["message"], "param": told["param"]}
        self._stream.write("error", {**flat, "error": told}, out)
        self._stream.write(
            "response.failed", {"response": self._envelope.closing(self._stream.output_of_failed())}, out
        )
        return out


def encode_response(response: Response, request: Request) -> bytes:
    """Write one whole reply; `response.bardo` stands under `bardo` where it is not empty."""
    envelope = Envelope.of(response, request)
    output = _WholeOutput(ItemIds(lambda: envelope.id), request)
    return encode_json(envelope.closing(output.items(response.blocks, envelope.item_status)))


class _WholeOutput:
    """Makes the items of one whole reply, an item that holds the state of another right behind it."""

    def __init__(self, ids: ItemIds, request: Request) -> None:
        self._ids = ids
        self._request = request
        self._as_summary = asks_summary(request)
        self._items: list[JsonObject] = []
        self._open: WrittenItem | None = None

    @cached_property
    def _names(self) -> FunctionNames:
        return FunctionNames(self._request)

    def items(self, blocks: Sequence[ReplyBlock], last_status: str) -> list[JsonObject]:
        """Return the items. `last_status` is that of the item that the reply ends in."""
        for block in blocks:
            match block:
                case TextBlock():
                    self._add_part("output_text", block, block.opaque)
                case RefusalBlock():
                    self._add_part("refusal", block, ())
                case ReasoningBlock():
                    self._add_reasoning(block)
                case ToolCallBlock():
                    self._add_call(block)
                case UnknownBlock(dialect=dialect, value=value) if dialect == NAME and isinstance(value, dict):
                    self._begin(WrittenOther(value))
                    self._close("completed")
        if isinstance(self._open, WrittenMessage):
            self._open.seal_states()
        self._close(last_status)
        return self._items

    def _add_part(self, kind: str, block: TextBlock | RefusalBlock, states: Sequence[Opaque]) -> None:
        part = WrittenPart(kind, fields_for(NAME, block.carried))
        part.written.add(block.text)
        for state in states:
            part.take(state)
        if not isinstance(self._open, WrittenMessage) or not joins(self._open, part):
            self._begin(message_for(part))
        assert self._open is not None
        self._open.add(part)

    def _add_reasoning(self, block: ReasoningBlock) -> None:
        item = WrittenReasoning({}, as_summary=self._as_summary)
        if block.format != FORMAT:
            # A stream announces it before an id can come.
            self._begin(item)
        item.learn(fields_for(NAME, block.carried))
        for state in block.opaque:
            if state.kind == "id":
                item.take(state)
        if block.format == FORMAT:
            self._begin(item)
        if block.text:
            item.add_text(block.text, None)
        for number, text in enumerate(block.summary):
            item.add_text(text, number)
        for state in block.opaque:
            if state.kind != "id":
                item.take(state)

    def _add_call(self, block: ToolCallBlock) -> None:
        item = call_for(block.id, block.name, {}, self._names)
        item.complete = block.complete
        item.learn(fields_for(NAME, block.carried))
        self._begin(item)
        part = WrittenPart(item.part_kind)
        part.written.add(item.read(block.arguments) + item.read_rest())
        item.add(part)
        for state in block.opaque:
            item.take(state)

    def _begin(self, item: WrittenItem) -> None:
        self._close("completed")
        self._name(item)
        self._open = item

    def _close(self, status: str) -> None:
        """End the open item, and write behind it what holds its state."""
        item, self._open = self._open, None
        if item is not None:
            if isinstance(item, WrittenCall):
                status = "completed" if item.complete else "incomplete"
            self._items.append(item.done_item(status))
            for target, states in item.riders():
                rider = WrittenCarrier(target, states)
                self._name(rider)
                self._items.append(rider.done_item("completed"))

    def _name(self, item: WrittenItem) -> None:
        item.index = len(self._items)
        item.id = item.id or self._ids.make(item.prefix, item.index)
