"""What Bedrock does beside Converse: count tokens, and invoke Titan's and Cohere's models that make vectors."""

from __future__ import annotations

import re
from dataclasses import replace

from bardo.simulators.embeddings import count_tokens, dimensions_of, vector
from bardo.simulators.fields import Fields, at, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.providers import bedrock_request, cohere_embeddings
from bardo.simulators.refusal import Refusal

_PATH = re.compile(r"/model/(?P<model>.+)/(?P<method>count-tokens|invoke)")
_TITAN = ("inputText", "dimensions", "normalize", "embeddingTypes")
_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
_EMBEDS = ("amazon.titan-embed-", "cohere.embed-")
Headers = tuple[tuple[str, str], ...]


def called(path: str) -> tuple[str, str] | None:
    """Split a path into the model and the method; None for any that is answered elsewhere."""
    found = _PATH.fullmatch(path)
    if found is None or (found["method"] == "invoke" and not any(mark in found["model"] for mark in _EMBEDS)):
        return None
    return found["model"], found["method"]


def answer(incoming: Incoming, model: str, method: str) -> tuple[Headers, Fields]:
    """Answer a request: headers and body. Raises Refusal."""
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Unexpected end of stream while parsing JSON")
    if method == "count-tokens":
        return (), _count(incoming, model)
    if "titan" in model:
        return _titan(incoming.fields, model)
    inputs, made = cohere_embeddings.vectors(incoming.fields, model)
    held: Fields = {"embeddings": {"float": made}, "texts": inputs, "response_type": "embeddings_by_type"}
    return (("x-amzn-bedrock-input-token-count", str(count_tokens(inputs))),), held


def _count(incoming: Incoming, model: str) -> Fields:
    held = at(incoming.body, "input.converse")
    if not isinstance(held, dict) or any(name not in _COUNTED for name in held):
        raise Refusal("bad_value", "1 validation error detected: Value at 'input' failed to satisfy constraint")
    asked = bedrock_request.read(replace(incoming, body=held), f"/model/{model}/converse")
    return {"inputTokens": asked.token_count}


def _titan(body: Fields, model: str) -> tuple[Headers, Fields]:
    extra = [name for name in body if name not in _TITAN or (name == "dimensions" and "v1" in model)]
    if extra:
        words = f"Malformed input request: #: extraneous key [{extra[0]}] is not permitted, please reformat your input"
        raise Refusal("unknown_field", f"{words} and try again.")
    said = text(body.get("inputText"))
    if not said:
        raise Refusal("missing_field", "Malformed input request: #: required key [inputText] not found")
    made = vector(said, dimensions_of(body, "dimensions"))
    return (), {"embedding": made, "embeddingsByType": {"float": made}, "inputTextTokenCount": count_tokens([said])}
