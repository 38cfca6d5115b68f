"""One whole reply as an Anthropic message."""

from __future__ import annotations

from typing import Any

from bardo.dialects.anthropic_messages.opaque import carrier, sign, thinking
from bardo.dialects.anthropic_messages.usage import encode_usage
from bardo.dialects.anthropic_messages.words import INVALID_JSON, NAME, REASONS, encode_json, input_of, is_object
from bardo.dialects.losses import with_wrapped
from bardo.values.blocks import ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock, UnknownBlock, fields_for
from bardo.values.events import Finish, FinishReason
from bardo.values.request import Request
from bardo.values.response import Response

_WORDS: dict[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "pause": "pause_turn",
}


def encode_response(response: Response, request: Request) -> bytes:
    """Write the message. The dialect has one choice, so alternatives are left out."""
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    message: dict[str, Any] = {
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "model": response.model or request.model,
        "content": [wire for block in response.blocks for wire in _blocks(block, hides_thinking(request))],
        **stop(response.finish, calls=bool(calls)),
        "usage": encode_usage(response.usage),
        **fields_for(NAME, response.carried),
        **fields_for(NAME, response.choice_carried),
    }
    wrapped = [call for call in calls if call.arguments.strip() and not is_object(call.arguments)]
    bardo = with_wrapped(response.bardo, wrapped, what="tool_use.input", key=INVALID_JSON)
    if bardo:
        message["bardo"] = bardo
    return encode_json(message)


def hides_thinking(request: Request) -> bool:
    """Whether the caller asked, in this dialect, for thinking blocks without their text (`thinking.display` omitted)."""
    return request.dialect == NAME and request.reasoning is not None and request.reasoning.visible is False


def stop(finish: Finish | None, *, calls: bool) -> dict[str, Any]:
    """Return the stop fields: the provider's own word where it is one of this dialect.

    Clients run their tools only on `tool_use`, and some providers call a tool and say that they just stopped.
    """
    finish = finish or Finish("unknown")
    word = finish.raw if finish.raw in REASONS else _WORDS.get(finish.reason, "end_turn")
    if finish.raw not in REASONS and word == "end_turn":
        word = "tool_use" if calls else "end_turn" if finish.stop_sequence is None else "stop_sequence"
    return {"stop_reason": word, "stop_sequence": finish.stop_sequence}


def _blocks(block: ReplyBlock, hide: bool) -> list[dict[str, Any]]:
    if isinstance(block, UnknownBlock):
        return [block.value] if block.dialect == NAME else []
    if isinstance(block, ReasoningBlock):
        return _thinking(block, hide)
    fields = fields_for(NAME, block.carried)
    if isinstance(block, ToolCallBlock):
        written = {"type": "tool_use", "id": block.id, "name": block.name, "input": input_of(block.arguments), **fields}
        return [written, *([carrier(block.opaque, block.id)] if block.opaque else ())]
    states = block.opaque if isinstance(block, TextBlock) else ()
    return [{"type": "text", "text": block.text, **fields}, *([carrier(states, "")] if states else ())]


def _thinking(block: ReasoningBlock, hide: bool) -> list[dict[str, Any]]:
    if hide and not block.opaque:
        return []
    signed = sign(block.opaque)
    fields = fields_for(NAME, block.carried)
    if signed.only_behind and not block.readable:
        first, *others = signed.behind
        return [{**first, **fields}, *others]
    return [{**thinking("" if hide else block.readable, signed.signature), **fields}, *signed.behind]
