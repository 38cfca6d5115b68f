"""The models that a gateway can name: those of its configuration, of the catalog, and of the providers' own lists."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from bardo.accounting.cost import Price
from bardo.adapters.long_work import in_slices
from bardo.adapters.net.keys import Keyring
from bardo.catalog.agent_rows import picker
from bardo.planning.route import MAX_MODEL_NAME, Provider, Target, names_of_listed, unknown_model
from bardo.routing.workloads import Workload
from bardo.services.facts.directory import PLACING_SECONDS, ProviderDirectory
from bardo.services.facts.introspect import MergedModel, merge
from bardo.services.facts.introspect.live import FactsAnswer
from bardo.services.facts.listings import Listing
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.values.errors import UnknownModel
from bardo.values.operations import ModelInfo
from bardo.values.request import Operation

_MOST_PREFIXES = 3
"""How often a provider's id may stand before a model of it, where others list the names with fewer."""


async def listed_models(directory: ProviderDirectory, *, seconds: float | None = None) -> list[ModelInfo]:
    """Return every model that can be asked for, by a name that leads to it, as far as providers have told within so many seconds.

    A model that several providers serve stands once under its bare name, for the first of them, and as `provider/model` for the others.
    Aliases that are no globs stand there too, and where there is any model, workloads.
    """
    models: dict[str, ModelInfo] = {}
    async for bare, target in in_slices(names_of_listed(await directory.models(seconds=seconds))):
        # An alias of the operator's, or an effort behind the name, may take the bare name for something else.
        qualified = f"{target.provider.id}/{target.model}"
        name = next((name for name in (bare, qualified) if directory.meaning_of(name).model == name), bare)
        models[name] = _info(name, target)
    for name in directory.aliases.names:
        with contextlib.suppress(UnknownModel):
            models[name] = await _alias_info(directory, name)
    routes = directory.workloads if models else ()
    return [*models.values(), *(_workload_info(route.model_name, route) for route in routes)]


async def with_claude_names(directory: ProviderDirectory, models: Sequence[ModelInfo]) -> list[ModelInfo]:
    """Return the models, those that can be asked for a reply with a name that begins as Claude's do too, and these names first.

    That is its own name, an alias of the operator's, or its name behind `anthropic/`. A model for which none of these is free has its own
    name alone.
    """
    shown = [model for model in models if model.id.startswith(picker().begins)]
    others = [model for model in models if not model.id.startswith(picker().begins)]
    taken, named = {model.id for model in models}, {(model.provider, model.model) for model in shown}
    async for model in in_slices(others):
        if "generate" not in model.operations or (not model.route and (model.provider, model.model) in named):
            continue
        own = (model.id, *(() if model.route else (f"{model.provider}/{model.model}",)))
        for behind in own:
            name = picker().prefix + behind
            if name not in taken and len(name) <= MAX_MODEL_NAME and directory.meant(name) == behind:
                shown.append(msgspec.structs.replace(model, id=name, display_name=model.id))
                break
    return [*shown, *others]


async def names_to_ask(directory: ProviderDirectory, targets: Sequence[Target]) -> list[str]:
    """Return the name by which each of some models is asked for at its provider, the listed one where it is listed; empty where none is."""
    listed = {(model.provider, model.model): model.id for model in await listed_models(directory) if not model.route}
    names = []
    for target in targets:
        name = listed.get((target.provider.id, target.model), "")
        if not name:
            # A list that was kept may have what the provider's own does not show, which its provider may serve all the same.
            before = f"{target.provider.id}/"
            for prefixes in range(_MOST_PREFIXES + 1):
                tried = before * prefixes + target.model
                with contextlib.suppress(UnknownModel):
                    first = (await directory.placement(tried, asks=False)).targets[0]
                    if (first.provider.id, first.model) == (target.provider.id, target.model):
                        name = tried
                        break
        names.append(name)
    return names


