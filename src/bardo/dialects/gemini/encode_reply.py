"""A whole Response as one GenerateContentResponse, and what whole and streamed replies share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bardo.dialects.gemini.errors import encode_error
from bardo.dialects.gemini.reply_blocks import Part, is_malformed, reply_parts
from bardo.dialects.gemini.usage import write_usage
from bardo.dialects.gemini.words import NAME, RAW_ARGUMENTS, finish_word
from bardo.dialects.losses import with_wrapped
from bardo.values.blocks import ToolCallBlock, fields_for
from bardo.values.events import Finish
from bardo.values.response import Response
from bardo.values.usage import Usage


def encode_response(response: Response) -> bytes:
    """Write one whole reply. What bardo has to say stands under `bardo`, which Google's SDKs pass over.

    A reply that failed before it said anything is written as the error it is.
    """
    if response.error is not None and not response.blocks:
        return encode_error(response.error)
    choices = (response, *response.alternatives)
    fields = fields_for(NAME, response.carried)
    silent = is_blocked(fields, response.finish) and not any(choice.blocks for choice in choices)
    candidates = [] if silent else [_candidate(choice, index) for index, choice in enumerate(choices)]
    malformed = [
        block
        for choice in choices
        for block in choice.blocks
        if isinstance(block, ToolCallBlock) and is_malformed(block)
    ]
    body = {
        **({"candidates": candidates} if candidates else {}),
        **reply_end(response.usage, fields, with_raw_arguments(response.bardo, malformed)),
        **reply_ids(response.id, response.model),
    }
    return msgspec.json.encode(body)


def reply_ids(reply_id: str, model: str) -> dict[str, str]:
    """Return what names the reply in every chunk."""
    return {**({"modelVersion": model} if model else {}), **({"responseId": reply_id} if reply_id else {})}


def reply_end(usage: Usage, fields: dict[str, Any], bardo: dict[str, Any]) -> dict[str, Any]:
    """Return what a reply says once: its own fields, usage, and bardo's."""
    counts = write_usage(usage)
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


def _candidate(response: Response, index: int) -> dict[str, Any]:
    parts = [part for block in response.blocks for part in reply_parts(block)]
    fields = fields_for(NAME, response.choice_carried)
    candidate = candidate_of(parts, index, finish=finish_word(response.finish), fields=fields)
    if response.error is not None and "finishMessage" not in candidate:
        candidate["finishMessage"] = str(response.error)
    return candidate
