"""The gateway as a server process loads it: configured by `BARDO_CONFIG`, ./bardo.toml, or what is found."""

from __future__ import annotations

from collections.abc import Mapping

from bardo.adapters.config.gateway import check_bind
from bardo.adapters.config.settings import Settings, load_settings
from bardo.services.accounts.opening import has_keys
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.configured import ConfiguredGateway
from bardo.surfaces.gateway.reloading import ReloadingGateway


def create_app() -> ReloadingGateway:
    """Return the application of the configuration at hand, which applies what is changed there. Raises ConfigError."""
    settings = load_settings()
    if settings.telemetry.logs == "json":
        from bardo.adapters.log_filter import write_json_logs

        write_json_logs()
    check_bind(settings.gateway, has_keys=has_keys(settings))
    return ReloadingGateway(ConfiguredGateway(settings), load_settings)


def gateway_of(settings: Settings, environment: Mapping[str, str] | None = None) -> Gateway:
    """Return the application of `settings`, with an engine of its own that ends with it."""
    return ConfiguredGateway(settings, environment).application
