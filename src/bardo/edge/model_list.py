"""Which models can be asked for, and what each is for: the one list behind every dialect's own."""

from __future__ import annotations

import contextlib

from bardo.edge.directory import Directory
from bardo.engine.route import Provider, Target, unknown_model
from bardo.values.errors import UnknownModel
from bardo.values.operations import ModelInfo
from bardo.values.request import Operation


async def listed_models(directory: Directory) -> list[ModelInfo]:
    """Return every model that can be asked for, by the name to ask with.

    A model that several providers serve stands once under its bare name, for the first of them, and as `provider/model` for the others.
    Aliases that are no globs stand there too.
    """
    models: dict[str, ModelInfo] = {}
    for provider in await directory.models():
        for model in provider.models:
            name = model if model not in models else f"{provider.id}/{model}"
            models[name] = _info(name, Target(provider=provider, model=model))
    for name in directory.aliases.names:
        with contextlib.suppress(UnknownModel):
            models[name] = _info(name, (await directory.targets(name))[0])
    return list(models.values())


async def find_model(directory: Directory, name: str) -> ModelInfo:
    """Return the model that is asked for by `name`. Raises UnknownModel.

    A provider that lists its models serves no other; of one that lists none, the catalog's row says what it serves.
    """
    await directory.discover()
    for target in await directory.targets(name):
        if _may_serve(target.provider, target.model):
            return _info(name, target)
    raise unknown_model(name, directory.providers)


def _may_serve(provider: Provider, model: str) -> bool:
    return provider.lists(model) or not provider.models


def _info(name: str, target: Target) -> ModelInfo:
    return ModelInfo(id=name, provider=target.provider.id, operations=_operations(target))


def _operations(target: Target) -> tuple[Operation, ...]:
    """Return what the model can be asked for: one whose name tells that it makes vectors gives no replies."""
    endpoint = target.provider.row.embeds(target.model)
    if endpoint is None:
        return ("generate", "count_tokens")
    return ("embed",) if endpoint.models else ("generate", "count_tokens", "embed")
