"""Cohere's list of models, `GET /v1/models`, and one of them: the name, and the endpoints that it answers at."""

from __future__ import annotations

from typing import Any

from bardo.dialects.operations import ModelsForm, route_fields
from bardo.dialects.wire import encode_json
from bardo.values.operations import ModelInfo

_ENDPOINTS = {"generate": "chat", "embed": "embed"}


def _entry(model: ModelInfo) -> dict[str, Any]:
    endpoints = [_ENDPOINTS[operation] for operation in model.operations if operation in _ENDPOINTS]
    return {"name": model.id, "endpoints": endpoints, "finetuned": False, **route_fields(model)}


MODELS = ModelsForm(
    encode_list=lambda models: encode_json({"models": [_entry(model) for model in models]}),
    encode_model=lambda model: encode_json(_entry(model)),
)
