"""Messages for Cohere: thinking and text as content, the plan for calls in its own field, results as messages of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.cohere.constants import NAME, PLAN
from bardo.dialects.history_pictures import behind_results
from bardo.dialects.losses import Losses
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
    argument_text,
)
from bardo.values.request import Message, Request

Wire = dict[str, Any]


def encode_messages(request: Request, losses: Losses) -> list[Wire]:
    """Return the `messages` field."""
    return behind_results([wire for message in request.messages for wire in _message(message, losses)])


def _message(message: Message, losses: Losses) -> list[Wire]:
    results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
    others: list[Block] = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
    others = [*_pictures(results, losses), *others]
    fields = losses.own_fields(message.carried)
    written = [_result(result, losses) for result in results]
    if others or not results:
        written.append({"role": message.role, **_message_fields(others, losses)})
    return [*written[:-1], {**written[-1], **fields}]


def _message_fields(blocks: Sequence[Block], losses: Losses) -> Wire:
    calls = [block for block in blocks if isinstance(block, ToolCallBlock)]
    plans = [block for block in blocks if calls and isinstance(block, ReasoningBlock) and block.format == PLAN]
    content = [item for block in blocks if block not in plans for item in _item(block, losses)]
    fields: Wire = {}
    if content or not calls:
        fields["content"] = _shortest(content)
    if plans:
        for plan in plans:
            losses.lose_states(plan.opaque, sent="text")
        fields["tool_plan"] = "\n\n".join(plan.readable for plan in plans)
    if calls:
        fields["tool_calls"] = [_call(call, losses) for call in calls]
    return fields


def _shortest(content: list[Wire]) -> str | list[Wire]:
    if not content:
        return ""
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        return str(content[0]["text"])
    return content


def _item(block: Block, losses: Losses) -> list[Wire]:
    if isinstance(block, ReasoningBlock):
        return _thinking(block, losses)
    if isinstance(block, ToolCallBlock | ToolResultBlock):
        return []
    return _plain(block, losses)


def _plain(block: RefusalBlock | ResultPart, losses: Losses) -> list[Wire]:
    if isinstance(block, UnknownBlock):
        if block.dialect == NAME and isinstance(block.value, dict):
            return [block.value]
        return []
    if isinstance(block, DocumentBlock):
        return []
    fields = losses.own_fields(block.carried)
    if isinstance(block, ImageBlock):
        url = block.url or f"data:{block.media_type or 'image/png'};base64,{block.data}"
        detail = {"detail": block.detail} if block.detail else {}
        return [{"type": "image_url", "image_url": {"url": url, **detail}, **fields}]
    if isinstance(block, TextBlock):
        losses.lose_states(block.opaque)
        if "document" in fields:
            return [{"type": "document", **fields}]
    return [{"type": "text", "text": block.text, **fields}] if block.text or fields else []


def _thinking(block: ReasoningBlock, losses: Losses) -> list[Wire]:
    text = block.readable
    losses.lose_states(block.opaque, sent="text" if text else None)
    losses.lose_fields(block.carried)
    fields = losses.own_fields(block.carried)
    return [{"type": "thinking", "thinking": text, **fields}] if text else []


def _call(call: ToolCallBlock, losses: Losses) -> Wire:
    losses.lose_states(call.opaque)
    carried = dict(losses.own_fields(call.carried))
    carried.pop("signature", None)
    function = {"name": call.name, "arguments": argument_text(call.arguments), **carried.pop("function", {})}
    return {"id": call.id, "type": "function", "function": function, **carried}


def _pictures(results: Sequence[ToolResultBlock], losses: Losses) -> list[ImageBlock]:
    """Return the pictures among results, which go into the user's message after them."""
    pictures = [part for result in results for part in result.content if isinstance(part, ImageBlock)]
    if pictures:
        why = "Cohere takes no pictures from tools"
        losses.lose("tool_result.image", "in the result", why, sent="in a user message after it")
    return pictures


def _result(result: ToolResultBlock, losses: Losses) -> Wire:
    parts = [wire for part in result.content if not isinstance(part, ImageBlock) for wire in _plain(part, losses)]
    content: str | list[Wire] = _shortest(parts)
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "content": content,
        **losses.own_fields(result.carried),
    }
