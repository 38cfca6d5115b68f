"""The providers of a configuration with the models that they list: for commands that plan, and are told to ask for the lists."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

import typer

from bardo.edge.directory import Directory
from bardo.edge.http import HttpTransport
from bardo.edge.keys import Keyring
from bardo.edge.settings import Settings
from bardo.engine.route import Provider
from bardo.surfaces.render.console import say

WithLists = Annotated[
    bool,
    typer.Option(
        "--lists",
        help="Ask providers for their models first.",
    ),
]


def providers_of(settings: Settings, *, with_lists: bool) -> list[Provider]:
    """Return the providers with the models they list, those on this machine among them; none where nobody is to be asked."""
    return asyncio.run(_listed(settings)) if with_lists else []


async def _listed(settings: Settings) -> list[Provider]:
    transport = HttpTransport(settings.http.client)
    try:
        directory = Directory.of(settings, transport, Keyring(), clock=time.monotonic)
        found = await directory.models()
    finally:
        await transport.close()
    for name, why in directory.unlisted.items():
        say(f"bardo: no list of models of {name}: {why}")
    return found
