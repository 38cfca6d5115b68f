"""Amazon Bedrock's `POST /model/{modelId}/count-tokens`, which takes what Converse takes."""

from __future__ import annotations

import msgspec

from bardo.dialects.operations import CountForm, count_of
from bardo.dialects.wire import encode_json
from bardo.values.wire import WireRequest

# What of a Converse request has tokens, by Amazon's reference of 2026-11; the endpoint refuses any other field.
_TAKEN = ("messages", "system", "toolConfig", "additionalModelRequestFields")


def _encode_request(wire: WireRequest, model: str) -> WireRequest:
    body = msgspec.json.decode(wire.body)
    taken = {name: body[name] for name in _TAKEN if name in body}
    path = f"{wire.path.rpartition('/')[0]}/count-tokens"
    return msgspec.structs.replace(wire, path=path, body=encode_json({"input": {"converse": taken}}))


TOKEN_COUNT = CountForm(
    encode_request=_encode_request,
    decode_reply=lambda body: count_of(body, "inputTokens"),
)
