"""`bardo models`: the models that can be asked here, whose key each uses, and the facts that are known of it.

Other commands that list providers or plan calls open the directory of a configuration here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bardo.accounting.cost import Price
from bardo.adapters.config.settings import Settings, load_settings
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider, Target
from bardo.services.facts.directory import LISTING_SECONDS, PLACING_SECONDS, ProviderDirectory
from bardo.services.facts.introspect import MergedModel, merge
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.model_list import listed_models
from bardo.services.facts.price_book import PriceBook
from bardo.surfaces.cli.options import AsJson, Config, warn_of_secrets
from bardo.surfaces.presets import provider_named
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.facts import TITLES, price_json, short_price, value_text
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import NOT_REPORTED
from bardo.values.errors import InvalidRequest
from bardo.values.operations import ModelInfo

WithLists = Annotated[bool, typer.Option("--lists", help="Ask providers for their lists of models first.")]


def providers_of(settings: Settings, *, with_lists: bool) -> list[Provider]:
    """Return the providers with the models they list, those on this machine among them; none where nobody is to be asked."""
    return asyncio.run(_listed_providers(settings)) if with_lists else []


async def _listed_providers(settings: Settings) -> list[Provider]:
    async with open_directory(settings, Keyring()) as directory:
        found = await directory.models(seconds=PLACING_SECONDS)
    print_unlisted(directory.unlisted)
    return found


@asynccontextmanager
async def open_directory(settings: Settings, keyring: Keyring) -> AsyncIterator[ProviderDirectory]:
    """Yield the directory of a configuration, whose providers can be asked for their lists meanwhile."""
    transport = HttpTransport()
    directory = ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic)
    try:
        yield directory
    finally:
        await directory.close()
        await transport.close()


def print_unlisted(unlisted: Mapping[str, str]) -> None:
    """Print which providers have no list of models, and why."""
    for name, why in unlisted.items():
        print_stderr(f"bardo: no list of models of {name}: {why}")


_SHOWN = ("efforts", "budget", "off", "output_limit", "shutdown")


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model: how it is asked for, whose key is used, and what is known of it."""

    info: ModelInfo
    key: str
    merged: MergedModel
    price: Price | None = None

    def value(self, field: str) -> Any:
        """Return a fact, or None if it is not known."""
        return self.merged[field]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("models", epilog="Example: bardo models --provider openrouter --json")(models)


def models(
    provider: Annotated[str, typer.Option("--provider", metavar="ID", help="Only the models of this provider.")] = "",
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """List the available models, with the key that each one uses.

    These are the models of bardo.toml, or without one those of all providers whose keys are set and of local servers.
    Providers whose models are not configured are asked for their lists. Facts are those of bardo.toml and of the catalog;
    `bardo catalog show` asks the server of one model too. Keys are never shown.
    """
    found, unlisted = asyncio.run(_find_models(config, provider))
    shown = [one for one in found if provider in ("", one.info.provider)]
    if as_json:
        show_json([_json(one) for one in shown])
        print_unlisted({name: why for name, why in unlisted.items() if provider in ("", name)})
        return
    if shown:
        titles = ("model", "provider", "key", *(TITLES[name] for name in _SHOWN), "price")
        # What may go first where there is little room: the facts of the catalog, from the last one on.
        kept = ("model", "provider")
        columns = [Column(title, keep=title in kept, drop=place) for place, title in enumerate(titles)]
        show(table(columns, map(_cells, shown)))
    else:
        whose = f"no model of {provider} is known" if provider else "no model is known that can be asked"
        print_stderr(f"{whose}: `bardo doctor` says what is missing")
    print_unlisted({name: why for name, why in unlisted.items() if provider in ("", name)})


async def _find_models(config: Path | None, only: str) -> tuple[list[ListedModel], dict[str, str]]:
    settings, keyring = load_settings(config), Keyring()
    warn_of_secrets(settings)
    async with open_directory(settings, keyring) as directory:
        if only and all(provider.id != only for provider in directory.providers):
            # A server on this machine may be found when the lists are asked for.
            await directory.models(seconds=LISTING_SECONDS)
            if all(provider.id != only for provider in directory.providers):
                ids = ", ".join(provider.id for provider in directory.providers) or "none"
                provider_named(only, directory.providers, param="--provider")
                raise InvalidRequest(
                    f"no provider here is called {only!r}", hint=f"configured: {ids}", param="--provider"
                )
        listed = await listed_models(directory, seconds=LISTING_SECONDS)
        facts = ModelFacts(settings.models)
        by_id = {provider.id: provider for provider in directory.providers}
        served = [info for info in listed if info.route != "workload"]
        prices = PriceBook(settings.prices)
        found = [_listed_model(info, by_id[info.provider], facts, keyring, prices) for info in served]
        return found, {name: why for name, why in directory.unlisted.items() if not by_id[name].models}


def _listed_model(
    info: ModelInfo, provider: Provider, facts: ModelFacts, keyring: Keyring, prices: PriceBook
) -> ListedModel:
    name = info.model
    target = Target(provider=provider, model=name)
    return ListedModel(
        info=info,
        key=_key(provider, keyring),
        merged=merge(provider, name, own=facts.of(target).layers),
        price=prices.price(provider, name, time.time()),
    )


def _key(provider: Provider, keyring: Keyring) -> str:
    """Return the state of a provider's key: `set`, `missing: VARIABLE`, `none needed`, or `the client's own`."""
    row = provider.row
    if row.auth == "client":
        return "the client's own"
    if keyring.lacks(provider):
        return f"missing: {' or '.join(row.key_variables or row.header_variables.values())}"
    return "set" if keyring.has(row) or row.header_variables else "none needed"


def _cells(one: ListedModel) -> tuple[str, ...]:
    facts = (one.value(name) for name in _SHOWN)
    words = (
        NOT_REPORTED if value is None else value_text(name, value) for name, value in zip(_SHOWN, facts, strict=True)
    )
    return one.info.id, one.info.provider, one.key, *words, short_price(one.price)


def _json(one: ListedModel) -> dict[str, Any]:
    state = one.key.partition(":")[0].replace(" ", "_")
    facts = {fact.field: fact.holds.value for fact in one.merged.facts}
    return {
        "id": one.info.id,
        "provider": one.info.provider,
        "dialect": one.merged.dialect,
        "operations": one.info.operations,
        "key": state,
        "maker": one.merged.maker or None,
        "how": one.merged.how,
        "facts": facts,
        "price": price_json(one.price),
    }
