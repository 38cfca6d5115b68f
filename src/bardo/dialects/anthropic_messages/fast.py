"""Deltas that are the one before with another text, which are read without a decode of each.

Of a stream with thinking and calls it saves 30 to 40 % of the reading where frames come several at once (2026-11-30).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import msgspec

from bardo.dialects.anthropic_messages import wire
from bardo.dialects.shared.blocks import OpenBlock, RepeatedText
from bardo.streams.frames import Frame
from bardo.values.events import ContentChunk, Event, ThinkChunk, ToolCallChunk

_decode = msgspec.json.Decoder(wire.BlockDelta).decode


class RepeatedDeltas(RepeatedText):
    """The deltas of one reply that repeat."""

    def __init__(self) -> None:
        super().__init__(_read)

    def event_of(
        self, item: Frame, index: int, block: OpenBlock[type[wire.ReplyBlock] | None], kind: type[wire.Delta], text: str
    ) -> Event:
        """Return the event of a delta that only continues an open block, and take notice of it."""
        if self.note(item, (index, kind), text):
            self.follow((index, kind), _maker(block))
        return self.event(text)


def text_alone(delta: wire.Delta) -> str | None:
    """Return the text of a delta that holds nothing else; None for any other."""
    if delta.others is not None:
        return None
    if isinstance(delta, wire.TextDelta):
        return delta.text
    if isinstance(delta, wire.InputDelta):
        return delta.partial_json
    return delta.thinking if isinstance(delta, wire.ThinkingDelta) and delta.estimated_tokens is None else None


def _read(data: bytes) -> tuple[Hashable, str] | None:
    """Return which block a delta continues, and its text."""
    try:
        frame = _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    text = text_alone(frame.delta)
    return None if text is None or frame.others is not None else ((frame.index, type(frame.delta)), text)


def _maker(block: OpenBlock[type[wire.ReplyBlock] | None]) -> Callable[[str], Event]:
    """Return what makes the event of a further text of a block."""
    if block.kind is wire.ReplyToolUse:
        return partial(_input, block)
    if block.kind is wire.ReplyThinking:
        return partial(ThinkChunk, block.number)
    block.has_content = True
    return partial(ContentChunk, block.number)


def _input(block: OpenBlock[type[wire.ReplyBlock] | None], text: str) -> Event:
    block.has_content = block.has_content or text != ""
    return ToolCallChunk(block.number, text)
