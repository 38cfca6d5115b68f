"""A Response to a whole Chat Completions body.

One message has one place for its thinking, one for its text and one for its calls, so blocks of a kind are joined: the text verbatim,
stretches of thinking with a blank line between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.openai_chat.carried import add_carried, unflatten
from bardo.dialects.openai_chat.details import write_details, write_position
from bardo.dialects.openai_chat.extra import merge_extra, write_states
from bardo.dialects.openai_chat.usage import write_usage
from bardo.dialects.openai_chat.words import NAME, PLAIN_FORMATS, write_finish
from bardo.values.blocks import (
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
)
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
    carried, fields = unflatten(fields_for(NAME, response.choice_carried))
    return {
        "index": index,
        "message": add_carried(_message(response), carried),
        "finish_reason": write_finish(response.finish, refused=bool(response.refusal)),
        **fields,
    }


def _message(response: Response) -> dict[str, Any]:
    texts = [block for block in response.blocks if isinstance(block, TextBlock)]
    message: dict[str, Any] = {"role": "assistant", "content": response.text if texts else None}
    if any(isinstance(block, RefusalBlock) for block in response.blocks):
        message["refusal"] = response.refusal
    message |= _reasoning(response.reasoning_blocks, response.blocks)
    calls = [write_call(block) for block in response.blocks if isinstance(block, ToolCallBlock)]
    if calls:
        message["tool_calls"] = calls
    states = [state for block in texts for state in block.opaque]
    if states:
        message["extra_content"] = write_states(states)
    unknown = [block.value for block in response.blocks if isinstance(block, UnknownBlock) and block.dialect == NAME]
    if unknown:
        message["content_blocks"] = [{"index": index, "block": value} for index, value in enumerate(unknown)]
    return message


def _reasoning(thoughts: list[ReasoningBlock], blocks: Sequence[ReplyBlock]) -> dict[str, Any]:
    written: dict[str, Any] = {}
    text = "\n\n".join(readable for block in thoughts if (readable := block.readable))
    if text:
        written["reasoning_content"] = text
    if any(block.opaque or block.summary or block.carried or block.format not in PLAIN_FORMATS for block in thoughts):
        written["reasoning_details"] = _details(blocks)
    return written


def _details(blocks: Sequence[ReplyBlock]) -> list[dict[str, Any]]:
    """Return the pieces of all thinking, each block of it with what stands before it."""
    pieces: list[dict[str, Any]] = []
    index = characters = calls = 0
    for block in blocks:
        match block:
            case ReasoningBlock():
                pieces += write_details(block, index, write_position(characters, calls))
                index += 1
            case TextBlock(text=text):
                characters += len(text)
            case ToolCallBlock():
                calls += 1
    return pieces


def write_call(call: ToolCallBlock) -> dict[str, Any]:
    """Return one entry of `tool_calls`, with all that is carried of it."""
    carried = dict(fields_for(NAME, call.carried))
    more = carried.pop("function", {})
    written: dict[str, Any] = {"id": call.id, "type": "function"}
    if carried.get("type") == "custom":
        written["custom"] = {"name": call.name, "input": call.arguments, **more}
    else:
        written["function"] = {"name": call.name, "arguments": call.arguments, **more}
    extra = write_states(call.opaque) if call.opaque else {}
    if extra:
        carried["extra_content"] = merge_extra(extra, carried.get("extra_content") or {})
    return written | carried
