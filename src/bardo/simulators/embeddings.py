"""Vectors of texts: the same text has the same vector at every run, of length 1 and in 32-bit numbers, as real models give them."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Sequence

from bardo.simulators import chat_request
from bardo.simulators.exchange import Incoming, Refusal, Reply, whole
from bardo.simulators.fields import Fields, compact, number
from bardo.simulators.turns import tokens_of

_FIELDS = ("input", "model", "dimensions", "encoding_format", "user")
_MOST_INPUTS = 2048


def openai_embeddings(incoming: Incoming, *, strict: bool) -> Reply:
    """Answer a request to OpenAI's endpoint, or to that of a server compatible with it, refusing what OpenAI refuses.

    A `strict` server refuses fields that it does not know, as OpenAI does. Raises Refusal.
    """
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
    vectors = [vector(text, size) for text in inputs]
    rows: list[Fields] = [
        {"object": "embedding", "index": index, "embedding": encode_base64(row) if encoding == "base64" else row}
        for index, row in enumerate(vectors)
    ]
    tokens = count_tokens(inputs)
    usage: Fields = {"prompt_tokens": tokens, "total_tokens": tokens}
    return whole(compact({"object": "list", "data": rows, "model": model, "usage": usage}))


DIMENSIONS = 8


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return the vector of a text."""
    raw = hashlib.shake_128(text.encode()).digest(2 * dimensions)
    numbers = [int.from_bytes(raw[index : index + 2], "big") / 32768 - 1 for index in range(0, len(raw), 2)]
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return list(struct.unpack(f"<{dimensions}f", struct.pack(f"<{dimensions}f", *(part / length for part in numbers))))


def encode_base64(numbers: Sequence[float]) -> str:
    """Write a vector as OpenAI does where base64 was asked for."""
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def dimensions_of(body: Fields, name: str, *, most: int = 4096) -> int:
    """Return the dimensions of the vectors. Raises Refusal for an invalid number."""
    inputs = body.get(name)
    if inputs is None:
        return DIMENSIONS
    size = number(inputs)
    if size is None or not 1 <= size <= most:
        raise Refusal("bad_value", f"Invalid value for '{name}': must be between 1 and {most}.", parameter=name)
    return size


def read_texts(inputs: object, name: str) -> list[str]:
    """Return a text, or the texts of a list; tokens count as the text of their numbers. Refuse anything else, and an empty list."""
    if isinstance(inputs, str):
        return [inputs]
    if isinstance(inputs, list) and inputs and all(isinstance(item, int) for item in inputs):
        return [repr(inputs)]
    if isinstance(inputs, list) and inputs and all(isinstance(item, str | list) for item in inputs):
        return [item if isinstance(item, str) else repr(item) for item in inputs]
    raise Refusal("bad_value", f"'${name}' is invalid. Please check the API reference.", parameter=name)


def count_tokens(inputs: Sequence[str]) -> int:
    """Return how many tokens some texts have."""
    return sum(max(1, tokens_of(len(text))) for text in inputs)
