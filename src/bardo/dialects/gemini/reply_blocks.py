"""Blocks of an answer as Gemini's parts."""

from __future__ import annotations

from typing import Any

from bardo.dialects.gemini.words import FORMAT, NAME, arguments_object, is_native, signature_of
from bardo.values.blocks import (
    Opaque,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    UnknownBlock,
    fields_for,
)

Part = dict[str, Any]


def reply_parts(block: ReplyBlock) -> list[Part]:
    """Return the parts of one block; none for what only another dialect can hold. The engine reports those."""
    match block:
        case TextBlock():
            fields = fields_for(NAME, block.carried)
            return (
                [text_part(block.text, fields=fields, opaque=block.opaque)]
                if block.text or fields or block.opaque
                else []
            )
        case RefusalBlock():
            return [text_part(block.text)]
        case ReasoningBlock():
            return reasoning_parts(block)
        case ToolCallBlock():
            return [call_part(block)]
        case UnknownBlock():
            return [block.value] if block.dialect == NAME else []


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
    args, _ = arguments_object(call.arguments)
    inside = {"id": call.id, "name": call.name, "args": args, **fields.get("functionCall", {})}
    signature = signature_of(call.opaque)
    return {
        "functionCall": {name: value for name, value in inside.items() if value is not None},
        **{name: value for name, value in fields.items() if name != "functionCall"},
        **({"thoughtSignature": signature} if signature else {}),
    }


def is_malformed(call: ToolCallBlock) -> bool:
    """Whether the call's arguments are no JSON object, so that they are written as raw text."""
    return arguments_object(call.arguments)[1]
