"""`bardo.toml` and the environment, read and checked.

Every key has a default and no file is needed. A mistake is an error that names the line and says what to write instead. Keys never
stand in the file: it names the environment variable that holds them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_type_hints
from urllib.parse import urlsplit

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.models import ModelRow
from bardo.catalog.rows import DialectName, ProviderRow
from bardo.edge.http_calls import Client
from bardo.edge.settings_aliases import read_aliases
from bardo.edge.settings_environment import with_environment
from bardo.edge.settings_gateway import Count, Seconds, Silence, check_gateway
from bardo.edge.settings_gateway import GatewaySettings as GatewaySettings
from bardo.edge.settings_mistakes import Mistakes, read_tables, read_text
from bardo.edge.settings_problems import Place
from bardo.edge.settings_rows import choices_of, read_formats, read_models
from bardo.edge.settings_secrets import check_headers, check_key_variable
from bardo.engine.aliases import Alias
from bardo.engine.route import Provider
from bardo.reasoning.control import PORTABLE, PortableBudgets
from bardo.reasoning.formats import ReasoningFormat
from bardo.structured import StructuredSettings
from bardo.values.errors import ConfigError

FILE_NAME = "bardo.toml"


class TimeoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds: to connect, to the reply's head, between two pieces of it, and for all of it; 0 is no bound."""

    connect: Seconds = 10.0
    first_byte: Seconds = 600.0
    idle: Seconds = 120.0
    total: Silence = 0.0


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How providers are called: `client` sends what needs no proxy; aiohttp sends the rest."""

    client: Client = "direct"


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The inference log. `content` keeps prompts and replies too, which is off by default."""

    enabled: bool = True
    path: str = ""
    content: bool = False


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the reasoning of earlier replies is kept for clients that drop it, how much of it, and for how long.

    `store` is `memory`, the path of an SQLite file, or empty for nowhere. `bardo serve` with several workers turns `memory` into a file
    that they share and that is gone when it ends. `prefix_changed`: what is done with thinking that is bound to a
    prompt which has changed since.
    """

    store: str = "memory"
    ttl_seconds: Seconds = 6 * 3600.0
    max_entries: Count = 20_000
    max_bytes: Count = 256 * 1024 * 1024
    max_entries_per_tenant: Count = 10_000
    max_bytes_per_tenant: Count = 128 * 1024 * 1024
    prefix_changed: Literal["restore", "drop", "drop_block"] = "restore"


class ReasoningSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How models are told to think. `introspect`: servers are asked what they know of their models, once, beside the calls.

    `budgets` are the tokens of each level, the one table between the two.
    """

    introspect: bool = True
    budgets: PortableBudgets = PORTABLE


class InferenceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How models are asked. `structured_outputs`: for answers in a schema."""

    structured_outputs: StructuredSettings = StructuredSettings()


class ProviderEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[providers]]` table."""

    id: str
    preset: str = ""
    dialect: DialectName | None = None
    base_url: str = ""
    api_key_env: str = ""
    models: tuple[str, ...] | None = None
    headers: dict[str, str] = {}
    scope: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration. `source` is the file it came from, empty where there was none."""

    gateway: GatewaySettings = GatewaySettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    replay: ReplaySettings = ReplaySettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    inference: InferenceSettings = InferenceSettings()
    providers: tuple[ProviderEntry, ...] = ()
    aliases: dict[str, Alias] = {}
    reasoning_formats: tuple[ReasoningFormat, ...] = ()
    models: tuple[ModelRow, ...] = ()
    source: str = ""


def load_settings(path: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of `path`, of `BARDO_CONFIG`, of `bardo.toml` here, or the defaults; then the environment's.

    Raises ConfigError naming the file and the line.
    """
    environment = os.environ if environment is None else environment
    file = settings_file(path, environment)
    if file is None:
        return with_environment(Settings(), environment)
    return with_environment(parse_settings(read_text(file), str(file)), environment)


