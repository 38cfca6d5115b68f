"""Vectors by Amazon Bedrock's InvokeModel: Titan takes one text in words of its own, Cohere's models take what Cohere takes."""

from __future__ import annotations

from collections.abc import Mapping

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.cohere.operations import decode_vectors, encode_texts
from bardo.dialects.shared.dialect import EmbeddingForm, lost_fields, numbers, texts_of, whole_number
from bardo.dialects.shared.json_values import JsonObject, write_json
from bardo.dialects.shared.spellings import path_segment
from bardo.values.degradation import Degradation
from bardo.values.operations import Embeddings, EmbedRequest
from bardo.values.usage import Usage
from bardo.values.wire import WireRequest

_COUNT_HEADER = "x-amzn-bedrock-input-token-count"


def encode_request(request: EmbedRequest, endpoint: EmbedEndpoint) -> WireRequest:
    """Write a request in the words of the model's family; the rest is in `degraded`. Raises Unsupported for an input that is no text."""
    body, degraded = encode_texts(request) if endpoint.payload == "cohere" else _titan(request)
    path = f"model/{path_segment(request.model)}/invoke"
    return WireRequest(path=path, body=write_json(body), degraded=degraded)


def _titan(request: EmbedRequest) -> tuple[JsonObject, tuple[Degradation, ...]]:
    """Titan takes one text in a call: the row says so, and the calls are made one after the other."""
    body: JsonObject = {"inputText": texts_of(request, "Titan")[0]}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    return body, lost_fields(request, "Titan", task=request.task, truncate=request.truncate)


def decode_reply(body: JsonObject, headers: Mapping[str, str]) -> Embeddings:
    """Read a reply of either family. Raises WrongShape."""
    if "embedding" in body:
        tokens = whole_number(body.get("inputTextTokenCount"))
        raw = {name: value for name, value in body.items() if name.endswith("TokenCount")}
        return Embeddings(
            vectors=(numbers(body["embedding"], "embedding"),), usage=Usage(input_tokens=tokens, raw=raw or None)
        )
    counted = headers.get(_COUNT_HEADER, "")
    tokens = int(counted) if counted.isascii() and counted.isdigit() and len(counted) < 16 else None
    return Embeddings(vectors=decode_vectors(body), usage=Usage(input_tokens=tokens))


EMBEDDINGS = EmbeddingForm(encode_request=encode_request, decode_reply=decode_reply)
