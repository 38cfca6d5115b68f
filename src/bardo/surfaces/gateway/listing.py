"""The small endpoints: lists of models in each dialect's shape, and an estimate of tokens."""

from __future__ import annotations

from typing import Any

from bardo.dialects import dialect
from bardo.edge.directory import Directory
from bardo.surfaces.gateway.http import Scope, header
from bardo.surfaces.gateway.routes import Route
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.request import Request
from bardo.values.usage import estimate_tokens
from bardo.values.wire import Arrival


async def list_models(directory: Directory, route: Route, scope: Scope) -> dict[str, Any]:
    """Return every model that can be asked for, in the shape the client's SDK reads.

    A model that several providers serve stands once under its bare name, for the first of them, and as `provider/model` for the others.
    """
    names: dict[str, str] = {}
    for provider in await directory.models():
        for model in provider.models:
            names[model if model not in names else f"{provider.id}/{model}"] = provider.id
    # Three libraries ask at /v1/models; their headers tell which.
    if route.dialect == "gemini" or header(scope, b"x-goog-api-client") or header(scope, b"x-goog-api-key"):
        return {"models": [_gemini(name) for name in names]}
    if header(scope, b"anthropic-version"):
        return _anthropic(list(names))
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": owner} for name, owner in names.items()]
    return {"object": "list", "data": rows}


def _gemini(name: str) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent"]
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}


def _anthropic(names: list[str]) -> dict[str, Any]:
    rows = [{"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"} for name in names]
    first, last = (names[0], names[-1]) if names else (None, None)
    return {"data": rows, "has_more": False, "first_id": first, "last_id": last}


def count_tokens(body: bytes) -> dict[str, Any]:
    """Return an estimate of a request's input tokens, said to be one. Raises InvalidRequest."""
    request = dialect("anthropic_messages").decode_request(body, Arrival(stream=False, counting=True))
    return {"input_tokens": estimate_request(request), "bardo": {"tokens_approx": True}}


def estimate_request(request: Request) -> int:
    """Estimate the input tokens of a request: its text, its tools, and four for each message."""
    count = 0
    for message in request.messages:
        count += 4
        for block in message.blocks:
            match block:
                case TextBlock(text=text):
                    count += estimate_tokens(text)
                case ToolCallBlock(name=name, arguments=arguments):
                    count += estimate_tokens(name + arguments)
                case ToolResultBlock():
                    count += estimate_tokens(block.text)
                case ReasoningBlock():
                    count += estimate_tokens(block.readable)
    return count + sum(estimate_tokens(f"{tool.name}{tool.description}{tool.schema}") for tool in request.tools)
