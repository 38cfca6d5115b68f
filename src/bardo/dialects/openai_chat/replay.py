"""Earlier reasoning, in the form one provider takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.catalog.rows import ReplayForm
from bardo.dialects.openai_chat.details import replay_details
from bardo.values.blocks import ReasoningBlock


class Replay(msgspec.Struct, frozen=True):
    """Fields of the assistant's message, and the formats of what they leave out."""

    fields: dict[str, Any] = {}
    lost: tuple[str, ...] = ()


def given_back(thoughts: Sequence[ReasoningBlock], form: ReplayForm, content: Any) -> Replay:
    """Return what gives `thoughts` back beside or inside `content`.

    Text goes wherever there is a place for text; opaque state only where it is kept with its format.
    """
    text = "\n\n".join(readable for block in thoughts if (readable := block.readable))
    if form == "reasoning_details" and thoughts:
        pieces = [piece for index, block in enumerate(thoughts) for piece in replay_details(block, index)]
        return Replay({"reasoning_details": pieces} if pieces else {})
    if form == "none" or not text:
        return Replay({}, tuple(block.format for block in thoughts))
    own = ("content_list",) if form == "content_list" else ()
    lost = tuple(state.format for block in thoughts for state in block.opaque if state.format not in own)
    return Replay(_text_given_back(thoughts, text, form, content), lost)


def _text_given_back(thoughts: Sequence[ReasoningBlock], text: str, form: ReplayForm, content: Any) -> dict[str, Any]:
    match form:
        case "content_list":
            return {"content": [_thinking_part(thoughts, text), *_parts(content)]}
        case "think_tags" if isinstance(content, list):
            return {"content": [{"type": "text", "text": f"<think>{text}</think>"}, *content]}
        case "think_tags":
            return {"content": f"<think>{text}</think>{content or ''}"}
        case _:
            return {form: text}


def _thinking_part(thoughts: Sequence[ReasoningBlock], text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    states = [state.data for block in thoughts for state in block.opaque if state.format == "content_list"]
    return {**part, "signature": states[-1]} if states else part


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
