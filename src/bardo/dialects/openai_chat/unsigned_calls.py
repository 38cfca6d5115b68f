"""Calls without a signature, of models that refuse them: Google's word for a call that has none stands in its place.

OpenRouter hands it on to Gemini 3 as one encrypted detail for each message that calls tools, under the id of its first call
(RooCodeInc/Roo-Code#10640, 2026-01). It is sent for the calls of the current turn alone, which are those that Google checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bardo.catalog.matching import matches_any
from bardo.catalog.rows import Quirks
from bardo.dialects.losses import Losses
from bardo.dialects.openai_chat.constants import GEMINI
from bardo.dialects.wire import NO_SIGNATURE


def has_unsigned_calls(model: str, messages: Any, quirks: Quirks) -> bool:
    """Whether messages as a client wrote them hold calls without the signature that the model asks for."""
    checked = bool(quirks.signed_calls) and matches_any(model.lower(), quirks.signed_calls)
    return checked and isinstance(messages, list) and any(True for _ in _unsigned(messages))


def waive_signatures(
    model: str, messages: list[dict[str, Any]], quirks: Quirks, losses: Losses
) -> list[dict[str, Any]]:
    """Return the messages with the word in those that lack a signature, where the model asks for one, and report it."""
    if not quirks.signed_calls or not matches_any(model.lower(), quirks.signed_calls):
        return messages
    unsigned = [id(message) for message in _unsigned(messages)]
    if unsigned:
        why = "this model asks for a signature and the conversation has none: Google's word for that was sent"
        losses.lose_each("thought_signature", None, why, sent=NO_SIGNATURE)
    return [_waived(message) if id(message) in unsigned else message for message in messages]


def _waived(message: dict[str, Any]) -> dict[str, Any]:
    first = message["tool_calls"][0].get("id")
    detail = {"type": "reasoning.encrypted", "data": NO_SIGNATURE, "format": GEMINI, "id": first, "index": 0}
    return {**message, "reasoning_details": [*(message.get("reasoning_details") or ()), detail]}


def _unsigned(messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages behind the user's last one that call tools and have no state."""
    for message in reversed(messages):
        if not isinstance(message, dict) or message.get("role") == "user":
            return
        if message.get("role") == "assistant" and message.get("tool_calls") and not _is_signed(message):
            yield message


def _is_signed(message: dict[str, Any]) -> bool:
    details = message.get("reasoning_details")
    pieces = details if isinstance(details, list) else []
    return any(isinstance(piece, dict) and (piece.get("data") or piece.get("signature")) for piece in pieces)
