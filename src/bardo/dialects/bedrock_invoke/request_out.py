"""A Request for InvokeModel: the body in the payload's language, with what Bedrock wants otherwise."""

from __future__ import annotations

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.bedrock_converse.request_out import path_of
from bardo.dialects.bedrock_converse.wire import ADDITIONAL
from bardo.dialects.bedrock_invoke.payloads import payload_of
from bardo.dialects.bedrock_invoke.signatures import messages_for_claude
from bardo.dialects.shared.dialect import Dialect
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.losses import Losses
from bardo.values.request import Request

VERSION = "bedrock-2023-05-31"
SCHEMA = "messages-v1"

# Amazon's page on Claude's request body lists these; any other is answered with 400.
_BETAS = frozenset(
    (
        "computer-use-2024-10-22",
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "dev-full-thinking-2025-05-14",
        "effort-2025-11-24",
        "interleaved-thinking-2025-05-14",
        "output-128k-2025-02-19",
        "token-efficient-tools-2025-02-19",
        "tool-examples-2025-10-29",
        "tool-search-tool-2025-10-19",
    )
)
# Fields of Anthropic's own service.
_ABSENT = ("container", "inference_geo", "mcp_servers", "service_tier", "speed", "thread")


def payload_dialect(model: str) -> Dialect:
    """Return the dialect of a model's body. Raises Unsupported for a model whose body has a language of its own."""
    return dialect(payload_of(model))


def request_path(request: Request) -> str:
    """Return the path of a call to InvokeModel."""
    return path_of(request, "invoke", "invoke-with-response-stream")


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body. Raises Unsupported for a model whose body has a language of its own."""
    payload = payload_dialect(request.model)
    if payload.name == "anthropic_messages":
        return _claude(request, row, losses)
    body = payload.encode_body(request, row, losses)
    return _nova(body) if payload.name == "bedrock_converse" else body


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return what is written of thinking in the dialect of the model's body."""
    return payload_dialect(request.model).encode_control(request, losses)


def _claude(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    messages, degraded = messages_for_claude(request.messages)
    losses.add_all(degraded)
    body = dialect("anthropic_messages").encode_body(msgspec.structs.replace(request, messages=messages), row, losses)
    for name in _ABSENT:
        if name in body:
            losses.lose(name, body.pop(name), "Bedrock has no such field")
    # Model and streaming stand in the path.
    left = {name: value for name, value in body.items() if name not in ("model", "stream")}
    return {"anthropic_version": VERSION, **_betas(request, losses), **left}


def _betas(request: Request, losses: Losses) -> JsonObject:
    """Return the betas the client asked for in a header, which Bedrock takes in the body."""
    if request.dialect != "anthropic_messages":
        return {}
    asked = [name.strip() for name in request.headers.get("anthropic-beta", "").split(",") if name.strip()]
    kept = [name for name in asked if name in _BETAS]
    if len(kept) < len(asked):
        losses.lose("anthropic-beta", asked, "Bedrock does not know all of these betas", sent=kept)
    return {"anthropic_beta": kept} if kept else {}


def _nova(body: JsonObject) -> JsonObject:
    """Return Converse's body with the model's own fields where Nova has them: inside `inferenceConfig`."""
    additional = dict(body.pop(ADDITIONAL, {}))
    nested = additional.pop("inferenceConfig", {})
    config = {**body.pop("inferenceConfig", {}), **(nested if isinstance(nested, dict) else {}), **additional}
    if config:
        body["inferenceConfig"] = config
    return {"schemaVersion": SCHEMA, **body}
