"""A Request for InvokeModel: the body in the payload's language, with what Bedrock wants otherwise."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.bedrock_converse.decode_controls import ADDITIONAL
from bardo.dialects.bedrock_converse.encode_request import encode_body, path_of
from bardo.dialects.bedrock_invoke.families import payload_of
from bardo.dialects.bedrock_invoke.signatures import messages_for_claude
from bardo.dialects.wire import write_json
from bardo.values.degradation import Degradation, distinct
from bardo.values.request import Request
from bardo.values.wire import WireRequest

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


def encode_request(request: Request, row: ProviderRow) -> WireRequest:
    """Write path and body. Raises Unsupported for a model whose body has a language of its own."""
    payload = payload_of(request.model)
    if payload == "anthropic_messages":
        body, degraded = _claude(request, row)
    elif payload == "bedrock_converse":
        body, degraded = _nova(request)
    else:
        written = dialect(payload).encode_request(request, row)
        body, degraded = msgspec.json.decode(written.body), list(written.degraded)
    path = path_of(request, "invoke", "invoke-with-response-stream")
    return WireRequest(path=path, body=write_json(body), degraded=distinct(degraded))


def _claude(request: Request, row: ProviderRow) -> tuple[dict[str, Any], list[Degradation]]:
    messages, degraded = messages_for_claude(request.messages)
    written = dialect("anthropic_messages").encode_request(msgspec.structs.replace(request, messages=messages), row)
    degraded += written.degraded
    body = msgspec.json.decode(written.body)
    for name in _ABSENT:
        if name in body:
            degraded.append(Degradation(name, asked=body.pop(name), why="Bedrock has no such field"))
    # Model and streaming stand in the path.
    left = {name: value for name, value in body.items() if name not in ("model", "stream")}
    return {"anthropic_version": VERSION, **_betas(request, degraded), **left}, degraded


def _betas(request: Request, degraded: list[Degradation]) -> dict[str, Any]:
    """Return the betas the client asked for in a header, which Bedrock takes in the body."""
    if request.dialect != "anthropic_messages":
        return {}
    asked = [name.strip() for name in request.headers.get("anthropic-beta", "").split(",") if name.strip()]
    kept = [name for name in asked if name in _BETAS]
    if len(kept) < len(asked):
        why = "Bedrock does not know all of these betas"
        degraded.append(Degradation("anthropic-beta", asked=asked, sent=kept, why=why))
    return {"anthropic_beta": kept} if kept else {}


def _nova(request: Request) -> tuple[dict[str, Any], list[Degradation]]:
    """Return Converse's body with the model's own fields where Nova has them: inside `inferenceConfig`."""
    body, degraded = encode_body(request)
    additional = dict(body.pop(ADDITIONAL, {}))
    nested = additional.pop("inferenceConfig", {})
    config = {**body.pop("inferenceConfig", {}), **(nested if isinstance(nested, dict) else {}), **additional}
    if config:
        body["inferenceConfig"] = config
    return {"schemaVersion": SCHEMA, **body}, list(degraded)
