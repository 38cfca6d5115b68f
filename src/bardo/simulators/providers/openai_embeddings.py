"""OpenAI's embeddings, and those of the servers compatible with it, refusing what OpenAI refuses."""

from __future__ import annotations

from bardo.simulators import chat_request
from bardo.simulators.embeddings import count_tokens, dimensions_of, encode_base64, read_texts, vector
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact

_FIELDS = ("input", "model", "dimensions", "encoding_format", "user")
_MOST_INPUTS = 2048


def embeddings(incoming: Incoming, *, strict: bool) -> Reply:
    """Answer a request; a `strict` server refuses fields that it does not know, as OpenAI does. Raises Refusal."""
    body = chat_request.json_body(incoming)
    model = chat_request.required_text(body, "model", "you must provide a model parameter")
    unknown = [name for name in body if name not in _FIELDS] if strict else []
    if unknown:
        raise Refusal("unknown_field", f"Unrecognized request argument supplied: {unknown[0]}", parameter=unknown[0])
    inputs = read_texts(body.get("input"), "input")
    if len(inputs) > _MOST_INPUTS:
        raise Refusal("bad_value", f"'$.input' is too long - must have at most {_MOST_INPUTS} items.")
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise Refusal("bad_value", f"Invalid encoding_format: {encoding!r}.", parameter="encoding_format")
    size = dimensions_of(body, "dimensions")
    vectors = [vector(one, size) for one in inputs]
    rows: list[Fields] = [
        {"object": "embedding", "index": index, "embedding": encode_base64(one) if encoding == "base64" else one}
        for index, one in enumerate(vectors)
    ]
    tokens = count_tokens(inputs)
    usage: Fields = {"prompt_tokens": tokens, "total_tokens": tokens}
    return whole(compact({"object": "list", "data": rows, "model": model, "usage": usage}))
