"""What Amazon Bedrock does beside replies: vectors by InvokeModel, and for clients CountTokens and lists of inference profiles.

Titan takes one text in words of its own, Cohere's models take what Cohere takes. What is counted is a body of InvokeModel in base64, or a
Converse request.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.bedrock_converse import DIALECT as CONVERSE
from bardo.dialects.bedrock_invoke.request_in import decode_request as decode_invoked
from bardo.dialects.cohere.operations import decode_vectors, encode_texts
from bardo.dialects.shared.dialect import (
    CountForm,
    EmbeddingForm,
    ModelsForm,
    lost_fields,
    numbers,
    page_size,
    place_of,
    texts_of,
    whole_number,
    with_bardo,
)
from bardo.dialects.shared.json_values import JsonObject, decode_object, optional, required, write_json
from bardo.dialects.shared.spellings import path_segment
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo, TokenCount
from bardo.values.request import Request
from bardo.values.usage import Usage
from bardo.values.wire import Arrival, WireRequest

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


def _decode_counted(body: bytes, arrival: Arrival) -> Request:
    """Read a CountTokens request, whose input is one of two. Raises InvalidRequest naming the field."""
    given = required(decode_object(body), "input", dict)
    converse = optional(given, "converse", dict, "input.")
    if converse is not None:
        return CONVERSE.decode_request(write_json(converse), arrival)
    at = "input.invokeModel.body"
    invoked = required(required(given, "invokeModel", dict, "input."), "body", str, "input.invokeModel.")
    try:
        body = b64decode(invoked, validate=True)
    except ValueError:
        raise InvalidRequest(f"{at} is not base64", hint="encode the body of InvokeModel in base64", param=at) from None
    return decode_invoked(body, arrival)


def _encode_count(count: TokenCount) -> bytes:
    return write_json(with_bardo({"inputTokens": count.input_tokens}, {"tokens_approx": True} if count.approx else {}))


TOKEN_COUNT = CountForm(decode_request=_decode_counted, encode_reply=_encode_count)


_MOST_PROFILES = 1000
_SYSTEM = "SYSTEM_DEFINED"


def _profile(model: ModelInfo) -> JsonObject:
    """Return a model as an inference profile of AWS, which is asked for by the id or by the ARN."""
    arn = f"arn:aws:bedrock:us-east-1:000000000000:inference-profile/{model.id}"
    made = "1970-01-01T00:00:00Z"
    return {
        "inferenceProfileId": model.id,
        "inferenceProfileName": model.display_name or model.id,
        "inferenceProfileArn": arn,
        "description": model.about or f"{model.model or model.id} at {model.provider}",
        "models": [{"modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{model.id}"}],
        "status": "ACTIVE",
        "type": _SYSTEM,
        "createdAt": made,
        "updatedAt": made,
    }


def _profiles(models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
    """Write one page of the inference profiles: those from `nextToken` on, which is the id of a model. None of them is a user's own."""
    size = page_size(query, "maxResults", _MOST_PROFILES) if "maxResults" in query else len(models)
    if query.get("type", _SYSTEM) != _SYSTEM:
        models = ()
    elif "nextToken" in query:
        models = models[place_of(models, query["nextToken"], "nextToken") :]
    more = {"nextToken": models[size].id} if size < len(models) else {}
    return write_json({"inferenceProfileSummaries": [_profile(model) for model in models[:size]], **more})


MODELS = ModelsForm(encode_list=_profiles, encode_model=lambda model: write_json(_profile(model)), keeps_claude=True)
