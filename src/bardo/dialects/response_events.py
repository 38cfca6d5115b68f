"""A whole response as the events it would have arrived as, so that whole replies are encoded by what encodes streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bardo.values.blocks import ReasoningBlock, RefusalBlock, ReplyBlock, TextBlock, ToolCallBlock, UnknownBlock
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    Extension,
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
    UsageUpdate,
)
from bardo.values.response import Response


def response_events(response: Response, *, bardo: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of a reply's first choice. Totals come first, fields of a block before its text, its opaque state behind.

    `bardo` is what bardo itself says at the end.
    """
    yield ReplyStart(id=response.id, model=response.model, created=response.created)
    yield UsageUpdate(response.usage)
    if response.carried is not None:
        yield ReplyFields(response.carried.dialect, response.carried.fields)
    if response.choice_carried is not None:
        yield ReplyFields(response.choice_carried.dialect, response.choice_carried.fields, 0)
    for number, block in enumerate(response.blocks):
        yield from _block_events(number, block)
    yield response.finish
    if bardo:
        yield Extension(bardo)


def _block_events(number: int, block: ReplyBlock) -> Iterator[Event]:
    if isinstance(block, UnknownBlock):
        yield UnknownContent(number, block.dialect, block.value)
        return
    if isinstance(block, ReasoningBlock):
        yield ThinkStart(number, block.format)
    elif isinstance(block, ToolCallBlock):
        yield ToolCallStart(number, block.id, block.name)
    if block.carried is not None:
        yield BlockFields(number, block.carried.dialect, block.carried.fields)
    yield from _text_events(number, block)
    for state in () if isinstance(block, RefusalBlock) else block.opaque:
        yield OpaqueState(number, state)
    if isinstance(block, ReasoningBlock):
        yield ThinkEnd(number)
    elif isinstance(block, ToolCallBlock):
        yield ToolCallEnd(number)


def _text_events(
    number: int, block: ReasoningBlock | TextBlock | RefusalBlock | ToolCallBlock
) -> Iterator[ThinkChunk | ContentChunk | RefusalChunk | ToolCallChunk]:
    match block:
        case ReasoningBlock(text=text, summary=summary):
            # `readable` prefers the full text; both may be there.
            pieces = [(text, None)] if text else [(part, place) for place, part in enumerate(summary)]
            yield from (ThinkChunk(number, piece, place) for piece, place in pieces)
        case TextBlock(text=text):
            yield ContentChunk(number, text)
        case RefusalBlock(text=text):
            yield RefusalChunk(number, text)
        case ToolCallBlock(arguments=arguments):
            yield ToolCallChunk(number, arguments)
