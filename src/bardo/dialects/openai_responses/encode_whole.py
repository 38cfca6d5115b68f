"""A whole reply for a Responses client: the same items as in a stream, from the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.openai_responses.envelope import Envelope
from bardo.dialects.openai_responses.state import NAME, asks_summary, made_id
from bardo.dialects.openai_responses.written import (
    Written,
    WrittenCall,
    WrittenMessage,
    WrittenOther,
    WrittenPart,
    WrittenReasoning,
    WrittenRider,
    joins,
    message_for,
)
from bardo.values.blocks import (
    Carried,
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
)
from bardo.values.collected import OpaqueStates
from bardo.values.events import Extension, ReplyFields, ReplyStart, UsageUpdate
from bardo.values.request import Request
from bardo.values.response import Response


def encode_response(response: Response, request: Request) -> bytes:
    """Write the reply; `response.bardo` stands under `bardo` where it is not empty."""
    envelope = Envelope(request)
    envelope.take(ReplyStart(id=response.id, model=response.model, created=response.created))
    if response.carried is not None:
        envelope.take(ReplyFields(response.carried.dialect, response.carried.fields))
    envelope.take(UsageUpdate(response.usage))
    envelope.take(response.finish)
    envelope.take(Extension(response.bardo))
    envelope.error = response.error
    return msgspec.json.encode(envelope.closing(_output(response.blocks, envelope, asks_summary(request))))


def _output(blocks: Sequence[ReplyBlock], envelope: Envelope, as_summary: bool) -> list[dict[str, Any]]:
    items = _with_riders(_items(blocks, as_summary))
    for index, item in enumerate(items):
        item.id = item.id or made_id(item.prefix, envelope.id, index)
    last = len(items) - 1
    return [item.shown(envelope.item_status if index == last else "completed") for index, item in enumerate(items)]


def _items(blocks: Sequence[ReplyBlock], as_summary: bool) -> list[Written]:
    items: list[Written] = []
    for block in blocks:
        match block:
            case TextBlock(text=text, opaque=opaque, carried=carried):
                _add_part(items, _part("output_text", text, carried, opaque))
            case RefusalBlock(text=text, carried=carried):
                _add_part(items, _part("refusal", text, carried))
            case ReasoningBlock():
                items.append(_reasoning(block, as_summary))
            case ToolCallBlock():
                items.append(_call(block))
            case UnknownBlock(dialect=dialect, value=value):
                if dialect == NAME and isinstance(value, dict):
                    items.append(WrittenOther(value))
    return items


def _add_part(items: list[Written], part: WrittenPart) -> None:
    message = items[-1] if items else None
    if not isinstance(message, WrittenMessage) or not joins(message, part):
        message = message_for(part)
        items.append(message)
    message.add(part)


def _part(
    kind: str, text: str, carried: Carried | None = None, opaque: Sequence[Opaque] = (), number: int | None = None
) -> WrittenPart:
    part = WrittenPart(kind, dict(fields_for(NAME, carried)), number=number)
    part.pieces.append(text)
    part.states = OpaqueStates.of(opaque)
    return part


def _reasoning(block: ReasoningBlock, as_summary: bool) -> WrittenReasoning:
    item = WrittenReasoning(dict(fields_for(NAME, block.carried)), as_summary=as_summary)
    for opaque in block.opaque:
        item.take(opaque)
    item.parts.extend(_part("summary_text", text, number=number) for number, text in enumerate(block.summary))
    if block.text:
        item.parts.append(_thinking_part(item, block.text))
    return item


def _thinking_part(item: WrittenReasoning, text: str) -> WrittenPart:
    kind, number = item.place_of(None)
    part = _part(kind, text)
    part.number = number
    return part


def _call(block: ToolCallBlock) -> WrittenCall:
    item = WrittenCall(block.id, block.name, dict(fields_for(NAME, block.carried)))
    item.parts.append(_part("arguments", block.arguments))
    item.states = OpaqueStates.of(block.opaque)
    return item


def _with_riders(items: Sequence[Written]) -> list[Written]:
    result: list[Written] = []
    for item in items:
        result.append(item)
        result.extend(WrittenRider(target, states) for target, states in item.riders())
    return result
