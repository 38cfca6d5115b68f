"""What the place of a store may be: `memory`, the path of an SQLite file, or the address of PostgreSQL, Redis or Valkey.

Nothing is loaded here for any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bardo.edge.settings_problems import Place
from bardo.values.errors import ConfigError

POSTGRESQL = ("postgresql://", "postgresql+psycopg://")
REDIS = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")
ADDRESSES = (*POSTGRESQL, *REDIS)


class StorePlace(Protocol):
    """A section of the configuration that names a store, or the variable that holds its address."""

    @property
    def store(self) -> str: ...

    @property
    def store_env(self) -> str: ...


def check_store(store: str, place: Place) -> None:
    """Raise ConfigError for a store of a kind that bardo does not know."""
    if "://" in store and not store.startswith(ADDRESSES):
        shown = store.partition("://")[0]
        hint = f'write "memory", the path of a file, or an address that begins with {", ".join(ADDRESSES)}'
        raise ConfigError(f"{place.of('store')}: bardo knows no store {shown!r}", hint=hint)


def is_file_name(place: str) -> bool:
    """Return whether the place of a store is the path of a file."""
    return place not in ("", "memory") and "://" not in place


def place_of(section: StorePlace, environment: Mapping[str, str], what: str) -> str:
    """Return `memory`, the path of a file, an address, or nothing. Raises ConfigError for a variable that is not set.

    `what` is what the store holds, in the error.
    """
    name = section.store_env
    if not name:
        return section.store
    if not environment.get(name):
        raise ConfigError(f"{name}, which holds the store of {what}, is not set", hint=f"set {name} to its address")
    check_store(environment[name], Place("", name))
    return environment[name]
