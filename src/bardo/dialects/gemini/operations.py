"""What Gemini's servers do beside replies: count tokens at `:countTokens`, and list models at `GET /v1beta/models`; and what bardo adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.gemini.constants import split_fields
from bardo.dialects.gemini.decode_request import decode_request
from bardo.dialects.jsonfield import decode_object, take
from bardo.dialects.operations import CountForm, ModelsForm, count_of, route_fields, with_bardo
from bardo.dialects.wire import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.events import ReplyStart
from bardo.values.operations import ModelInfo, TokenCount
from bardo.values.request import Operation, Request
from bardo.values.wire import Arrival, WireRequest

_METHODS: dict[Operation, tuple[str, ...]] = {
    "generate": ("generateContent", "streamGenerateContent"),
    "embed": ("embedContent", "batchEmbedContents"),
    "count_tokens": ("countTokens",),
}


def _encode_request(wire: WireRequest, model: str) -> WireRequest:
    named = wire.path.rpartition(":")[0]
    body = {**msgspec.json.decode(wire.body), "model": f"models/{model}"}
    path = f"{named}:countTokens"
    return msgspec.structs.replace(wire, path=path, body=encode_json({"generateContentRequest": body}))


def _decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read the contents to be counted, or the whole request that may stand around them. Raises InvalidRequest."""
    fields = decode_object(body)
    known, _ = split_fields(fields, ("generateContentRequest",))
    whole = known.get("generateContentRequest")
    if whole is not None:
        body = encode_json(take(whole, dict, "generateContentRequest"))
    return decode_request(body, arrival)


def _encode_reply(count: TokenCount) -> bytes:
    return encode_json(with_bardo({"totalTokens": count.input_tokens}, {"tokens_approx": True} if count.approx else {}))


def encode_partial(value: Any, start: ReplyStart) -> bytes:
    """Write a partial answer as a response without candidates."""
    return encode_sse(encode_json({"bardo": {"partial": value}}))


TOKEN_COUNT = CountForm(
    encode_request=_encode_request,
    decode_reply=lambda body: count_of(body, "totalTokens"),
    decode_request=_decode_request,
    encode_reply=_encode_reply,
)


def _model(model: ModelInfo) -> dict[str, Any]:
    methods = [method for operation in model.operations for method in _METHODS.get(operation, ())]
    fields = {"name": f"models/{model.id}", "displayName": model.id, "supportedGenerationMethods": methods}
    described = {"description": model.about} if model.about else {}
    return {**fields, **described, **route_fields(model)}


MODELS = ModelsForm(
    encode_list=lambda models: _list(models),
    encode_model=lambda model: encode_json(_model(model)),
)


def _list(models: Sequence[ModelInfo]) -> bytes:
    return encode_json({"models": [_model(model) for model in models]})
