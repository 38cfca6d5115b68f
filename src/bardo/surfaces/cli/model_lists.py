"""The providers of a configuration with the models that they list: for commands that plan, and are told to ask for the lists.

Commands that show them warn of secrets that stand in the configuration.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from bardo.adapters.config.problems import how_to_remove, secrets_of
from bardo.adapters.config.settings import Settings, provider_of
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider
from bardo.services.facts.directory import PLACING_SECONDS, ProviderDirectory
from bardo.surfaces.render.console import print_stderr

WithLists = Annotated[
    bool,
    typer.Option(
        "--lists",
        help="Ask providers for their lists of models first.",
    ),
]


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
    transport = HttpTransport(settings.http.client)
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


def warn_of_secrets(settings: Settings) -> None:
    """Print which providers have a secret in the configuration, by its place, and what to do about it."""
    for entry in settings.providers:
        if found := secrets_of(entry):
            fix = how_to_remove(entry, found, provider_of(entry, settings.source).row.key_variables)
            print_stderr(f"warning: a secret stands in {settings.source}: {', '.join(found)} of {entry.id}; {fix}")
