"""One whole reply as Cohere writes it."""

from __future__ import annotations

from typing import Any

from bardo.dialects.cohere.usage import encode_usage
from bardo.dialects.cohere.words import NAME, PLAN, write_finish
from bardo.dialects.sealing import seal
from bardo.dialects.wire import encode_json
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    argument_text,
    fields_for,
)
from bardo.values.request import Request
from bardo.values.response import Response


def encode_response(response: Response, request: Request) -> bytes:
    """Write the reply. The dialect has one choice, so alternatives are left out, and no place for the model's name."""
    calls = any(isinstance(block, ToolCallBlock) for block in response.blocks)
    body: dict[str, Any] = {
        "id": response.id,
        "message": _message(response),
        "finish_reason": write_finish(response.finish, calls=calls),
        "usage": encode_usage(response.usage),
        **fields_for(NAME, response.carried),
    }
    if response.bardo:
        body["bardo"] = response.bardo
    return encode_json(body)


def _message(response: Response) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    content = [item for block in response.blocks for item in _content(block)]
    if content:
        message["content"] = content
    plan = "\n\n".join(block.readable for block in response.reasoning_blocks if is_plan(block))
    if plan:
        message["tool_plan"] = plan
    calls = [write_call(block) for block in response.blocks if isinstance(block, ToolCallBlock)]
    if calls:
        message["tool_calls"] = calls
    rest = fields_for(NAME, response.choice_carried)
    cited = [citation for block in response.blocks for citation in _citations(block)]
    if cited:
        message["citations"] = [*cited, *rest.get("citations", ())]
    return {**rest, **message}


def is_plan(block: ReplyBlock) -> bool:
    """Whether thinking is the plan for a message's calls. One with opaque state is none: a plan has no place for it."""
    return isinstance(block, ReasoningBlock) and block.format == PLAN and not block.opaque


def _content(block: ReplyBlock) -> list[dict[str, Any]]:
    if isinstance(block, UnknownBlock):
        return [block.value] if block.dialect == NAME else []
    if isinstance(block, ToolCallBlock) or is_plan(block):
        return []
    fields = {name: value for name, value in fields_for(NAME, block.carried).items() if name != "citations"}
    if isinstance(block, ReasoningBlock):
        return [{"type": "thinking", "thinking": block.readable, **sealed(block.opaque), **fields}]
    states = () if isinstance(block, RefusalBlock) else block.opaque
    return [{"type": "text", "text": block.text, **sealed(states), **fields}]


def _citations(block: ReplyBlock) -> list[Any]:
    held = isinstance(block, TextBlock | ReasoningBlock) and fields_for(NAME, block.carried).get("citations")
    return held if isinstance(held, list) else []


def sealed(states: tuple[Opaque, ...]) -> dict[str, str]:
    """Return the field that keeps opaque state of other providers for a client that sends it back; Cohere has none itself."""
    return {"signature": seal(states)} if states else {}


def write_call(call: ToolCallBlock) -> dict[str, Any]:
    """Return one entry of `tool_calls`, with all that is carried of it."""
    carried = dict(fields_for(NAME, call.carried))
    function = {"name": call.name, "arguments": argument_text(call.arguments), **carried.pop("function", {})}
    return {"id": call.id, "type": "function", "function": function, **sealed(call.opaque), **carried}
