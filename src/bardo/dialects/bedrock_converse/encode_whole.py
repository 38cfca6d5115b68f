"""One whole reply as a Converse response."""

from __future__ import annotations

from typing import Any

from bardo.dialects.bedrock_converse.usage import write_usage
from bardo.dialects.bedrock_converse.words import NAME, REASONS, SIGNED_BLOCKS
from bardo.dialects.fragments import laid_into
from bardo.dialects.wire import encode_json, input_of
from bardo.values.blocks import ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock, UnknownBlock, fields_for
from bardo.values.events import Finish, FinishReason
from bardo.values.request import Request
from bardo.values.response import Response

_WORDS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "content_filtered",
    "error": "malformed_model_output",
}


def encode_response(response: Response, request: Request) -> bytes:
    """Write the reply. The dialect has one choice, so alternatives are left out."""
    # Clients take for granted that there is a latency.
    return encode_json({"metrics": {"latencyMs": 0}, **message_of(response, request)})


def message_of(response: Response, request: Request) -> dict[str, Any]:
    """Return the reply as the object it is written as."""
    calls = any(isinstance(block, ToolCallBlock) for block in response.blocks)
    hide = hides_thinking(request)
    content = [wire for block in response.blocks for wire in _blocks(block, hide)]
    body: dict[str, Any] = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop_word(response.finish, calls=calls),
        "usage": write_usage(response.usage),
        **stop_fields(response.finish, fields_for(NAME, response.carried)),
    }
    body = laid_into(body, {**fields_for(NAME, response.carried), **fields_for(NAME, response.choice_carried)})
    return {**body, "bardo": response.bardo} if response.bardo else body


def hides_thinking(request: Request) -> bool:
    """Whether the caller asked, in this dialect, for thinking without its text (Claude's `thinking.display` omitted)."""
    return request.dialect == NAME and request.reasoning is not None and request.reasoning.visible is False


def stop_word(finish: Finish | None, *, calls: bool) -> str:
    """Return the stop reason: the provider's own word where it is one of this dialect.

    Clients run their tools only on `tool_use`, and some providers call a tool and say that they just stopped.
    """
    finish = finish or Finish("unknown")
    if finish.raw in REASONS:
        return finish.raw
    word = _WORDS.get(finish.reason, "end_turn")
    if word != "end_turn":
        return word
    return "tool_use" if calls else "end_turn" if finish.stop_sequence is None else "stop_sequence"


def stop_fields(finish: Finish | None, carried: dict[str, Any]) -> dict[str, Any]:
    """Return the stop sequence where Claude's own fields have it, unless they are carried."""
    if finish is None or finish.stop_sequence is None or "additionalModelResponseFields" in carried:
        return {}
    return {"additionalModelResponseFields": {"stop_sequence": finish.stop_sequence}}


def text_block(text: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return text, with its citations around it where it has any."""
    if "citations" not in fields:
        return {"text": text, **fields}
    inner = {name: value for name, value in fields.items() if name not in ("content", "block")}
    content = fields.get("content", [{"text": text}])
    return {"citationsContent": {**inner, "content": content}, **fields.get("block", {})}


def call_block(block: ToolCallBlock, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call."""
    use = {"toolUseId": block.id, "name": block.name, "input": input_of(block.arguments)}
    return laid_into({"toolUse": use}, fields)


def _blocks(block: ReplyBlock, hide: bool) -> list[dict[str, Any]]:
    if isinstance(block, UnknownBlock):
        return [block.value] if block.dialect == NAME else []
    if isinstance(block, ReasoningBlock):
        return _thinking(block, hide)
    fields = fields_for(NAME, block.carried)
    if isinstance(block, ToolCallBlock):
        return [call_block(block, fields), *([SIGNED_BLOCKS.carrier(block.opaque, block.id)] if block.opaque else ())]
    states = block.opaque if isinstance(block, TextBlock) else ()
    return [text_block(block.text, fields), *([SIGNED_BLOCKS.carrier(states, "")] if states else ())]


def _thinking(block: ReasoningBlock, hide: bool) -> list[dict[str, Any]]:
    if hide and not block.opaque:
        return []
    signed = SIGNED_BLOCKS.sign(block.opaque)
    fields = fields_for(NAME, block.carried)
    if signed.only_behind and (hide or not block.readable):
        first, *others = signed.behind
        return [laid_into(first, fields), *others]
    return [laid_into(SIGNED_BLOCKS.thinking("" if hide else block.readable, signed.signature), fields), *signed.behind]
