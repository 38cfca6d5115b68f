"""Which language the payloads of InvokeModel are in: told by the model's id for a request, by its shape for a reply."""

from __future__ import annotations

from typing import Any, Literal

from bardo.catalog.matching import matches_glob
from bardo.values.errors import Unsupported

NAME = "bedrock_invoke"

Payload = Literal["anthropic_messages", "openai_chat", "bedrock_converse"]
"""Nova's own payloads are nearly Converse's."""

_BY_MODEL: tuple[tuple[str, Payload | None], ...] = (
    ("*anthropic.*", "anthropic_messages"),
    ("*amazon.nova*", "bedrock_converse"),
    # These have bodies of their own, which Converse spares everybody.
    ("*amazon.titan*", None),
    ("*meta.llama*", None),
    ("*cohere.*", None),
    ("*deepseek.r1*", None),
    ("*mistral.mistral-7b*", None),
    ("*mistral.mixtral*", None),
    ("*mistral.mistral-*-2402*", None),
    ("*stability.*", None),
    ("*application-inference-profile/*", None),
    ("*", "openai_chat"),
)
_CONVERSE = frozenset(
    ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "output")
)


def payload_of(model: str) -> Payload:
    """Return the language of a model's payloads. Raises Unsupported where it is one of the model's own."""
    found = next(payload for glob, payload in _BY_MODEL if matches_glob(model.lower(), glob))
    if found is None:
        raise Unsupported(
            f"InvokeModel wants a body of its own for {model}",
            hint="ask for it through Converse: a provider with the catalog row bedrock",
        )
    return found


def payload_in(value: dict[str, Any]) -> Payload | None:
    """Return the language a reply's first payload is in, or None where it is in none of them."""
    if "choices" in value:
        return "openai_chat"
    if value.keys() & _CONVERSE:
        return "bedrock_converse"
    return "anthropic_messages" if isinstance(value.get("type"), str) else None
