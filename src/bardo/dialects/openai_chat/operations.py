"""The operations of OpenAI's servers, and of the many compatible ones, beside replies: embed at `POST /v1/embeddings`, and list models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bardo.catalog.rows import EmbedEndpoint
from bardo.dialects.openai_chat.wire import NAME, Embedding
from bardo.dialects.shared.dialect import (
    EmbeddingForm,
    ModelsForm,
    count_field,
    lost_fields,
    numbers,
    own_body,
    route_fields,
    whole_number,
    with_bardo,
)
from bardo.dialects.shared.json_values import (
    JsonObject,
    JsonValue,
    WrongShape,
    decode_object,
    encode_json,
    take,
    want,
    write_json,
)
from bardo.dialects.shared.options import read_options
from bardo.dialects.shared.structs import names_of, read
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, Unsupported
from bardo.values.operations import (
    Embeddings,
    EmbedInput,
    EmbedRequest,
    ModelInfo,
    NativeInput,
    Task,
    Vector,
    base64_of,
    floats_of,
)
from bardo.values.usage import Usage
from bardo.values.wire import Arrival, WireRequest

_READ = names_of(Embedding)
_INPUT = "input must be a text, a list of texts, a list of tokens, or a list of such lists"
# The field that hosts of other makers' models (NVIDIA, Voyage, Cohere's compatible route) have, with the words they use.
_TASKS: dict[str, Task] = {
    "query": "query",
    "search_query": "query",
    "document": "document",
    "passage": "document",
    "search_document": "document",
    "classification": "classification",
    "clustering": "clustering",
}


def decode_request(body: bytes, arrival: Arrival) -> EmbedRequest:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    asked = read(fields, Embedding, "")
    encoding, kind = asked.encoding_format or "float", asked.input_type
    if encoding not in ("float", "base64"):
        raise InvalidRequest(f"encoding_format is {encoding!r}", hint="use float or base64", param="encoding_format")
    task = _TASKS.get(kind) if isinstance(kind, str) else None
    fields_read = _READ | {"input_type"} if task is not None else _READ
    return EmbedRequest(
        model=asked.model,
        inputs=_inputs(asked.input),
        dimensions=count_field(asked.dimensions, "dimensions"),
        encoding="base64" if encoding == "base64" else "float",
        task=task,
        dialect=NAME,
        extra={name: value for name, value in fields.items() if name not in fields_read and value is not None},
        body={name: value for name, value in fields.items() if name != "bardo"},
        options=read_options(fields),
    )


def _inputs(value: JsonValue) -> tuple[EmbedInput, ...]:
    if isinstance(value, str):
        return (value,)
    if value is None:
        raise InvalidRequest("input is required", param="input")
    listed = take(value, list, "input")
    if not listed:
        raise InvalidRequest("input is empty", hint=_INPUT, param="input")
    if _are_tokens(listed):
        return (tuple(listed),)
    return tuple(_input(item, f"input[{place}]") for place, item in enumerate(listed))


def _input(value: JsonValue, at: str) -> EmbedInput:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and _are_tokens(value):
        return tuple(value)
    if isinstance(value, dict):
        return NativeInput(NAME, value)
    raise InvalidRequest(_INPUT, param=at)


def _are_tokens(value: list[JsonValue]) -> bool:
    return all(type(item) is int for item in value)


def encode_request(request: EmbedRequest, endpoint: EmbedEndpoint) -> WireRequest:
    """Write a request; what this endpoint does not take is in `degraded`. Raises Unsupported for an input of another dialect."""
    own = own_body(request, NAME)
    if own is not None:
        if request.part_of is not None:
            own["input"] = [value.value if isinstance(value, NativeInput) else value for value in request.inputs]
        if request.dimensions is None:
            own.pop("dimensions", None)
        return WireRequest(path=endpoint.path, body=write_json(own))
    for place, value in enumerate(request.inputs):
        if isinstance(value, NativeInput) and value.dialect != NAME:
            raise Unsupported("this provider makes vectors of texts only", param=f"input[{place}]")
    body: JsonObject = {
        "model": request.model,
        "input": [value.value if isinstance(value, NativeInput) else value for value in request.inputs],
    }
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    degraded = lost_fields(request, "this provider's endpoint", truncate=request.truncate)
    task = request.task
    if task is not None and task in endpoint.tasks:
        body["input_type"] = endpoint.tasks[task]
    elif task is not None:
        degraded = (Degradation("task", asked=task, why="this provider is not told what vectors are for"), *degraded)
    return WireRequest(path=endpoint.path, body=write_json(body), degraded=degraded)


def decode_reply(body: JsonObject, headers: Mapping[str, str]) -> Embeddings:
    """Read a reply. Raises WrongShape."""
    rows = [want(row, dict, f"data[{place}]") for place, row in enumerate(want(body.get("data"), list, "data"))]
    rows.sort(key=lambda row: row["index"] if isinstance(row.get("index"), int) else 0)
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    model = body.get("model")
    return Embeddings(
        vectors=tuple(_vector(row.get("embedding"), place) for place, row in enumerate(rows)),
        model=model if isinstance(model, str) else "",
        usage=Usage(input_tokens=whole_number(counts.get("prompt_tokens")), raw=usage),
    )


def _vector(value: JsonValue, place: int) -> Vector:
    if isinstance(value, str):
        try:
            floats_of(value)
        except ValueError as problem:
            raise WrongShape(f"data[{place}].embedding: {problem}") from None
        return value
    return numbers(value, f"data[{place}].embedding")


def encode_reply(reply: Embeddings, request: EmbedRequest) -> bytes:
    """Write the vectors in the encoding that the client asked for."""
    written = base64_of if request.encoding == "base64" else floats_of
    rows = [
        {"object": "embedding", "index": place, "embedding": written(vector)}
        for place, vector in enumerate(reply.vectors)
    ]
    tokens = reply.usage.input_tokens or 0
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return encode_json(with_bardo({"object": "list", "data": rows, "model": reply.model, "usage": usage}, reply.bardo))


EMBEDDINGS = EmbeddingForm(
    encode_request=encode_request, decode_reply=decode_reply, decode_request=decode_request, encode_reply=encode_reply
)


def _model(model: ModelInfo) -> JsonObject:
    # When a model was made is not known: 0 is what servers of local models say too.
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider, **route_fields(model)}


def _list(models: Sequence[ModelInfo]) -> bytes:
    return encode_json({"object": "list", "data": [_model(model) for model in models]})


MODELS = ModelsForm(encode_list=lambda models, _: _list(models), encode_model=lambda model: encode_json(_model(model)))
