"""Fields of an assistant's message that Chat replies have and clients send back, for servers that refuse them in a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.losses import Losses

_REFUSAL = "refusal"


def holds_fields(body: dict[str, Any], names: Sequence[str]) -> bool:
    """Whether an assistant's message of a body has one of these fields."""
    messages = body.get("messages")
    return isinstance(messages, list) and any(map(_finding(names), messages))


def without_fields(body: dict[str, Any], names: Sequence[str], losses: Losses) -> dict[str, Any]:
    """Return a body whose assistant's messages lack these fields, which is told of those that said something.

    What a model refused becomes its answer.
    """
    if not holds_fields(body, names):
        return body
    holds = _finding(names)
    messages = [_without(one, names, losses) if holds(one) else one for one in body["messages"]]
    return {**body, "messages": messages}


def _finding(names: Sequence[str]) -> Any:
    taken_out = frozenset(names)

    def holds(message: Any) -> bool:
        return isinstance(message, dict) and message.get("role") == "assistant" and not taken_out.isdisjoint(message)

    return holds


def _without(message: dict[str, Any], names: Sequence[str], losses: Losses) -> dict[str, Any]:
    kept = {name: value for name, value in message.items() if name not in names}
    for name in names:
        value = message.get(name)
        if value and not (name == _REFUSAL and isinstance(value, str)):
            losses.lose(f"messages.{name}", value, "the provider takes no such field of an earlier answer", key=name)
    refusal = message.get(_REFUSAL)
    if _REFUSAL in names and isinstance(refusal, str) and refusal:
        losses.lose(
            f"messages.{_REFUSAL}", refusal, "the provider takes it as an answer alone", sent="content", key=_REFUSAL
        )
        content = kept.get("content")
        text = {"type": "text", "text": refusal}
        kept["content"] = [*content, text] if isinstance(content, list) else f"{content or ''}{refusal}"
    return kept
