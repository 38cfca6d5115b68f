"""Ollama's embed, and the older embeddings for one text."""

from __future__ import annotations

from bardo.simulators.embeddings import count_tokens, dimensions_of, read_texts, vector
from bardo.simulators.fields import Fields, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

PATHS = ("/embed", "/embeddings")


def embeddings(incoming: Incoming, path: str) -> Fields:
    """Answer a request at either path. Raises Refusal."""
    body = incoming.fields
    model = text(body.get("model"))
    if not model:
        raise Refusal("missing_field", "model is required")
    if path == "/embeddings":
        return {"embedding": [2 * number for number in vector(text(body.get("prompt")))]}
    given = body.get("input")
    if not isinstance(given, str) and not (isinstance(given, list) and all(isinstance(one, str) for one in given)):
        raise Refusal("bad_value", "invalid input type")
    inputs = read_texts(given, "input") if given else []
    size = dimensions_of(body, "dimensions")
    durations: Fields = {
        "total_duration": 14143917,
        "load_duration": 1019500,
        "prompt_eval_count": count_tokens(inputs),
    }
    return {"model": model, "embeddings": [vector(one, size) for one in inputs], **durations}
