"""The language of InvokeModel's payloads: told by the model's id to a provider, by the body of a client, and by the shape of a reply."""

from __future__ import annotations

from typing import Literal, get_args

from bardo.catalog.endpoint_choice import dialect_models
from bardo.dialects.bedrock_invoke.wire import NAME
from bardo.dialects.shared.json_values import JsonObject
from bardo.values.errors import Unsupported
from bardo.values.request import Request

Payload = Literal["anthropic_messages", "openai_chat", "bedrock_converse"]
"""The dialects whose bodies InvokeModel holds."""
_CONVERSE = frozenset(
    ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "output")
)


def payload_of(model: str) -> Payload:
    """Return the language of a model's payloads. Raises Unsupported where it is one of the model's own."""
    found = _payload(dialect_models(NAME, model).payload)
    if found is None:
        raise Unsupported(
            f"InvokeModel wants a body of its own for {model}",
            hint="ask for it through Converse: a provider with the catalog row bedrock",
        )
    return found


# Fields that only one language has, and that Bedrock demands in it.
_MARKS: tuple[tuple[str, Payload], ...] = (
    ("anthropic_version", "anthropic_messages"),
    ("schemaVersion", "bedrock_converse"),
)


def payload_of_body(fields: JsonObject, model: str) -> Payload:
    """Return the language of a client's body. Its mark goes before the model, which need not be one of Bedrock's. Raises Unsupported."""
    return next((payload for mark, payload in _MARKS if mark in fields), None) or payload_of(model)


def payload_for(request: Request) -> Payload:
    """Return the language of the reply to a client's request: the one that its body was in."""
    return _payload(request.dialect) or payload_of(request.model)


def _payload(name: str) -> Payload | None:
    return next((payload for payload in get_args(Payload) if payload == name), None)


def payload_in(value: JsonObject) -> Payload | None:
    """Return the language a reply's first payload is in, or None if it is in none of them."""
    if "choices" in value:
        return "openai_chat"
    if value.keys() & _CONVERSE:
        return "bedrock_converse"
    return "anthropic_messages" if isinstance(value.get("type"), str) else None
