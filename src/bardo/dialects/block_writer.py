"""Write one block of a streamed reply: what the dialects with strictly sequential blocks share."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from bardo.values.blocks import Opaque
from bardo.values.collected import OpaqueStates
from bardo.values.events import ContentChunk, ThinkChunk, ToolCallChunk

Kind = Literal["text", "thinking", "plan", "tool_call"]
"""What a block holds. A plan is the thinking that Cohere writes before its tool calls."""

_CHUNKS: dict[Kind, type] = {
    "text": ContentChunk,
    "thinking": ThinkChunk,
    "plan": ThinkChunk,
    "tool_call": ToolCallChunk,
}


class Frames(Protocol):
    """The frames of one reply. `streamed` False: they are collected into one whole reply instead."""

    streamed: bool

    def take(self) -> list[bytes]:
        """Return the frames written since the last time."""
        ...

    def write_block(self, block: Any) -> None:
        """Write a block that is complete."""
        ...


class BlockWriter:
    """Write one block. Opaque state is kept for its end, because a later state may replace an earlier one.

    `repeats`: the next piece of text differs from the last one in its text only, so that `frame` is all it takes.
    `hidden`: the text of this thinking is not written. `part` is the part of a summary that was written last.
    """

    __slots__ = ("begun", "chunk", "hidden", "kind", "number", "part", "repeats", "states")

    def __init__(self, number: int, kind: Kind, *, hidden: bool = False) -> None:
        self.number = number
        self.kind = kind
        self.chunk = _CHUNKS[kind]
        self.hidden = hidden
        self.part: int | None = None
        self.begun = self.repeats = False
        self.states = OpaqueStates()

    @property
    def owner(self) -> str:
        """The id of a tool call, "" for any other block: the owner of its opaque state."""
        return ""

    def goes_on_with(self, item: Any) -> bool:
        """Whether an event is a piece of this block."""
        is_piece = type(item) is self.chunk
        return is_piece and item.block == self.number and not item.choice

    def frame(self, text: str) -> bytes:
        """Return the frame of one further piece of text."""
        raise NotImplementedError

    def piece(self, text: str) -> None:
        """Write a piece of text or of arguments, after the start of the block where that is still missing."""
        raise NotImplementedError

    def name_call(self, call_id: str, name: str) -> None:
        """Take the id and the name of a tool call."""
        raise NotImplementedError

    def add_fields(self, fields: dict[str, Any]) -> None:
        """Write fields of the dialect's own."""
        raise NotImplementedError

    def add_state(self, state: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces it."""
        self.states.add(state)

    def abandon(self) -> None:
        """Leave the block without an end. What follows it gets an index of its own."""

    def end(self) -> None:
        """Write what is left of the block, and the blocks its opaque state needs."""
        raise NotImplementedError
