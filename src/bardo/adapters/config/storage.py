"""`[log]`, `[state]`, `[memory]`, `[replay]`, `[responses]`, `[provider_ids]` and `[refresh]`: the stored data, its place and its lifetime.

What the place of a store may be is here too: `memory`, a path, or an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Protocol

import msgspec

from bardo.adapters.config.gateway import Count, Seconds
from bardo.adapters.config.mistakes import Place
from bardo.values.errors import ConfigError

POSTGRESQL = ("postgresql://", "postgresql+psycopg://")
REDIS = ("redis://", "rediss://", "unix://", "valkey://", "valkeys://")
ADDRESSES = (*POSTGRESQL, *REDIS)


_NOWHERE = frozenset({"none", "off", "no", "null", "false", "disabled", "never", "nowhere"})


class StorePlace(Protocol):
    """A section of the configuration that names a store, or the variable that holds its address."""

    @property
    def store(self) -> str: ...

    @property
    def store_env(self) -> str: ...


def check_store(store: str, place: Place) -> None:
    """Raise ConfigError for a store of a kind that bardo does not know."""
    refuse_nowhere(store, place)
    if "://" in store and not store.startswith(ADDRESSES):
        shown = store.partition("://")[0]
        hint = f'write "memory", the path of a file, or an address that begins with {", ".join(ADDRESSES)}'
        raise ConfigError(f"{place.of('store')}: bardo knows no store {shown!r}", hint=hint)


def refuse_nowhere(store: str, place: Place) -> None:
    """Raise ConfigError for a word that means that there shall be no store: it would be the name of a file."""
    if store.strip().lower() in _NOWHERE:
        hint = f'leave the store empty, write "memory", or "./{store.strip()}" for a file of that name'
        raise ConfigError(f"{place.of('store')}: {store!r} would be a file of that name", hint=hint)


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


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The inference log, in the file `path` or the database `url`. `content` keeps prompts and replies too, which is off by default.

    `url` is an address like postgresql://user@host/database; `url_env` names the variable that holds one with a password. Calls that are
    older than `retention_days` are removed; 0 keeps all.
    """

    enabled: bool = True
    path: str = ""
    url: str = ""
    url_env: str = ""
    content: bool = False
    retention_days: Days = 0.0


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the reasoning of earlier replies is kept for clients that drop it, how much of it, and for how long.

    `store` is `memory`, the path of an SQLite file, the address of PostgreSQL, Redis or Valkey, or empty for nowhere; `store_env` names the
    variable that holds it, for an address with a password. `bardo serve` with several workers turns `memory` into a file that they share
    and that is gone when it ends. A store that takes longer than `timeout_seconds` is passed over. `prefix_changed`: the treatment of
    thinking that is bound to a prompt which has changed since.
    """

    store: str = "memory"
    store_env: str = ""
    timeout_seconds: Seconds = 1.0
    ttl_seconds: Seconds = 6 * 3600.0
    max_entries: Count = 20_000
    max_bytes: Count = 256 * 1024 * 1024
    max_entries_per_tenant: Count = 10_000
    max_bytes_per_tenant: Count = 128 * 1024 * 1024
    prefix_changed: Literal["restore", "drop", "drop_block"] = "restore"


class ResponseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the responses and conversations of Responses clients are kept, how many of them, and for how long.

    `store` is `memory`, the path of an SQLite file, the address of PostgreSQL, Redis or Valkey, or empty for nowhere; `store_env` names the
    variable that holds it, for an address with a password. `bardo serve` with several workers turns `memory` into a file that they share
    and that is gone when it ends. Of a store that takes longer than `timeout_seconds` a caller is told that it cannot be reached.
    `seal_key_env` is the variable with the key that seals compacted conversations, empty for one that bardo makes and keeps in a file.
    """

    store: str = "memory"
    store_env: str = ""
    seal_key_env: str = ""
    timeout_seconds: Seconds = 5.0
    ttl_seconds: Seconds = 30 * 24 * 3600.0
    max_entries: Count = 100_000
    max_bytes: Count = 256 * 1024 * 1024
    max_entries_per_tenant: Count = 50_000
    max_bytes_per_tenant: Count = 128 * 1024 * 1024


class ProviderIdSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose the ids are by which providers keep responses, files and other things, where clients have keys.

    `unknown` is what becomes of an id that never passed here, and `shared` are globs of ids that every key may use. `store` is `memory`,
    the path of an SQLite file, the address of PostgreSQL, Redis or Valkey, or empty: the file `provider_ids.db` beside the state database,
    or that database where it is PostgreSQL; `store_env` names the variable that holds it. An id is known for `ttl_seconds`.
    """

    unknown: Literal["refuse", "allow"] = "refuse"
    shared: tuple[str, ...] = ()
    store: str = ""
    store_env: str = ""
    timeout_seconds: Seconds = 5.0
    ttl_seconds: Seconds = 90 * 24 * 3600.0
    max_entries: Count = 1_000_000
    max_entries_per_tenant: Count = 200_000


class StateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The database of keys, payments and batches: a file, or an address like postgresql://user@host/database.

    Empty is where the log is: the file `state.db` beside it, or the same PostgreSQL database. `url_env` names the variable that holds an
    address with a password.
    """

    url: str = ""
    url_env: str = ""


Days = Annotated[float, msgspec.Meta(ge=0, le=36_500)]
Episodes = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
PIPELINE = "pipeline"
NO_EMBEDDING = "none"


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reasoning memory. It needs the log's content, which is the operator's consent to store texts.

    `retention_days` is 0 for no end, `retention_days_of` is for single tenants. Beyond `max_episodes` the oldest of those tenants that have
    the most are removed. `embedding` is `pipeline` (that of the layers), `none` (search by words only), or a folder with a model in ONNX.
    """

    enabled: bool = False
    retention_days: Days = 90.0
    retention_days_of: dict[str, Days] = {}
    max_episodes: Episodes = 100_000
    embedding: str = PIPELINE


def check_memory(memory: MemorySettings, log: LogSettings, source: str) -> None:
    """Raise ConfigError if the memory is on and the log does not store content."""
    if not memory.enabled:
        return
    missing = "enabled" if not log.enabled else "content" if not log.content else ""
    if missing:
        where = f"{source}: " if source else ""
        raise ConfigError(
            f"{where}[memory] is on, and [log] {missing} is off: reasoning is kept only where content is",
            hint=f"set {missing} = true under [log], or enabled = false under [memory]",
        )


class RefreshSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How providers' lists of models are kept.

    `hours` is how old a list may become in a gateway that runs; 0: lists are only refreshed by `bardo catalog refresh`. `folder` is
    where they stand; empty: `catalog` beside the log.
    """

    hours: Annotated[float, msgspec.Meta(ge=0, le=8_760)] = 1.0
    folder: str = ""


def check_one_place(log: LogSettings, place: Place) -> None:
    """Raise ConfigError where the log is to be kept at two places."""
    if named := [name for name in ("path", "url", "url_env") if getattr(log, name)][1:]:
        raise ConfigError(f"{place.of(named[0])} and another name a place for the log", hint="keep one of them")


def check_its_store(settings: ReplaySettings | ResponseSettings | ProviderIdSettings, place: Place) -> None:
    check_store(settings.store, place)
