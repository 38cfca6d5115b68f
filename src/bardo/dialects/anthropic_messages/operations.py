"""Anthropic's operations beside replies: count tokens at `POST /v1/messages/count_tokens`, and list models at `GET /v1/models`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bardo.dialects.anthropic_messages.request_in import decode_request
from bardo.dialects.shared.dialect import CountForm, ModelsForm, count_of, page_size, place_of, route_fields, with_bardo
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.values.operations import ModelInfo, TokenCount
from bardo.values.wire import WireRequest

# What the endpoint takes, by Anthropic's reference of 2026-11 and its betas; it refuses any other field.
_COUNTED_FIELDS = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed",
    "context_management", "mcp_servers",
)  # fmt: skip


def _encode_request(wire: WireRequest, model: str) -> WireRequest:
    body = msgspec.json.decode(wire.body)
    taken = {name: body[name] for name in _COUNTED_FIELDS if name in body}
    return msgspec.structs.replace(wire, path="messages/count_tokens", body=encode_json(taken))


def _encode_reply(count: TokenCount) -> bytes:
    fields: JsonObject = {"input_tokens": count.input_tokens}
    return encode_json(with_bardo(fields, {"tokens_approx": True} if count.approx else {}))


TOKEN_COUNT = CountForm(
    encode_request=_encode_request,
    decode_reply=lambda body: count_of(body, "input_tokens"),
    decode_request=lambda body, arrival: decode_request(body, arrival),
    encode_reply=_encode_reply,
)


_MOST_LISTED = 1000
"""Anthropic's own pages have 20 models if the client does not say how many; here the list is whole then, for programs that ask once."""


def _model(model: ModelInfo) -> JsonObject:
    # Anthropic's reference: the beginning of time stands where the date of release is not known.
    made = "1970-01-01T00:00:00Z"
    other = model.route == "alias" or bool(model.display_name)
    about = model.about or (f"{model.model or model.display_name} at {model.provider}" if other else "")
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.display_name or model.id,
        "created_at": made,
        "lifecycle": "active",
        # Claude Code shows it beside the name (code.claude.com, llm-gateway-protocol, 2026-11).
        **({"description": about} if about else {}),
        **route_fields(model),
    }


def _list(models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
    """Write one page: those behind `after_id`, or those right before `before_id`."""
    size = page_size(query, "limit", _MOST_LISTED) if "limit" in query else len(models)
    if "after_id" in query:
        models = models[place_of(models, query["after_id"], "after_id") + 1 :]
    if "before_id" in query:
        models = models[: place_of(models, query["before_id"], "before_id")]
    page = models[-size:] if "before_id" in query and size else models[:size]
    first, last = (page[0].id, page[-1].id) if page else (None, None)
    rows = [_model(model) for model in page]
    return encode_json({"data": rows, "has_more": len(page) < len(models), "first_id": first, "last_id": last})


MODELS = ModelsForm(encode_list=_list, encode_model=lambda model: encode_json(_model(model)), keeps_claude=True)
