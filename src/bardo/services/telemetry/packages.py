"""OpenTelemetry's packages, loaded where they are asked for: they come with the extra `bardo[telemetry]`."""

from __future__ import annotations

import importlib
from typing import Any

from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install

SCOPE = "bardo"
"""The name of what makes the spans and metrics."""


def package(name: str) -> Any:
    """Return a module of OpenTelemetry. Raises ConfigError where it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        hint = f"{how_to_install('telemetry')}, or leave out otlp under [telemetry]"
        raise ConfigError("spans need OpenTelemetry's SDK and its OTLP exporter", hint=hint) from None


def resource_of(service: str) -> Any:
    """Return what the exporting process is called."""
    from bardo._version import __version__

    return package("opentelemetry.sdk.resources").Resource.create(
        {"service.name": service, "service.version": __version__}
    )
