"""A gateway that runs, as the only provider of a question."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from bardo.edge.settings import LogSettings, ProviderEntry, Settings
from bardo.edge.settings_addresses import is_http_address
from bardo.surfaces.cli.running_gateway import KEY_VARIABLE
from bardo.values.errors import InvalidRequest

PROVIDER = "gateway"
_PRESET = "bardo-gateway"


def through_gateway(settings: Settings, address: str) -> Settings:
    """Return settings whose only provider is a gateway, which logs the call itself. Raises InvalidRequest for no http(s) address."""
    base = address.rstrip("/").removesuffix("/v1")
    if not is_http_address(base):
        hint = "give its address, as in http://127.0.0.1:8484"
        raise InvalidRequest(f"{address!r} is no address of a gateway", hint=hint, param="--gateway")
    entry = ProviderEntry(id=PROVIDER, preset=_PRESET, base_url=f"{base}/v1")
    fresh = Settings(timeouts=settings.timeouts, http=settings.http, providers=(entry,), log=LogSettings(enabled=False))
    return msgspec.structs.replace(fresh, source=settings.source)


def with_key(key: str) -> Mapping[str, str]:
    """Return the environment with the key of a gateway, where one was given."""
    return {**os.environ, KEY_VARIABLE: key} if key else os.environ
