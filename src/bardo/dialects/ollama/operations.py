"""Ollama's `POST /api/embed`, the older `/api/embeddings` for one text, and its list of models, `GET /api/tags`.

Of the files behind the names of models, which Ollama describes, nothing is known.
"""

from __future__ import annotations

import hashlib

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.ollama.wire import NAME
from bardo.dialects.shared.dialect import (
    EmbeddingForm,
    ModelsForm,
    count_field,
    lost_fields,
    numbers,
    own_body,
    route_fields,
    texts_of,
    whole_number,
    with_bardo,
)
from bardo.dialects.shared.json_values import (
    JsonObject,
    decode_object,
    encode_json,
    optional,
    required,
    take,
    want,
    write_json,
)
from bardo.dialects.shared.options import read_options
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo, floats_of
from bardo.values.usage import Usage
from bardo.values.wire import Arrival, WireRequest

OLDER = "embeddings"
"""The endpoint of older clients: one text, and a vector that is not brought to length 1."""
_READ = frozenset(("model", "input", "prompt", "truncate", "dimensions", "bardo"))


def decode_request(body: bytes, arrival: Arrival) -> EmbedRequest:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    older = arrival.endpoint == OLDER
    truncate = optional(fields, "truncate", bool)
    return EmbedRequest(
        model=required(fields, "model", str),
        inputs=(required(fields, "prompt", str),) if older else _inputs(fields.get("input")),
        dimensions=count_field(fields.get("dimensions"), "dimensions"),
        truncate=None if truncate is None else "end" if truncate else "none",
        endpoint=arrival.endpoint,
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in _READ and value is not None},
        body={name: value for name, value in fields.items() if name != "bardo"},
        options=read_options(fields),
    )


def _inputs(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not value:
        raise InvalidRequest("input is required", hint="give a text, or a list of texts", param="input")
    return tuple(take(text, str, f"input[{place}]") for place, text in enumerate(take(value, list, "input")))


def encode_request(request: EmbedRequest, endpoint: EmbedEndpoint) -> WireRequest:
    """Write a request; what Ollama does not take is in `degraded`. Raises Unsupported for an input that is no text."""
    own = own_body(request, NAME)
    if own is not None:
        return WireRequest(path=OLDER if request.endpoint == OLDER else endpoint.path, body=write_json(own))
    body: JsonObject = {"model": request.model, "input": texts_of(request, "Ollama")}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    degraded = lost_fields(request, "Ollama", task=request.task)
    if request.truncate is not None:
        body["truncate"] = request.truncate != "none"
    if request.truncate == "start":
        degraded += (Degradation("truncate", asked="start", sent="end", why="Ollama cuts off the end"),)
    return WireRequest(path=endpoint.path, body=write_json(body), degraded=degraded)


def decode_reply(body: JsonObject, headers: object) -> Embeddings:
    """Read a reply of either endpoint. Raises WrongShape."""
    rows = [body["embedding"]] if "embedding" in body else want(body.get("embeddings"), list, "embeddings")
    model = body.get("model")
    raw = {name: value for name, value in body.items() if name not in ("embedding", "embeddings", "model")}
    return Embeddings(
        vectors=tuple([*numbers(row, f"embeddings[{place}]")] for place, row in enumerate(rows)),
        model=model if isinstance(model, str) else "",
        usage=Usage(input_tokens=whole_number(body.get("prompt_eval_count")), raw=raw or None),
    )


def encode_reply(reply: Embeddings, request: EmbedRequest) -> bytes:
    """Write the vectors as the endpoint does that the client asked."""
    vectors = [floats_of(vector) for vector in reply.vectors]
    if request.endpoint == OLDER:
        return encode_json(with_bardo({"embedding": vectors[0] if vectors else []}, reply.bardo))
    counted = {} if reply.usage.input_tokens is None else {"prompt_eval_count": reply.usage.input_tokens}
    return encode_json(with_bardo({"model": reply.model, "embeddings": vectors, **counted}, reply.bardo))


EMBEDDINGS = EmbeddingForm(
    encode_request=encode_request, decode_reply=decode_reply, decode_request=decode_request, encode_reply=encode_reply
)


EPOCH = "1970-01-01T00:00:00Z"


def details(maker: str | None) -> JsonObject:
    """Return how Ollama describes a model; of its file nothing is known."""
    families = [maker] if maker else None
    return {
        "parent_model": "",
        "format": "",
        "family": maker or "",
        "families": families,
        "parameter_size": "",
        "quantization_level": "",
    }


def _model_entry(model: ModelInfo) -> JsonObject:
    """Return the entry of a model in a list. The digest is of its name, since nothing is known of its file."""
    name = model.id
    digest = hashlib.sha256(name.encode()).hexdigest()
    fields = {"name": name, "model": name, "modified_at": EPOCH, "size": 0, "digest": digest, "details": details("")}
    return {**fields, **route_fields(model)}


def _model(model: ModelInfo) -> bytes:
    return encode_json(_model_entry(model))


MODELS = ModelsForm(
    encode_list=lambda models, _: encode_json({"models": [_model_entry(model) for model in models]}),
    encode_model=_model,
)
