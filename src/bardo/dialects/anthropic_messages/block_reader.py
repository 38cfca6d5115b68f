"""Read the blocks of a streamed reply: Anthropic's index and pieces to our numbered events."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from bardo.dialects.anthropic_messages.constants import FORMAT, NAME, SIGNED_BLOCKS
from bardo.dialects.open_block import OpenBlock, add_piece, add_states
from bardo.dialects.signed_blocks import EMPTY
from bardo.dialects.text_states import TextStates, give
from bardo.dialects.wire import WrongShape, input_of, without
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
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
        kind = _string(block, "type")
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
        text = _string(block, "text")
        opened = self._begin(index, TextDelta)
        self._last_text = opened.number
        self._text_states.open_text(opened.number, out)
        _add_fields(opened, without(block, "type", "text"), out)
        if text:
            opened.has_content = True
            out.append(ContentChunk(opened.number, text))

    def _open_thinking(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        text, signature = _string(block, "thinking"), _string(block, "signature")
        number = self._open_think(index, out)
        if text:
            out.append(ThinkChunk(number, text))
        add_states(number, SIGNED_BLOCKS.decode_signature(signature), out)
        _add_fields(self.open_blocks[index], without(block, "type", "thinking", "signature"), out)

    def _open_redacted(self, index: int, block: dict[str, Any], out: list[Event]) -> None:
        found = SIGNED_BLOCKS.decode_redacted(_string(block, "data"))
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
        call, name = _string(block, "id"), _string(block, "name")
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
            out.append(ContentChunk(number, _string(delta, "text")))
        elif kind == "thinking_delta":
            out.append(ThinkChunk(number, _string(delta, "thinking")))
        elif kind == "signature_delta":
            add_states(number, SIGNED_BLOCKS.decode_signature(_string(delta, "signature")), out)
        elif kind == "input_json_delta":
            piece = _string(delta, "partial_json")
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
        block.pieces.append(_string(fields, "partial_json"))
        return
    add_piece(block.value, fields)


def _whole(block: Block) -> dict[str, Any]:
    text = "".join(block.pieces)
    if not text.strip():
        return block.value
    return {**block.value, "input": msgspec.json.decode(input_of(text))}


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WrongShape(f"{name} is not a string")
    return value
