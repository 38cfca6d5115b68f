"""Blocks of a whole reply to the items of its output: the items of a stream, each filled at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from bardo.dialects.openai_responses.function_names import FunctionNames
from bardo.dialects.openai_responses.item_objects import call_item, reasoning_item
from bardo.dialects.openai_responses.item_stream import ItemIds
from bardo.dialects.openai_responses.state import FORMAT, NAME, asks_summary
from bardo.dialects.openai_responses.written_calls import WrittenCall, call_for
from bardo.dialects.openai_responses.written_items import (
    WrittenCarrier,
    WrittenItem,
    WrittenMessage,
    WrittenOther,
    WrittenPart,
    WrittenReasoning,
    joins,
    message_for,
)
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
from bardo.values.request import Request


class WholeOutput:
    """Makes the items of one whole reply, an item that holds the state of another right behind it."""

    def __init__(self, ids: ItemIds, request: Request) -> None:
        self._ids = ids
        self._request = request
        self._as_summary = asks_summary(request)
        self._items: list[dict[str, Any]] = []
        self._open: WrittenItem | None = None

    @cached_property
    def _names(self) -> FunctionNames:
        return FunctionNames(self._request)

    def items(self, blocks: Sequence[ReplyBlock], last_status: str) -> list[dict[str, Any]]:
        """Return the items. `last_status` is that of the item that the reply ends in."""
        known = [block for block in blocks if type(block) is not UnknownBlock or _is_item(block)]
        last = len(known) - 1
        for number, block in enumerate(known):
            _ADD[type(block)](self, block, last_status if number == last else "completed")
        if isinstance(self._open, WrittenMessage):
            self._open.seal_states()
        self._close(last_status)
        return self._items

    def _add_text(self, block: TextBlock, status: str) -> None:
        self._add_part("output_text", block, block.opaque)

    def _add_refusal(self, block: RefusalBlock, status: str) -> None:
        self._add_part("refusal", block, ())

    def _add_part(self, kind: str, block: TextBlock | RefusalBlock, states: Sequence[Opaque]) -> None:
        part = WrittenPart(kind, fields_for(NAME, block.carried))
        part.pieces.append(block.text)
        for state in states:
            part.take(state)
        if not isinstance(self._open, WrittenMessage) or not joins(self._open, part):
            self._begin(message_for(part))
        assert self._open is not None
        self._open.add(part)

    def _add_reasoning(self, block: ReasoningBlock, status: str) -> None:
        fields = fields_for(NAME, block.carried)
        if not fields and not block.opaque and not self._as_summary:
            item_id = self._new_id(WrittenReasoning.prefix)
            self._items.append(reasoning_item(item_id, block.summary, block.text))
            return
        item = WrittenReasoning({}, as_summary=self._as_summary)
        if block.format != FORMAT:
            # A stream announces it before an id can come.
            self._begin(item)
        item.learn(fields)
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

    def _add_call(self, block: ToolCallBlock, status: str) -> None:
        fields = fields_for(NAME, block.carried)
        status = "completed" if block.complete else "incomplete"
        if not fields and not block.opaque and self._names.form(block.name) is None:
            item_id = self._new_id(WrittenCall.prefix)
            self._items.append(call_item(item_id, status, block.id, block.name, block.arguments))
            return
        item = call_for(block.id, block.name, {}, self._names)
        item.complete = block.complete
        item.learn(fields)
        self._begin(item)
        part = WrittenPart(item.part_kind)
        part.pieces += (item.read(block.arguments), item.read_rest())
        item.add(part)
        for state in block.opaque:
            item.take(state)

    def _add_other(self, block: UnknownBlock, status: str) -> None:
        self._begin(WrittenOther(block.value))
        self._close("completed")

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

    def _new_id(self, prefix: str) -> str:
        """Return the id of the next item, which is complete at once."""
        self._close("completed")
        return self._ids.make(prefix, len(self._items))

    def _name(self, item: WrittenItem) -> None:
        item.index = len(self._items)
        item.id = item.id or self._ids.make(item.prefix, item.index)


def _is_item(block: UnknownBlock) -> bool:
    return block.dialect == NAME and isinstance(block.value, dict)


_ADD: dict[type[ReplyBlock], Callable[[WholeOutput, Any, str], None]] = {
    TextBlock: WholeOutput._add_text,
    RefusalBlock: WholeOutput._add_refusal,
    ReasoningBlock: WholeOutput._add_reasoning,
    ToolCallBlock: WholeOutput._add_call,
    UnknownBlock: WholeOutput._add_other,
}
