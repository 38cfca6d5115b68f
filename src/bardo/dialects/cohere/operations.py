"""Cohere's `POST /v2/embed`, and its list of models, `GET /v1/models`: of each the name, and the endpoints that it answers at."""

from __future__ import annotations

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.cohere.wire import NAME
from bardo.dialects.shared.dialect import (
    EmbeddingForm,
    ModelsForm,
    lost_fields,
    numbers,
    own_body,
    route_fields,
    texts_of,
    whole_number,
)
from bardo.dialects.shared.json_values import JsonObject, encode_json, want, write_json
from bardo.values.degradation import Degradation
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo, Task
from bardo.values.usage import Usage
from bardo.values.wire import WireRequest

_TASKS: dict[Task, str] = {
    "query": "search_query",
    "document": "search_document",
    "classification": "classification",
    "clustering": "clustering",
}
_NEAREST: dict[Task, str] = {
    "similarity": "clustering",
    "question_answering": "search_query",
    "fact_verification": "search_query",
    "code_query": "search_query",
}
_ASSUMED = "search_document"


def encode_request(request: EmbedRequest, endpoint: EmbedEndpoint) -> WireRequest:
    """Write a request; what Cohere does not take is in `degraded`. Raises Unsupported for an input that is no text."""
    own = own_body(request, NAME)
    if own is not None:
        return WireRequest(path=endpoint.path, body=write_json(own))
    body, degraded = encode_texts(request)
    return WireRequest(path=endpoint.path, body=write_json({"model": request.model, **body}), degraded=degraded)


def encode_texts(request: EmbedRequest) -> tuple[JsonObject, tuple[Degradation, ...]]:
    """Return a body without the model, and what it does not say: Bedrock takes the same. Raises Unsupported."""
    kind, changed = _input_type(request.task)
    body: JsonObject = {"texts": texts_of(request, "Cohere"), "input_type": kind, "embedding_types": ["float"]}
    if request.dimensions is not None:
        body["output_dimension"] = request.dimensions
    if request.truncate is not None:
        body["truncate"] = request.truncate.upper()
    return body, (*changed, *lost_fields(request, "Cohere"))


def _input_type(task: Task | None) -> tuple[str, tuple[Degradation, ...]]:
    if task is None:
        why = "Cohere must be told what vectors are for"
        return _ASSUMED, (Degradation("input_type", sent=_ASSUMED, why=why),)
    if task in _TASKS:
        return _TASKS[task], ()
    return _NEAREST[task], (Degradation("task", asked=task, sent=_NEAREST[task], why="the nearest that Cohere knows"),)


def decode_reply(body: JsonObject, headers: object) -> Embeddings:
    """Read a reply. Raises WrongShape."""
    meta = body.get("meta")
    billed = meta.get("billed_units") if isinstance(meta, dict) else None
    tokens = billed.get("input_tokens") if isinstance(billed, dict) else None
    return Embeddings(vectors=decode_vectors(body), usage=Usage(input_tokens=whole_number(tokens), raw=meta))


def decode_vectors(body: JsonObject) -> tuple[list[float], ...]:
    """Return the vectors of a reply: under their type, or at once where no type was named. Raises WrongShape."""
    held = body.get("embeddings")
    rows = want(held.get("float") if isinstance(held, dict) else held, list, "embeddings")
    return tuple(numbers(row, f"embeddings[{place}]") for place, row in enumerate(rows))


EMBEDDINGS = EmbeddingForm(encode_request=encode_request, decode_reply=decode_reply)


_ENDPOINTS = {"generate": "chat", "embed": "embed"}


def _entry(model: ModelInfo) -> JsonObject:
    endpoints = [_ENDPOINTS[operation] for operation in model.operations if operation in _ENDPOINTS]
    return {"name": model.id, "endpoints": endpoints, "finetuned": False, **route_fields(model)}


MODELS = ModelsForm(
    encode_list=lambda models, _: encode_json({"models": [_entry(model) for model in models]}),
    encode_model=lambda model: encode_json(_entry(model)),
)
