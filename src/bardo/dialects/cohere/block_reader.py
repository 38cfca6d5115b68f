"""Read the blocks of a streamed reply: Cohere's content, plan and calls to our numbered events.

Content and calls are each counted from 0 on the wire; the plan has no number, and goes on until something else is said.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from bardo.dialects.cohere.constants import NAME, PLAN, THINKING
from bardo.dialects.lenient import as_text
from bardo.dialects.open_block import OpenBlock, add_piece, add_states
from bardo.dialects.sealing import unseal
from bardo.dialects.wire import WrongShape, want, without
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    ReplyFields,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
)

Kind = Literal["text", "thinking", "call", "unknown"]


Block: TypeAlias = OpenBlock[Kind]


class Content:
    """The blocks of one reply. `open_blocks` and `calls` hold those not yet closed, by Cohere's index."""

    def __init__(self) -> None:
        self.open_blocks: dict[int, Block] = {}
        self.calls: dict[int, Block] = {}
        self.plan: int | None = None
        self._count = 0
        self._numbers: dict[int, int] = {}
        self._texts: list[int] = []
        self._plans: list[int] = []

    def open(self, index: int, item: dict[str, Any], out: list[Event]) -> None:
        """Begin a block of content with whatever it already holds."""
        self.close(index, out)
        self.end_plan(out)
        kind = _kind(item)
        block = self.open_blocks[index] = OpenBlock(self._fresh(), kind)
        self._numbers[index] = block.number
        if kind == "unknown":
            block.value = dict(item)
            return
        if kind == "thinking":
            out.append(ThinkStart(block.number, THINKING))
        else:
            self._texts.append(block.number)
        self.add(index, item, out)

    def add(self, index: int, item: dict[str, Any], out: list[Event]) -> None:
        """Add a piece of content; one that fits no open block begins its own."""
        block = self.open_blocks.get(index)
        kind = _kind(item, block)
        if block is None or block.kind != kind:
            self.open(index, {"type": kind, **item}, out)
            return
        if kind == "unknown":
            add_piece(block.value, item)
            return
        text = as_text(item.get(kind))
        if text:
            block.has_content = True
            out.append(ThinkChunk(block.number, text) if kind == "thinking" else ContentChunk(block.number, text))
        _add_fields(block.number, without(item, "type", kind), out)

    def close(self, index: int, out: list[Event]) -> None:
        """End a block of content, if it is open."""
        block = self.open_blocks.pop(index, None)
        if block is None:
            return
        if block.kind == "unknown":
            out.append(UnknownContent(block.number, NAME, block.value))
        elif block.kind == "thinking":
            out.append(ThinkEnd(block.number))
        elif not block.has_content:
            out.append(ContentChunk(block.number, ""))

    def add_plan(self, text: str, out: list[Event]) -> None:
        """Add a piece of the plan."""
        if self.plan is None:
            self.plan = self._fresh()
            self._plans.append(self.plan)
            out.append(ThinkStart(self.plan, PLAN))
        out.append(ThinkChunk(self.plan, text))

    def end_plan(self, out: list[Event]) -> None:
        """End the plan, if one goes on."""
        if self.plan is not None:
            out.append(ThinkEnd(self.plan))
            self.plan = None

    def open_call(self, index: int, call: dict[str, Any], out: list[Event]) -> None:
        """Begin a call."""
        self.close_call(index, out)
        self.end_plan(out)
        block = self.calls[index] = OpenBlock(self._fresh(), "call")
        function = fields_of(call.get("function") or {}, "function")
        out.append(ToolCallStart(block.number, as_text(call.get("id")), as_text(function.get("name"))))
        self.add_call(index, {**without(call, "id", "type"), "function": without(function, "name")}, out)

    def add_call(self, index: int, call: dict[str, Any], out: list[Event]) -> None:
        """Add a piece of a call. Raises WrongShape for one that nobody began."""
        if index not in self.calls:
            raise WrongShape(f"a piece of call {index}, which did not begin")
        block = self.calls[index]
        function = fields_of(call.get("function") or {}, "function")
        if arguments := as_text(function.get("arguments")):
            block.has_content = True
            out.append(ToolCallChunk(block.number, arguments))
        rest = without(function, "arguments")
        _add_fields(block.number, {**without(call, "function"), **({"function": rest} if rest else {})}, out)

    def close_call(self, index: int, out: list[Event]) -> None:
        """End a call, if it is open."""
        block = self.calls.pop(index, None)
        if block is None:
            return
        if not block.has_content:
            out.append(ToolCallChunk(block.number, "{}"))
        out.append(ToolCallEnd(block.number))

    def cite(self, citation: Any, out: list[Event]) -> None:
        """Add a citation to the block it is about: the plan, the content it counts to, else the last text."""
        fields = citation if isinstance(citation, dict) else {}
        index = fields.get("content_index")
        number = self._numbers.get(index) if isinstance(index, int) else None
        if fields.get("type") == "PLAN" and self._plans:
            number = self._plans[-1]
        if number is None and self._texts:
            number = self._texts[-1]
        if number is None:
            out.append(ReplyFields(NAME, {"citations": [citation]}, choice=0))
        else:
            out.append(BlockFields(number, NAME, {"citations": [citation]}))

    def close_all(self, out: list[Event], *, complete: bool = True) -> None:
        """End all blocks that are open. `complete` False: the reply broke off, and no call is ended."""
        self.end_plan(out)
        for index in sorted(self.open_blocks):
            self.close(index, out)
        for index in sorted(self.calls) if complete else ():
            self.close_call(index, out)

    def flush(self, out: list[Event]) -> None:
        """Return what is held of blocks that will not be finished, without saying that they are."""
        for block in self.open_blocks.values():
            if block.kind == "unknown":
                out.append(UnknownContent(block.number, NAME, block.value))
        self.open_blocks.clear()

    def _fresh(self) -> int:
        self._count += 1
        return self._count - 1


def _add_fields(number: int, fields: dict[str, Any], out: list[Event]) -> None:
    """Add fields that decorate a block; opaque state that bardo sealed is opened."""
    signature = fields.get("signature")
    states = unseal(signature) if isinstance(signature, str) else None
    if states is not None:
        add_states(number, states, out)
        fields = without(fields, "signature")
    if fields:
        out.append(BlockFields(number, NAME, fields))


def fields_of(value: Any, what: str) -> dict[str, Any]:
    """Return an object; where a list stands with just one in it, that one. Raises WrongShape."""
    return want(value[0] if isinstance(value, list) and len(value) == 1 else value, dict, what)


def _kind(item: dict[str, Any], block: Block | None = None) -> Kind:
    """Return what kind of content a block or a piece of one is; a piece says it only by its names."""
    named_kind = item.get("type")
    if named_kind is None:
        known = block.kind if block is not None else "unknown"
        if known == "unknown" and block is not None:
            return known
        named: list[Kind] = [kind for kind in ("text", "thinking") if isinstance(item.get(kind), str)]
        return known if known in named or not named else named[0]
    return named_kind if named_kind in ("text", "thinking") else "unknown"
