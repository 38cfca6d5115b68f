"""The gateway as a server process loads it: configured by `BARDO_CONFIG`, ./bardo.toml, or what is found."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from bardo.edge.assembly import Assembly, assemble
from bardo.edge.preloading import preload
from bardo.edge.settings import Settings, load_settings
from bardo.edge.settings_gateway import check_bind
from bardo.surfaces.gateway.app import Gateway

_log = logging.getLogger("bardo.gateway")


def create_app() -> Gateway:
    """Return the application of the configuration at hand. Raises ConfigError."""
    settings = load_settings()
    check_bind(settings.gateway)
    return gateway_of(settings)


def gateway_of(settings: Settings, environment: Mapping[str, str] | None = None) -> Gateway:
    """Return the application of `settings`, with an engine of its own that ends with it."""
    assembly = assemble(settings, environment=environment)

    async def start() -> None:
        preload(settings.http.client)
        if not settings.providers:
            await assembly.runner.directory.add_local()
        _announce(assembly)

    return Gateway(
        assembly.runner,
        settings.gateway,
        responses=assembly.responses,
        feedback=assembly.feedback,
        start=start,
        stop=assembly.close,
    )


def _announce(assembly: Assembly) -> None:
    providers = assembly.runner.directory.providers
    if providers:
        _log.info("providers: %s", ", ".join(provider.id for provider in providers))
    else:
        _log.warning("no provider: set a provider's key in the environment, or write a bardo.toml")
