"""OpenAI's `POST /v1/responses/input_tokens`."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.openai_responses.decode_request import decode_request
from bardo.dialects.operations import CountForm, count_of, with_bardo
from bardo.dialects.wire import encode_json
from bardo.values.operations import TokenCount
from bardo.values.wire import WireRequest

# What the endpoint takes, by OpenAI's reference of 2026-11; it refuses any other field.
_TAKEN = (
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def _encode_request(wire: WireRequest, model: str) -> WireRequest:
    body = msgspec.json.decode(wire.body)
    taken = {name: body[name] for name in _TAKEN if name in body}
    return msgspec.structs.replace(wire, path="responses/input_tokens", body=encode_json(taken))


def _encode_reply(count: TokenCount) -> bytes:
    fields: dict[str, Any] = {"object": "response.input_tokens", "input_tokens": count.input_tokens}
    return encode_json(with_bardo(fields, {"tokens_approx": True} if count.approx else {}))


TOKEN_COUNT = CountForm(
    encode_request=_encode_request,
    decode_reply=lambda body: count_of(body, "input_tokens"),
    decode_request=lambda body, arrival: decode_request(body, arrival),
    encode_reply=_encode_reply,
)
