"""The environment variables that take precedence over `bardo.toml`. Providers' keys are read elsewhere: `keys.py`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TypeVar

import msgspec

from bardo.planning.model_names import Alias
from bardo.values.errors import ConfigError

S = TypeVar("S", bound=msgspec.Struct)
"""The whole configuration, whose tables are found by their names."""

_FIELDS: dict[str, tuple[str, str]] = {
    "BARDO_HOST": ("gateway", "host"),
    "BARDO_PORT": ("gateway", "port"),
    "BARDO_WORKERS": ("gateway", "workers"),
    "BARDO_ALLOW_UNAUTHENTICATED": ("gateway", "allow_unauthenticated"),
    "BARDO_LOG_PATH": ("log", "path"),
    "BARDO_LOG_URL": ("log", "url"),
    "BARDO_REPLAY_STORE": ("replay", "store"),
    "BARDO_RESPONSES_STORE": ("responses", "store"),
    "BARDO_CACHE_STORE": ("inference.pipeline.cache", "store"),
    "BARDO_INFERENCE_CACHE_TTL": ("inference.pipeline.cache", "ttl_seconds"),
    "BARDO_INFERENCE_CACHE_THRESHOLD": ("inference.pipeline.cache", "min_cosine"),
    "BARDO_INFERENCE_MAX_RETRIES": ("failover", "retries"),
    "BARDO_INFERENCE_SPREAD_PCT": ("budgets", "spread_percent"),
}
_INSTEAD_OF: dict[str, dict[str, str]] = {
    "BARDO_LOG_PATH": {"url": "", "url_env": ""},
    "BARDO_LOG_URL": {"path": "", "url_env": ""},
    "BARDO_REPLAY_STORE": {"store_env": ""},
    "BARDO_RESPONSES_STORE": {"store_env": ""},
    "BARDO_CACHE_STORE": {"store_env": ""},
}
"""The key of its table that a variable replaces."""
WORKERS_FOLDER = "BARDO_WORKERS_FOLDER"
"""The variable that names the folder in which the workers of `bardo serve` share what one would keep in memory."""
REUSE = "BARDO_REUSE"
"""The variable that says whether anything is kept of earlier requests, so that later ones need not do the same work."""
_OF_WORKERS = ("replay", "responses", "provider_ids", "inference.pipeline.cache", "health")
_ALIASES = {"BARDO_T1_MODEL": "t1", "BARDO_T2_MODEL": "t2"}
_ADDRESSES = {"BARDO_BLOCKRUN_ENDPOINT": "blockrun"}


def with_environment(settings: S, environment: Mapping[str, str]) -> S:
    """Return the settings with what the environment says over them. Raises ConfigError naming the variable."""
    for variable, (section, field) in _FIELDS.items():
        if value := environment.get(variable):
            settings = _with_field(settings, variable, value, section, field)
    if folder := environment.get(WORKERS_FOLDER):
        settings = _with_shared_files(settings, folder)
    named = {alias: Alias(model=value) for name, alias in _ALIASES.items() if (value := environment.get(name))}
    if named:
        settings = msgspec.structs.replace(settings, aliases={**attrgetter("aliases")(settings), **named})
    for variable, provider in _ADDRESSES.items():
        if address := environment.get(variable):
            entries = (
                msgspec.structs.replace(entry, base_url=address)
                if (entry.preset or entry.id) == provider and not entry.base_url and not entry.base_urls
                else entry
                for entry in attrgetter("providers")(settings)
            )
            settings = msgspec.structs.replace(settings, providers=tuple(entries))
    return settings


def reuse_in(environment: Mapping[str, str]) -> bool | None:
    """Return whether anything shall be kept of earlier requests, or None if the environment does not say. Raises ConfigError."""
    setting = environment.get(REUSE, "")
    if setting not in ("", "on", "off"):
        raise ConfigError(f"{REUSE} is {setting!r}", hint="it must be on or off: what is sent and answered is the same")
    return None if not setting else setting == "on"


def _with_shared_files(settings: S, folder: str) -> S:
    """Return the settings with a file of a folder for each store that would be in memory."""
    for section in _OF_WORKERS:
        table = attrgetter(section)(settings)
        in_memory = table.store == "memory" or (section == "health" and not table.store)
        if in_memory and not table.store_env:
            place = f"{folder}/{section.rpartition('.')[2]}.db"
            settings = _with_field(settings, WORKERS_FOLDER, place, section, "store")
    return settings


def _with_field(settings: S, variable: str, value: str, section: str, field: str) -> S:
    table = attrgetter(section)(settings)
    fields = {**msgspec.structs.asdict(table), **_INSTEAD_OF.get(variable, {}), field: value}
    try:
        changed = msgspec.convert(fields, type(table), strict=False)
    except msgspec.ValidationError as problem:
        kind = type(getattr(table, field))
        wanted = "true or false" if kind is bool else "a whole number" if kind is int else "a number"
        reason = str(problem).partition(" - at ")[0]
        raise ConfigError(f"{variable} is {value!r}", hint=f"it must be {wanted}: {reason}") from problem
    *path, last = section.split(".")
    for place in range(len(path), 0, -1):
        changed = msgspec.structs.replace(attrgetter(".".join(path[:place]))(settings), **{last: changed})
        last = path[place - 1]
    return msgspec.structs.replace(settings, **{last: changed})
