"""Cohere's v2 embed, refusing what Cohere refuses; Bedrock takes the same of Cohere's models."""

from __future__ import annotations

from bardo.simulators.embeddings import count_tokens, dimensions_of, vector
from bardo.simulators.fields import Fields, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.marks import uuid
from bardo.simulators.refusal import Refusal

_KINDS = ("search_document", "search_query", "classification", "clustering", "image")
_FIELDS = ("model", "texts", "input_type", "embedding_types", "truncate", "output_dimension", "max_tokens", "priority")
_MOST = 96
_LONGEST = 1536


def embeddings(incoming: Incoming) -> Fields:
    """Answer a request. Raises Refusal."""
    body = incoming.fields
    if not text(body.get("model")):
        raise Refusal("missing_field", "invalid request: model is required")
    inputs, made = vectors(body, text(body.get("model")))
    billed: Fields = {"input_tokens": count_tokens(inputs)}
    meta: Fields = {"api_version": {"version": "2"}, "billed_units": billed}
    kind: Fields = {"response_type": "embeddings_by_type"}
    return {"id": uuid(repr(inputs)), "embeddings": {"float": made}, "texts": inputs, "meta": meta, **kind}


def vectors(body: Fields, model: str) -> tuple[list[str], list[list[float]]]:
    """Return the texts of a request and their vectors. Raises Refusal."""
    unknown = [name for name in body if name not in _FIELDS]
    if unknown:
        raise Refusal("unknown_field", f"unknown field: parameter '{unknown[0]}' is not a valid field")
    given = body.get("texts")
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise Refusal("missing_field", "invalid request: texts must be a list of strings")
    if len(given) > _MOST:
        raise Refusal(
            "bad_value", f"invalid request: total number of texts must be at most {_MOST} - received {len(given)}"
        )
    kind = body.get("input_type")
    if kind not in _KINDS:
        raise Refusal("missing_field", "invalid request: valid input_type must be provided with the provided model")
    if body.get("output_dimension") is not None and "v4" not in model:
        raise Refusal("bad_value", "invalid request: output_dimension is not supported by this model")
    size = dimensions_of(body, "output_dimension", most=_LONGEST)
    return [str(one) for one in given], [vector(f"{kind}{one}", size) for one in given]
