"""The names of providers in monitoring systems, from `catalog/data/telemetry.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec
import tomli


@cache
def telemetry_names() -> Mapping[str, str]:
    """Return the names of providers in OpenTelemetry's conventions, by their ids."""
    text = files("bardo.catalog").joinpath("data/telemetry.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text)["providers"], dict[str, str])