async def find_model(directory: ProviderDirectory, name: str) -> ModelInfo:
    """Return the model that is asked for by `name`. Raises UnknownModel.

    A provider that lists its models serves no other; of one that lists none, the catalog's row says what it serves. An alias of the
    operator's is there whatever its model's provider lists.
    """
    workload = directory.workload(name)
    if workload is not None:
        return _workload_info(name, workload)
    await directory.discover()
    if directory.aliases.find(directory.meant(name)).steps:
        return await _alias_info(directory, name)
    for target in await directory.targets(name):
        if target.provider.lists(target.model) or not target.provider.models:
            return _info(name, target)
    raise unknown_model(name, directory.providers)


async def first_model(directory: ProviderDirectory, keyring: Keyring) -> str:
    """Return `provider/model` of the first model that can be asked for a reply. Raises UnknownModel where there is none.

    A provider whose key is not set is passed over. Of a list that a provider gave, the first model that the catalog knows is taken; of
    `models` in the configuration, the first.
    """
    ready = [provider for provider in directory.providers if not keyring.lacks(provider)]
    if not (ready and ready[0].models):
        ready = [
            provider for provider in await directory.models(seconds=PLACING_SECONDS) if not keyring.lacks(provider)
        ]
    for provider in ready:
        names = [name for name in provider.models if "generate" in _operations(Target(provider=provider, model=name))]
        listed = [] if provider.configured_models else [name for name in names if is_known(provider, name)]
        if names:
            chosen = Target(provider=provider, model=(listed or names)[0])
            qualified = f"{provider.id}/{chosen.model}"
            # Another provider may list exactly that name.
            taken = any(provider.lists(qualified) for provider in directory.providers)
            named = names_of_listed(directory.providers) if taken else ()
            return next(
                (name for name, row in named if row.provider.id == provider.id and row.model == chosen.model), qualified
            )
    hint = "name one with --model, set a provider's key, start a local server, or write a bardo.toml"
    raise UnknownModel("no model is known that can be asked", hint=hint)


def is_known(provider: Provider, model: str) -> bool:
    """Return whether a row of the catalog is about the model."""
    return merge(provider, model).how not in ("unclassified", "assumed")


def _workload_info(name: str, workload: Workload) -> ModelInfo:
    operations: tuple[Operation, ...] = ("generate", "count_tokens")
    return ModelInfo(id=name, provider="bardo", operations=operations, route="workload", about=workload.about)


async def _alias_info(directory: ProviderDirectory, name: str) -> ModelInfo:
    """Return what an alias can be asked for: that of the workload or of the first model that it stands for. Raises UnknownModel."""
    workload = directory.workload(name)
    if workload is not None:
        return _workload_info(name, workload)
    placement = await directory.placement(name, asks=False)
    return msgspec.structs.replace(_info(name, placement.targets[0]), route="alias")


def _info(name: str, target: Target) -> ModelInfo:
    return ModelInfo(id=name, provider=target.provider.id, model=target.model, operations=_operations(target))


def _operations(target: Target) -> tuple[Operation, ...]:
    """Return what the model can be asked for: one whose name tells that it makes vectors gives no replies."""
    endpoint = target.provider.row.embeds(target.model)
    if endpoint is None:
        return ("generate", "count_tokens")
    return ("embed",) if endpoint.models else ("generate", "count_tokens", "embed")


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A model at a provider. `listing` is the list of the provider that was kept, or None if there is none."""

    merged: MergedModel
    listing: Listing | None
    price: Price | None


def model_entry(
    target: Target, facts: ModelFacts, prices: PriceBook, now: float, *, learned: FactsAnswer | None = None
) -> ModelEntry:
    """Return the facts about a target at a Unix time. `learned` is what its server says, else what it last said is taken."""
    answer = facts.learned(target) if learned is None else learned
    own = [layer for layer in facts.of(target, asks=False).layers if layer.name != "L1"]
    listing = facts.listing(target.provider)
    listed_on = None if listing is None else listing.date
    return ModelEntry(
        merged=merge(target.provider, target.model, answer, own=own, listed_on=listed_on),
        listing=listing,
        price=prices.price(target.provider, target.model, now),
    )
