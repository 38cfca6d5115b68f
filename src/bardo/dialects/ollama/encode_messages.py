"""Messages for Ollama: one text each, pictures beside it, thinking as text, results as messages of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bardo.dialects.losses import Losses
from bardo.dialects.ollama.calls import write_call
from bardo.dialects.wire import INVALID_JSON, is_object
from bardo.values.blocks import (
    Block,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    has_no_arguments,
)
from bardo.values.request import Message, Request

Wire = dict[str, Any]
_DATA_URL = re.compile(r"data:[^;,]*;base64,(.*)", re.DOTALL)


def encode_messages(request: Request, losses: Losses) -> list[Wire]:
    """Return the `messages` field."""
    names = {
        block.id: block.name
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    }
    return [wire for message in request.messages for wire in _message(message, names, losses)]


def _message(message: Message, names: dict[str, str], losses: Losses) -> list[Wire]:
    results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
    others = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
    fields = losses.own_fields(message.carried)
    written = [_result(result, names, losses) for result in results]
    if others or not results:
        between = "" if message.role == "assistant" else "\n\n"
        written.append({"role": message.role, **_message_fields(others, losses, between)})
    return [*written[:-1], {**written[-1], **fields}]


def _message_fields(blocks: Sequence[Block], losses: Losses, between: str) -> Wire:
    thoughts = [block for block in blocks if isinstance(block, ReasoningBlock)]
    calls = [block for block in blocks if isinstance(block, ToolCallBlock)]
    fields: Wire = {"content": between.join(filter(None, (_text(block, losses) for block in blocks)))}
    thinking = _thinking(thoughts, losses)
    if thinking:
        fields["thinking"] = thinking
    images = [data for block in blocks if isinstance(block, ImageBlock) for data in _image(block, losses)]
    if images:
        fields["images"] = images
    if calls:
        fields["tool_calls"] = [_call(call, place, losses) for place, call in enumerate(calls)]
    return fields


def _text(block: Block, losses: Losses) -> str:
    if not isinstance(block, TextBlock | RefusalBlock):
        return ""
    losses.lose_states(block.opaque if isinstance(block, TextBlock) else ())
    return block.text


def _thinking(thoughts: list[ReasoningBlock], losses: Losses) -> str:
    for block in thoughts:
        losses.lose_fields(block.carried)
        losses.lose_states(block.opaque, sent="text" if block.readable else None)
    return "\n\n".join(block.readable for block in thoughts if block.readable)


def _call(call: ToolCallBlock, place: int, losses: Losses) -> Wire:
    losses.lose_states(call.opaque)
    if not has_no_arguments(call.arguments) and not is_object(call.arguments):
        sent = {INVALID_JSON: call.arguments}
        losses.lose("tool arguments", call.arguments, "arguments must be a JSON object", sent=sent, key=call.id)
    return write_call(call, place)


def _result(result: ToolResultBlock, names: dict[str, str], losses: Losses) -> Wire:
    fields = dict(losses.own_fields(result.carried))
    written: Wire = {"role": "tool", "content": "".join(_text(part, losses) for part in result.content)}
    images = [data for part in result.content if isinstance(part, ImageBlock) for data in _image(part, losses)]
    if images:
        written["images"] = images
    name = result.name or names.get(result.call_id, "")
    if name:
        written["tool_name"] = name
    unnamed = "tool_call_id" in fields and fields.pop("tool_call_id") is None
    answered = {"tool_call_id": result.call_id} if result.call_id and not unnamed else {}
    return {**written, **answered, **fields}


def _image(block: ImageBlock, losses: Losses) -> list[str]:
    inline = _DATA_URL.fullmatch(block.url)
    if inline or block.data:
        return [inline[1] if inline else block.data]
    losses.lose("image", block.url, "Ollama takes pictures as data, not by address", key=block.url)
    return []
