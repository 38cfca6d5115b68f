"""Ollama's list of models, `GET /api/tags`: of the files behind the names, which Ollama describes, nothing is known."""

from __future__ import annotations

import hashlib
from typing import Any

from bardo.dialects.operations import ModelsForm, route_fields
from bardo.dialects.wire import encode_json
from bardo.values.operations import ModelInfo

EPOCH = "1970-01-01T00:00:00Z"


def details(maker: str | None) -> dict[str, Any]:
    """Return how Ollama describes a model; of its file nothing is known."""
    families = [maker] if maker else None
    return {
        "parent_model": "",
        "format": "",
        "family": maker,
        "families": families,
        "parameter_size": "",
        "quantization_level": "",
    }


def _model_entry(model: ModelInfo) -> dict[str, Any]:
    """Return the entry of a model in a list. The digest is of its name, since nothing is known of its file."""
    name = model.id
    digest = hashlib.sha256(name.encode()).hexdigest()
    fields = {"name": name, "model": name, "modified_at": EPOCH, "size": 0, "digest": digest, "details": details("")}
    return {**fields, **route_fields(model)}


def _model(model: ModelInfo) -> bytes:
    return encode_json(_model_entry(model))


MODELS = ModelsForm(
    encode_list=lambda models: encode_json({"models": [_model_entry(model) for model in models]}),
    encode_model=_model,
)
