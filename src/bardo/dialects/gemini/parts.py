"""Encode the parts of a turn, and the candidates of a reply that are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bardo.dialects.gemini.usage import encode_usage
from bardo.dialects.gemini.wire import FORMAT, NAME, RAW_ARGUMENTS, arguments_object, is_native, signature_of
from bardo.dialects.shared.json_values import LONG_TEXT, is_object
from bardo.dialects.shared.losses import with_wrapped
from bardo.values.blocks import Opaque, ReasoningBlock, ToolCallBlock, fields_for, has_no_arguments
from bardo.values.events import Finish
from bardo.values.usage import Usage

Part = dict[str, Any]


def text_part(
    text: str, *, thought: bool = False, fields: dict[str, Any] | None = None, opaque: tuple[Opaque, ...] = ()
) -> Part:
    """Return a text part, or a thought."""
    signature = signature_of(opaque)
    return {
        "text": text,
        **({"thought": True} if thought else {}),
        **(fields or {}),
        **({"thoughtSignature": signature} if signature else {}),
    }


def reasoning_parts(block: ReasoningBlock) -> list[Part]:
    """Return thoughts: Gemini's own part by part, anybody else's in one. Its state stands on the last."""
    texts = list(block.summary) if is_own_thinking(block) else []
    texts = [block.text, *texts] if block.text and texts else texts or [block.readable]
    fields = fields_for(NAME, block.carried)
    if not any(texts) and not fields and not block.opaque:
        return []
    parts = [text_part(text, thought=True) for text in texts]
    parts[-1] = text_part(texts[-1], thought=True, fields=fields, opaque=block.opaque)
    return parts


def is_own_thinking(block: ReasoningBlock) -> bool:
    """Whether Gemini thought it."""
    return all(map(is_native, block.opaque)) and (bool(block.opaque) or block.format == FORMAT)


def call_part(call: ToolCallBlock) -> Part:
    """Return a function call. Its id is left out where Gemini itself gave none."""
    fields = fields_for(NAME, call.carried)
    args = _arguments(call.arguments)
    inside = {"id": call.id, "name": call.name, "args": args, **fields.get("functionCall", {})}
    signature = signature_of(call.opaque)
    return {
        "functionCall": {name: value for name, value in inside.items() if value is not None},
        **{name: value for name, value in fields.items() if name != "functionCall"},
        **({"thoughtSignature": signature} if signature else {}),
    }


def is_malformed(call: ToolCallBlock) -> bool:
    """Whether the call's arguments are no JSON object, so that they are written as raw text."""
    return not has_no_arguments(call.arguments) and not is_object(call.arguments)


def _arguments(arguments: str) -> dict[str, Any] | msgspec.Raw:
    """Return the arguments as the object Gemini wants; long ones as they were written, on one line."""
    if len(arguments) >= LONG_TEXT and is_object(arguments):
        return msgspec.Raw(msgspec.json.format(arguments.encode(), indent=-1))
    return arguments_object(arguments)[0]


def reply_ids(reply_id: str, model: str) -> dict[str, str]:
    """Return what names the reply in every chunk."""
    return {**({"modelVersion": model} if model else {}), **({"responseId": reply_id} if reply_id else {})}


def reply_end(usage: Usage, fields: dict[str, Any], bardo: dict[str, Any]) -> dict[str, Any]:
    """Return what a reply says once: its own fields, usage, and bardo's."""
    counts = encode_usage(usage)
    return {**fields, **({"usageMetadata": counts} if counts else {}), **({"bardo": bardo} if bardo else {})}


def candidate_of(parts: list[Part], choice: int, *, finish: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a candidate with its own fields. An empty `finish` says that it has not come to an end."""
    content = {**({"parts": parts} if parts else {}), "role": "model", **fields.get("content", {})}
    return {
        "content": content,
        **({"finishReason": finish} if finish else {}),
        "index": choice,
        **{name: value for name, value in fields.items() if name != "content"},
    }


def is_blocked(fields: dict[str, Any], finish: Finish) -> bool:
    """Whether Gemini refused the prompt itself: there is no candidate then."""
    feedback = fields.get("promptFeedback")
    return isinstance(feedback, dict) and bool(finish.raw) and feedback.get("blockReason") == finish.raw


def with_raw_arguments(bardo: dict[str, Any], malformed: Iterable[ToolCallBlock]) -> dict[str, Any]:
    """Add to bardo's own fields which calls had arguments that are no JSON object."""
    return with_wrapped(bardo, malformed, what="functionCall.args", key=RAW_ARGUMENTS)
