"""The operations of Gemini's servers beside replies: count tokens, list models, and embed.

Tokens are counted at `:countTokens`, models are listed at `GET /v1beta/models`, and vectors come from `:embedContent` for one content and
from `:batchEmbedContents` for several.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.gemini.request_in import decode_request
from bardo.dialects.gemini.wire import NAME, EmbedContentRequest, field_in
from bardo.dialects.shared.dialect import (
    CountForm,
    EmbeddingForm,
    ModelsForm,
    count_field,
    count_of,
    lost_fields,
    numbers,
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
from bardo.dialects.shared.structs import carried_fields, read
from bardo.streams.sse import encode_sse
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.events import ReplyStart
from bardo.values.operations import (
    Embeddings,
    EmbedInput,
    EmbedRequest,
    ModelInfo,
    NativeInput,
    Task,
    TokenCount,
    floats_of,
)
from bardo.values.request import Operation, Request
from bardo.values.usage import Usage
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
    whole = field_in(fields, "generateContentRequest")
    if whole is not None:
        body = encode_json(take(whole, dict, "generateContentRequest"))
    return decode_request(body, arrival)


def _encode_reply(count: TokenCount) -> bytes:
    return encode_json(with_bardo({"totalTokens": count.input_tokens}, {"tokens_approx": True} if count.approx else {}))


def encode_partial(value: object, start: ReplyStart) -> bytes:
    """Write a partial answer as a response without candidates."""
    return encode_sse(encode_json({"bardo": {"partial": value}}))


TOKEN_COUNT = CountForm(
    encode_request=_encode_request,
    decode_reply=lambda body: count_of(body, "totalTokens"),
    decode_request=_decode_request,
    encode_reply=_encode_reply,
)


def _model(model: ModelInfo) -> JsonObject:
    methods = [method for operation in model.operations for method in _METHODS.get(operation, ())]
    fields = {"name": f"models/{model.id}", "displayName": model.id, "supportedGenerationMethods": methods}
    described = {"description": model.about} if model.about else {}
    return {**fields, **described, **route_fields(model)}


MODELS = ModelsForm(encode_list=lambda models, _: _list(models), encode_model=lambda model: encode_json(_model(model)))


def _list(models: Sequence[ModelInfo]) -> bytes:
    return encode_json({"models": [_model(model) for model in models]})


ONE, BATCH = "embedContent", "batchEmbedContents"
_TASK_TYPES: dict[Task, str] = {
    "query": "RETRIEVAL_QUERY",
    "document": "RETRIEVAL_DOCUMENT",
    "similarity": "SEMANTIC_SIMILARITY",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
    "question_answering": "QUESTION_ANSWERING",
    "fact_verification": "FACT_VERIFICATION",
    "code_query": "CODE_RETRIEVAL_QUERY",
}
_TASKS = {word: task for task, word in _TASK_TYPES.items()}


def decode_embedding_request(body: bytes, arrival: Arrival) -> EmbedRequest:
    """Read a request of either endpoint. Raises InvalidRequest naming the field."""
    given = decode_object(body)
    own = {name: value for name, value in given.items() if name != "bardo"}
    if arrival.endpoint == BATCH:
        asked = required(own, "requests", list)
        if not asked:
            raise InvalidRequest("requests is empty", hint="give at least one", param="requests")
        requests = {f"requests[{place}]": item for place, item in enumerate(asked)}
    else:
        requests = {"": own}
    read_ones = {at: read(item, EmbedContentRequest, at) for at, item in requests.items()}
    items = [*read_ones.values()]
    dimensions = {
        count_field(item.output_dimensionality, f"{at}.outputDimensionality".removeprefix("."))
        for at, item in read_ones.items()
    }
    if len(dimensions) > 1:
        message = "all requests of a batch must ask for the same outputDimensionality"
        raise InvalidRequest(message, param="requests[1].outputDimensionality")
    words = list(dict.fromkeys(item.task_type for item in items))
    extra = {name: value for item in items for name, value in (carried_fields(item) or {}).items()}
    if len(words) > 1 or (words[0] and words[0] not in (*_TASKS, "TASK_TYPE_UNSPECIFIED")):
        extra["taskType"] = words if len(words) > 1 else words[0]
    if titles := [item.title for item in items if item.title]:
        extra["title"] = titles
    return EmbedRequest(
        model=arrival.model.removeprefix("models/"),
        inputs=tuple(_input(item.content, f"{at}.content".removeprefix(".")) for at, item in read_ones.items()),
        dimensions=dimensions.pop(),
        task=_TASKS.get(words[0] or "") if len(words) == 1 else None,
        endpoint=arrival.endpoint,
        dialect=NAME,
        extra=extra,
        body=own,
        options=read_options(given),
    )


def _input(content: JsonObject, at: str) -> EmbedInput:
    """Return the text of a content, or the content where it is more than text."""
    given = optional(content, "parts", list, f"{at}.") or []
    parts = [take(part, dict, f"{at}.parts[{place}]") for place, part in enumerate(given)]
    if not parts:
        raise InvalidRequest(f"{at}.parts is required", param=f"{at}.parts")
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "\n".join(texts) if len(texts) == len(parts) else NativeInput(NAME, content)


def encode_request(request: EmbedRequest, endpoint: EmbedEndpoint) -> WireRequest:
    """Write a request; what Gemini does not take is in `degraded`. Raises Unsupported for an input that is no text."""
    name = f"models/{request.model}"
    if request.dialect == NAME and request.body is not None:
        method = request.endpoint
        body = _with_model(request.body, name, request)
        degraded: tuple[Degradation, ...] = ()
    else:
        method = ONE if len(request.inputs) == 1 else BATCH
        asked = [_request(text, name, request) for text in texts_of(request, "Gemini")]
        body = asked[0] if method == ONE else {"requests": asked}
        degraded = lost_fields(request, "Gemini", truncate=request.truncate)
    path = f"models/{quote(request.model, safe='')}:{method}"
    return WireRequest(path=path, body=write_json(body), degraded=degraded)


def _with_model(body: JsonObject, name: str, request: EmbedRequest) -> JsonObject:
    requests = body.get("requests")
    if request.endpoint == BATCH and isinstance(requests, list):
        begin = request.part_of or 0
        asked = requests[begin : begin + len(request.inputs)]
        return {**body, "requests": [{**item, "model": name} for item in asked]}
    return {**body, "model": name}


def _request(text: str, name: str, request: EmbedRequest) -> JsonObject:
    written: JsonObject = {"model": name, "content": {"parts": [{"text": text}]}}
    if request.task is not None:
        written["taskType"] = _TASK_TYPES[request.task]
    if request.dimensions is not None:
        written["outputDimensionality"] = request.dimensions
    return written


def decode_reply(body: JsonObject, headers: object) -> Embeddings:
    """Read a reply of either endpoint. Raises WrongShape."""
    rows = [body["embedding"]] if "embedding" in body else want(body.get("embeddings"), list, "embeddings")
    usage = body.get("usageMetadata")
    tokens = usage.get("promptTokenCount") if isinstance(usage, dict) else None
    return Embeddings(
        vectors=tuple(
            numbers(want(row, dict, f"embeddings[{place}]").get("values"), f"embeddings[{place}].values")
            for place, row in enumerate(rows)
        ),
        usage=Usage(input_tokens=whole_number(tokens), raw=usage),
    )


def encode_reply(reply: Embeddings, request: EmbedRequest) -> bytes:
    """Write the vectors as the endpoint does that the client asked."""
    rows = [{"values": floats_of(vector)} for vector in reply.vectors]
    counted = reply.usage.input_tokens
    usage = {} if counted is None else {"usageMetadata": {"promptTokenCount": counted}}
    held: JsonObject = {"embeddings": rows} if request.endpoint == BATCH else {"embedding": rows[0]}
    return encode_json(with_bardo({**held, **usage}, reply.bardo))


EMBEDDINGS = EmbeddingForm(
    encode_request=encode_request,
    decode_reply=decode_reply,
    decode_request=decode_embedding_request,
    encode_reply=encode_reply,
)
