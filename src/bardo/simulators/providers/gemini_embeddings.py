"""Gemini's embedContent and batchEmbedContents, refusing what Google refuses."""

from __future__ import annotations

from bardo.simulators.embeddings import dimensions_of, vector
from bardo.simulators.fields import Fields, joined_text, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.providers.gemini_request import called, either
from bardo.simulators.refusal import Refusal

METHODS = ("embedContent", "batchEmbedContents")
_TASKS = (
    "TASK_TYPE_UNSPECIFIED", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING",
    "QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY",
)  # fmt: skip
_FIELDS = ("model", "content", "taskType", "task_type", "title", "outputDimensionality", "output_dimensionality")
_MOST = 100
_LONGEST = 3072


def embeddings(incoming: Incoming, path: str) -> Fields:
    """Answer a request of either method. Raises Refusal."""
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Invalid JSON payload received. Unexpected token.\n")
    model, method = called(path)
    if method == "embedContent":
        return {"embedding": _embedded(incoming.fields, model, "EmbedContentRequest")}
    asked = rows(incoming.fields.get("requests"))
    if not asked:
        raise Refusal("missing_field", "* BatchEmbedContentsRequest.requests: at least one request is required\n")
    if len(asked) > _MOST:
        raise Refusal(
            "bad_value", f"* BatchEmbedContentsRequest.requests: at most {_MOST} requests can be in one batch\n"
        )
    for index, one in enumerate(asked):
        if one.get("model") != f"models/{model}":
            words = "model must match the model in the parent BatchEmbedContentsRequest"
            raise Refusal("bad_value", f"* BatchEmbedContentsRequest.requests[{index}].model: {words}\n")
    return {"embeddings": [_embedded(one, model, "BatchEmbedContentsRequest.requests") for one in asked]}


def _embedded(asked: Fields, model: str, at: str) -> Fields:
    unknown = [name for name in asked if name not in _FIELDS]
    if unknown:
        words = f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.'
        raise Refusal("unknown_field", words, parameter=unknown[0])
    said = joined_text(either(asked, "content.parts"))
    if not said:
        raise Refusal("missing_field", f"* {at}.content: contents is not specified\n")
    task = text(either(asked, "taskType"))
    if task and task not in _TASKS:
        raise Refusal("bad_value", f"Invalid value at 'task_type' (TYPE_ENUM), \"{task}\"")
    size = {"output_dimensionality": either(asked, "outputDimensionality")}
    made = vector(f"{task}{said}" if task else said, dimensions_of(size, "output_dimensionality", most=_LONGEST))
    return {"values": made}
