"""Encode the parts of a turn, and the candidates of a reply that are made of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bardo.dialects.gemini.usage import encode_usage
from bardo.dialects.gemini.wire import FORMAT, NAME, RAW_ARGUMENTS, arguments_object, is_native, signature_of
from bardo.dialects.shared.json_values import LONG_TEXT, JsonObject, is_object
from bardo.dialects.shared.losses import with_wrapped
from bardo.values.blocks import Opaque, ReasoningBlock, ToolCallBlock, fields_for
from bardo.values.events import Finish
from bardo.values.usage import Usage

Part = JsonObject
"""A part, or what holds parts, as it is written."""


def text_part(
    text: str, *, thought: bool = False, fields: JsonObject | None = None, opaque: tuple[Opaque, ...] = ()
) -> Part:
    """Return a text part, or a thought."""
    part: Part = {"text": text}
    if thought:
        part["thought"] = True
    if fields:
        part |= fields
    if opaque and (signature := signature_of(opaque)):
        part["thoughtSignature"] = signature
    return part


def reasoning_parts(block: ReasoningBlock, opaque: tuple[Opaque, ...]) -> list[Part]:
    """Return thoughts: Gemini's own part by part, anybody else's in one. Their state stands on the last."""
    is_own = all(map(is_native, opaque)) and (bool(opaque) or block.format == FORMAT)
    texts = list(block.summary) if is_own else []
    texts = [block.text, *texts] if block.text and texts else texts or [block.readable]
    fields = fields_for(NAME, block.carried)
    if not any(texts) and not fields and not opaque:
        return []
    parts = [text_part(text, thought=True) for text in texts[:-1]]
    return [*parts, text_part(texts[-1], thought=True, fields=fields, opaque=opaque)]


def call_part(call: ToolCallBlock, opaque: tuple[Opaque, ...]) -> tuple[Part, bool]:
    """Return a call, and whether its arguments are no JSON object and stand as text. An id that Gemini did not give is left out."""
    if len(call.arguments) >= LONG_TEXT and is_object(call.arguments):
        # Long arguments go as they were written, on one line.
        args: JsonObject | msgspec.Raw = msgspec.Raw(msgspec.json.format(call.arguments.encode(), indent=-1))
        raw = False
    else:
        args, raw = arguments_object(call.arguments)
    inside: Part = {"id": call.id, "name": call.name, "args": args}
    part: Part = {"functionCall": inside}
    if call.carried is not None:
        fields = fields_for(NAME, call.carried)
        inside |= fields.get("functionCall", {})
        part = {
            "functionCall": {name: value for name, value in inside.items() if value is not None},
            **{name: value for name, value in fields.items() if name != "functionCall"},
        }
    if opaque and (signature := signature_of(opaque)):
        part["thoughtSignature"] = signature
    return part, raw


def reply_ids(reply_id: str, model: str) -> dict[str, str]:
    """Return what names the reply in every chunk."""
    return {**({"modelVersion": model} if model else {}), **({"responseId": reply_id} if reply_id else {})}


def reply_end(usage: Usage, fields: JsonObject, bardo: JsonObject) -> JsonObject:
    """Return what a reply says once: its own fields, usage, and bardo's."""
    counts = encode_usage(usage)
    return {**fields, **({"usageMetadata": counts} if counts else {}), **({"bardo": bardo} if bardo else {})}


def candidate_of(parts: list[Part], choice: int, *, finish: str, fields: JsonObject) -> JsonObject:
    """Return a candidate with its own fields. An empty `finish` says that it has not come to an end."""
    content = {**({"parts": parts} if parts else {}), "role": "model", **fields.get("content", {})}
    return {
        "content": content,
        **({"finishReason": finish} if finish else {}),
        "index": choice,
        **{name: value for name, value in fields.items() if name != "content"},
    }


def is_blocked(fields: JsonObject, finish: Finish) -> bool:
    """Whether Gemini refused the prompt itself: there is no candidate then."""
    feedback = fields.get("promptFeedback")
    return isinstance(feedback, dict) and bool(finish.raw) and feedback.get("blockReason") == finish.raw


def with_raw_arguments(bardo: JsonObject, malformed: Iterable[ToolCallBlock]) -> JsonObject:
    """Add to bardo's own fields which calls had arguments that are no JSON object."""
    return with_wrapped(bardo, malformed, what="functionCall.args", key=RAW_ARGUMENTS)
