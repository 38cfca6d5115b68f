"""The frames that a stream mostly consists of: a further piece of an open block, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import msgspec

from bardo.dialects.anthropic_messages.block_reader import Block, InputDelta, TextDelta, ThinkingDelta
from bardo.dialects.anthropic_messages.constants import NAME
from bardo.dialects.repeated_text import RepeatedText
from bardo.streams.frames import Frame
from bardo.values.events import BlockFields, ContentChunk, Event, ThinkChunk, ToolCallChunk


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
