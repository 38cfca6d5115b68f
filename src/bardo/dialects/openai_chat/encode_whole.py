"""A Response to a whole Chat Completions body."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.openai_chat.choice import NAME
from bardo.dialects.openai_chat.details import write_details
from bardo.dialects.openai_chat.encode_reply import PLAIN_FIELDS, extra_content, finish_word, unflatten
from bardo.dialects.openai_chat.usage import write_usage
from bardo.values.blocks import ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, UnknownBlock, fields_for
from bardo.values.response import Response


def encode_response(response: Response) -> bytes:
    """Write one whole reply, all choices."""
    choices = (response, *response.alternatives)
    body: dict[str, Any] = {
        "id": response.id,
        "object": "chat.completion",
        "created": response.created or 0,
        "model": response.model,
        **fields_for(NAME, response.carried),
        "choices": [_choice(choice, index) for index, choice in enumerate(choices)],
    }
    usage = write_usage(response.usage)
    if usage is not None:
        body["usage"] = usage
    if response.bardo:
        body["bardo"] = response.bardo
    return msgspec.json.encode(body)


def _choice(response: Response, index: int) -> dict[str, Any]:
    carried_message, carried_choice = unflatten(fields_for(NAME, response.choice_carried))
    message = {**_message(response), **carried_message}
    return {"index": index, "message": message, "finish_reason": finish_word(response.finish), **carried_choice}


def _message(response: Response) -> dict[str, Any]:
    texts = [block for block in response.blocks if isinstance(block, TextBlock)]
    message: dict[str, Any] = {"role": "assistant", "content": response.text if texts else None}
    if any(isinstance(block, RefusalBlock) for block in response.blocks):
        message["refusal"] = response.refusal
    message |= _reasoning(response.reasoning_blocks)
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    for state in (state for block in texts for state in block.opaque):
        message |= extra_content(state)
    unknown = [block.value for block in response.blocks if isinstance(block, UnknownBlock) and block.dialect == NAME]
    if unknown:
        message["content_blocks"] = unknown
    return message


def _reasoning(blocks: list[ReasoningBlock]) -> dict[str, Any]:
    written: dict[str, Any] = {}
    text = "\n\n".join(readable for block in blocks if (readable := block.readable))
    if text:
        written["reasoning_content"] = text
    if any(block.opaque or block.format not in PLAIN_FIELDS for block in blocks):
        written["reasoning_details"] = [
            piece for index, block in enumerate(blocks) for piece in write_details(block, index)
        ]
    return written


def _call(call: ToolCallBlock) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
        **fields_for(NAME, call.carried),
    }
    for state in call.opaque:
        written |= extra_content(state)
    return written
