"""Write a whole reply with the encoder of a stream: each block is given to its `BlockWriter` at once, without events.

A call in which the reply broke off is left out, since clients execute whatever call they find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bardo.dialects.block_writer import BlockWriter
from bardo.dialects.losses import with_wrapped
from bardo.dialects.serial_encoder import SerialEncoder
from bardo.dialects.wire import INVALID_JSON, is_object
from bardo.values.blocks import (
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
    has_no_arguments,
)
from bardo.values.events import ReplyFields, ReplyStart
from bardo.values.response import Response

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


def _with_wrapped(response: Response, wraps: str, key: str) -> dict[str, Any]:
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


def _write_fields(writer: BlockWriter, fields: dict[str, Any]) -> None:
    if fields:
        writer.add_fields(fields)


_WRITE: dict[type, Callable[[_Encoder, int, Any], None]] = {
    TextBlock: _write_text,
    ReasoningBlock: _write_thinking,
    ToolCallBlock: _write_call,
    RefusalBlock: _write_refusal,
    UnknownBlock: _write_unknown,
}