def settings_file(path: str | Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file that is read, which may not exist where somebody named it; None where there is none."""
    named = path or environment.get("BARDO_CONFIG")
    if named:
        return Path(named)
    file = Path(FILE_NAME)
    return file if file.is_file() else None


def parse_settings(text: str, source: str = FILE_NAME) -> Settings:
    """Return the settings that `text` says. Raises ConfigError naming the line; of several mistakes each stands in `problems`."""
    tables = read_tables(text, source)
    mistakes = Mistakes(text, source, _tables_of_keys())
    lists, aliases = mistakes.lists(tables), tables.pop("aliases", {})
    mistakes.unknown_tables(tables, _Tables.__struct_fields__)
    read = mistakes.read(tables, _Tables, Place(text, source)) or _Tables()
    rows: dict[str, Any] = {}
    with mistakes.collected():
        rows["aliases"] = read_aliases(aliases, text, source)
    with mistakes.collected():
        check_gateway(read.gateway, Place(text, source, "gateway"))
    with mistakes.collected():
        rows["reasoning_formats"] = read_formats(lists["reasoning_formats"], text, source)
    with mistakes.collected():
        rows["models"] = read_models(lists["models"], text, source)
    rows["providers"] = _read_providers(lists["providers"], text, source, mistakes)
    mistakes.check()
    return Settings(**msgspec.structs.asdict(read), **rows, source=source)


class _Tables(msgspec.Struct, forbid_unknown_fields=True):
    """The file without its lists of tables, which are read one by one, so that an error can name which it is."""

    gateway: GatewaySettings = GatewaySettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    replay: ReplaySettings = ReplaySettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    inference: InferenceSettings = InferenceSettings()


@cache
def _tables_of_keys() -> dict[str, tuple[str, ...]]:
    """Return under which tables each key may stand."""
    found: dict[str, tuple[str, ...]] = {}
    for name, struct in _named_tables(_Tables, ""):
        for key in struct.__struct_fields__:
            found[key] = (*found.get(key, ()), f"[{name}]")
    return found


def _named_tables(struct: type[msgspec.Struct], below: str) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    for name, kind in get_type_hints(struct).items():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield f"{below}{name}", kind
            yield from _named_tables(kind, f"{below}{name}.")


def _read_providers(
    rows: Sequence[dict[str, Any]], text: str, source: str, mistakes: Mistakes
) -> tuple[ProviderEntry, ...]:
    seen: set[str] = set()
    entries: list[ProviderEntry] = []
    for index, row in enumerate(rows):
        place = Place(text, source, "providers", index)
        entry = mistakes.read(row, ProviderEntry, place, choices_of(ProviderEntry))
        if entry is not None:
            with mistakes.collected():
                _check_entry(entry, place, source, seen)
            entries.append(entry)
    return tuple(entries)


def _check_entry(entry: ProviderEntry, place: Place, source: str, seen: set[str]) -> None:
    if entry.id in seen or not entry.id or "/" in entry.id:
        hint = "ids are unique, not empty, and hold no slash"
        raise ConfigError(f"{place.of('id')}: provider id {entry.id!r}", hint=hint)
    seen.add(entry.id)
    provider_of(entry, source, place.of)


_ADDRESS_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,99}")


def _is_http_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def provider_of(entry: ProviderEntry, source: str = FILE_NAME, where: Callable[[str], str] | None = None) -> Provider:
    """Return the provider that a table describes.

    Raises ConfigError for an unknown preset, a missing address, or a key in the place of its variable's name.

    `where` tells the place of one of the table's keys; `source` is named without it.
    """
    where = where or (lambda key: source or "the settings")
    found = _row(entry, where)
    check_key_variable(entry, found.key_variables, where)
    check_headers(entry, where)
    _check_scope(entry, found, where)
    row = _overridden(found, entry)
    base_url = entry.base_url or _filled_address(entry, row, where)
    if not _is_http_address(base_url):
        message = f"{where('base_url')}: provider {entry.id!r} has no usable base_url"
        raise ConfigError(message, hint="give its http(s) address")
    models = entry.models or ()
    return Provider(id=entry.id, row=row, base_url=base_url, models=models, configured_models=entry.models is not None)


def _filled_address(entry: ProviderEntry, row: ProviderRow, where: Callable[[str], str]) -> str:
    """Return the row's address with what `scope` names. Raises ConfigError for what is missing, or cannot be a part of an address."""
    if not row.address_fields:
        return row.base_url
    address = row.base_url
    for name in row.address_fields:
        value = entry.scope.get(name, "")
        if not _ADDRESS_PART.fullmatch(value):
            example = ", ".join(f'{field} = "…"' for field in row.address_fields)
            problem = f"names no {name}" if not value else f"has a {name} that is none"
            raise ConfigError(
                f"{where('scope')}: provider {entry.id!r} {problem}", hint=f"write scope = {{ {example} }}, or base_url"
            )
        host = row.hosts.get(value)
        if host:
            address = urlsplit(address)._replace(netloc=host).geturl()
        address = address.replace(f"{{{name}}}", value)
    return address


def _check_scope(entry: ProviderEntry, row: ProviderRow, where: Callable[[str], str]) -> None:
    """Raise ConfigError for a field of `scope` that the provider's requests do not have."""
    fields = (*row.scope_fields, *row.address_fields)
    unknown = sorted(entry.scope.keys() - set(fields))
    if unknown:
        names = " or ".join(fields)
        hint = f"provider {row.id} takes {names}" if names else f"leave it out: provider {row.id} takes none"
        raise ConfigError(f"{where('scope')}: scope has no field {unknown[0]!r}", hint=hint)


def _row(entry: ProviderEntry, where: Callable[[str], str]) -> ProviderRow:
    catalog = builtin()
    wanted = entry.preset or entry.id
    row = catalog.generic(entry.dialect) if entry.dialect and _by_dialect(entry) else catalog.provider(wanted)
    if row is not None:
        return _pinned(row, entry.dialect)
    near = get_close_matches(wanted, catalog.names(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "set preset to a provider of `bardo catalog`, or dialect"
    raise ConfigError(f"{where('preset' if entry.preset else 'id')}: no preset is called {wanted!r}", hint=hint)


def _by_dialect(entry: ProviderEntry) -> bool:
    """Whether the table's dialect alone says how to speak with the provider: neither `preset` nor `id` names a row that speaks it."""
    if entry.preset or not entry.dialect:
        return False
    named = builtin().provider(entry.id)
    return named is None or all(row.dialect != entry.dialect for row in named.at_endpoints)


def _pinned(row: ProviderRow, dialect: str | None) -> ProviderRow:
    """Return the row at the one endpoint of `dialect`, where the provider has such; else the row as it is."""
    found = next((at for at in row.at_endpoints if at.dialect == dialect), None)
    if found is None:
        return row
    return msgspec.structs.replace(found, endpoints=(), only_models=(), not_models=(), lacks=())


def _overridden(row: ProviderRow, entry: ProviderEntry) -> ProviderRow:
    own_address = bool(entry.base_url) and entry.base_url.rstrip("/") != row.base_url.rstrip("/")
    changes: dict[str, Any] = {}
    if entry.dialect and entry.dialect != row.dialect:
        changes["dialect"] = entry.dialect
        changes["counts_tokens"] = False
    if entry.headers:
        changes["headers"] = {**row.headers, **{name.lower(): value for name, value in entry.headers.items()}}
    if entry.scope:
        changes["scope"] = entry.scope
    if entry.api_key_env:
        changes["key_variables"] = (entry.api_key_env,)
    elif own_address:
        # The vendor's key must not travel to somebody else's address.
        changes["key_variables"] = ()
    if own_address and _by_dialect(entry):
        # The row stands in for any server of its dialect: which models this one serves, only its list says.
        changes["models"] = ()
    return msgspec.structs.replace(row, **changes) if changes else row


def default_log_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the log stands when the configuration does not say: in the user's data folder."""
    environment = os.environ if environment is None else environment
    home = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "bardo" / "log.db"
