"""Which models can be asked for, and what each is for: the one list behind every dialect's own."""

from __future__ import annotations

import contextlib

import msgspec

from bardo.edge.directory import ProviderDirectory
from bardo.edge.introspect import merge
from bardo.edge.keys import Keyring
from bardo.engine.route import Provider, Target, unknown_model
from bardo.routing.workloads import Workload
from bardo.values.errors import UnknownModel
from bardo.values.operations import ModelInfo
from bardo.values.request import Operation


async def listed_models(directory: ProviderDirectory) -> list[ModelInfo]:
    """Return every model that can be asked for, by the name to ask with.

    A model that several providers serve stands once under its bare name, for the first of them, and as `provider/model` for the others.
    Aliases that are no globs stand there too, and where there is any model, workloads.
    """
    models: dict[str, ModelInfo] = {}
    for provider in await directory.models():
        for model in provider.models:
            name = model if model not in models else f"{provider.id}/{model}"
            models[name] = _info(name, Target(provider=provider, model=model))
    for name in directory.aliases.names:
        with contextlib.suppress(UnknownModel):
            models[name] = await _alias_info(directory, name)
    routes = directory.workloads if models else ()
    return [*models.values(), *(_workload_info(one.model_name, one) for one in routes)]


async def find_model(directory: ProviderDirectory, name: str) -> ModelInfo:
    """Return the model that is asked for by `name`. Raises UnknownModel.

    A provider that lists its models serves no other; of one that lists none, the catalog's row says what it serves.
    """
    workload = directory.workload(name)
    if workload is not None:
        return _workload_info(name, workload)
    await directory.discover()
    for target in await directory.targets(name):
        if _may_serve(target.provider, target.model):
            return _info(name, target)
    raise unknown_model(name, directory.providers)


async def first_model(directory: ProviderDirectory, keyring: Keyring) -> str:
    """Return `provider/model` of the first model that can be asked for a reply. Raises UnknownModel where there is none.

    A provider whose key is not set is passed over. Of a list that a provider gave, the first model that the catalog knows is taken; of
    `models` in the configuration, the first.
    """
    ready = [provider for provider in directory.providers if not keyring.lacks(provider)]
    if not (ready and ready[0].models):
        ready = [provider for provider in await directory.models() if not keyring.lacks(provider)]
    for provider in ready:
        names = [name for name in provider.models if "generate" in _operations(Target(provider=provider, model=name))]
        known = [] if provider.configured_models else [name for name in names if is_known(provider, name)]
        if names:
            return f"{provider.id}/{(known or names)[0]}"
    hint = "name one with --model, set a provider's key, start a local server, or write a bardo.toml"
    raise UnknownModel("no model is known that can be asked", hint=hint)


def is_known(provider: Provider, model: str) -> bool:
    """Return whether a row of the catalog is about the model."""
    return merge(provider, model).how not in ("unclassified", "assumed")


def _may_serve(provider: Provider, model: str) -> bool:
    return provider.lists(model) or not provider.models


def _workload_info(name: str, workload: Workload) -> ModelInfo:
    operations: tuple[Operation, ...] = ("generate", "count_tokens")
    return ModelInfo(id=name, provider="bardo", operations=operations, route="workload", about=workload.about)


async def _alias_info(directory: ProviderDirectory, name: str) -> ModelInfo:
    """Return what an alias can be asked for: that of the workload or of the first model that it stands for. Raises UnknownModel."""
    workload = directory.workload(name)
    if workload is not None:
        return _workload_info(name, workload)
    return msgspec.structs.replace(_info(name, (await directory.targets(name))[0]), route="alias")


def _info(name: str, target: Target) -> ModelInfo:
    return ModelInfo(id=name, provider=target.provider.id, operations=_operations(target))


def _operations(target: Target) -> tuple[Operation, ...]:
    """Return what the model can be asked for: one whose name tells that it makes vectors gives no replies."""
    endpoint = target.provider.row.embeds(target.model)
    if endpoint is None:
        return ("generate", "count_tokens")
    return ("embed",) if endpoint.models else ("generate", "count_tokens", "embed")
