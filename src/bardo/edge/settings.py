"""`bardo.toml` and the environment, read and checked.

Every key has a default and no file is needed. A mistake is an error that names the line and says what to write instead. Keys never
stand in the file: it names the environment variable that holds them.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.rows import DialectName, ProviderRow
from bardo.engine.route import Provider
from bardo.values.errors import ConfigError

FILE_NAME = "bardo.toml"


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the gateway listens, and what it accepts. Sizes are bytes."""

    host: str = "127.0.0.1"
    port: int = 8484
    workers: int = 1
    max_body_bytes: int = 32 * 1024 * 1024
    max_reply_bytes: int = 64 * 1024 * 1024


class TimeoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds: to connect, to the reply's head, and between two pieces of it."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 120.0


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The inference log. `content` keeps prompts and replies too, which is off by default."""

    enabled: bool = True
    path: str = ""
    content: bool = False


class ProviderEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[providers]]` table."""

    id: str
    preset: str = ""
    dialect: DialectName | None = None
    base_url: str = ""
    api_key_env: str = ""
    models: tuple[str, ...] | None = None
    headers: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration. `source` is the file it came from, empty where there was none."""

    gateway: GatewaySettings = GatewaySettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    log: LogSettings = LogSettings()
    providers: tuple[ProviderEntry, ...] = ()
    source: str = ""


def load_settings(path: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of `path`, of `BARDO_CONFIG`, of `bardo.toml` here, or the defaults; then the environment's.

    Raises ConfigError naming the file and the line.
    """
    environment = os.environ if environment is None else environment
    named = path or environment.get("BARDO_CONFIG")
    file = Path(named) if named else Path(FILE_NAME)
    if not named and not file.is_file():
        return _from_environment(Settings(), environment)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot read {file}: {problem}", hint="give --config another path") from problem
    return _from_environment(parse_settings(text, str(file)), environment)


def parse_settings(text: str, source: str = FILE_NAME) -> Settings:
    """Return the settings that `text` says. Raises ConfigError naming the line."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{source} is not valid TOML: {problem}") from problem
    try:
        settings = msgspec.convert({**tables, "source": source}, Settings)
    except msgspec.ValidationError as problem:
        raise _explain(problem, text, source) from problem
    _check_ids(settings, text, source)
    return settings


_ENVIRONMENT: dict[str, tuple[str, str, type]] = {
    "BARDO_HOST": ("gateway", "host", str),
    "BARDO_PORT": ("gateway", "port", int),
    "BARDO_WORKERS": ("gateway", "workers", int),
    "BARDO_LOG_PATH": ("log", "path", str),
}


def _from_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    for variable, (section, field, kind) in _ENVIRONMENT.items():
        value = environment.get(variable)
        if not value:
            continue
        try:
            changed = msgspec.structs.replace(getattr(settings, section), **{field: kind(value)})
        except ValueError as problem:
            raise ConfigError(f"{variable} is {value!r}", hint="it must be a whole number") from problem
        settings = msgspec.structs.replace(settings, **{section: changed})
    return settings


def _explain(problem: msgspec.ValidationError, text: str, source: str) -> ConfigError:
    """Turn msgspec's message into one that names the line and the nearest key."""
    said = str(problem)
    unknown = re.search(r"unknown field `(.+?)`", said)
    where = re.search(r"at `\$?(.*?)`", said)
    place = re.sub(r"\[(?:\.\.\.|\d+)\]", "", where.group(1)).lstrip(".") if where else ""
    key = unknown.group(1) if unknown else place.rpartition(".")[2]
    line = _line_of(key, text)
    at = f"{source}, line {line}" if line else source
    if unknown:
        near = get_close_matches(key, _KEYS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(_KEYS))}"
        return ConfigError(f"{at}: unknown key {key!r}", hint=hint)
    return ConfigError(f"{at}: {said.partition(' - at ')[0]} for {place or 'the file'}")


_KEYS = frozenset(
    field
    for struct in (Settings, GatewaySettings, TimeoutSettings, LogSettings, ProviderEntry)
    for field in struct.__struct_fields__
    if field != "source"
)


def _line_of(key: str, text: str) -> int | None:
    pattern = re.compile(rf"^\s*\[{{0,2}}\s*{re.escape(key)}\b") if key else None
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if pattern and pattern.match(line)), None)


def _check_ids(settings: Settings, text: str, source: str) -> None:
    seen: set[str] = set()
    for entry in settings.providers:
        if entry.id in seen or not entry.id or "/" in entry.id:
            line = _line_of_value(entry.id, text)
            raise ConfigError(
                f"{source}, line {line}: provider id {entry.id!r}", hint="ids are unique, not empty, and hold no slash"
            )
        seen.add(entry.id)
        provider_of(entry, source, text)


def _line_of_value(value: str, text: str) -> int:
    lines = [number for number, line in enumerate(text.splitlines(), 1) if f'"{value}"' in line]
    return lines[-1] if lines else 1


# What a provider is read as where the file gives only its dialect.
_GENERIC: dict[str, str] = {
    "openai_chat": "openai-compatible",
    "openai_responses": "responses-compatible",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
}


def provider_of(entry: ProviderEntry, source: str = FILE_NAME, text: str = "") -> Provider:
    """Return the provider that a table describes. Raises ConfigError for an unknown preset or a missing address."""
    catalog = builtin()
    wanted = entry.preset or (_GENERIC[entry.dialect] if entry.dialect else entry.id)
    row = catalog.provider(wanted)
    if row is None:
        near = get_close_matches(wanted, catalog.names(), n=3)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "set preset to a provider of `bardo catalog`, or dialect"
        )
        at = f"{source}, line {_line_of_value(wanted, text)}" if text else source
        raise ConfigError(f"{at}: no preset is called {wanted!r}", hint=hint)
    row = _overridden(row, entry)
    base_url = entry.base_url or row.base_url
    if not base_url.startswith(("http://", "https://")):
        at = f"{source}, line {_line_of_value(entry.id, text)}" if text else source
        raise ConfigError(f"{at}: provider {entry.id!r} has no usable base_url", hint="give its http(s) address")
    models = entry.models or ()
    return Provider(id=entry.id, row=row, base_url=base_url, models=models, configured_models=entry.models is not None)


def _overridden(row: ProviderRow, entry: ProviderEntry) -> ProviderRow:
    own_address = bool(entry.base_url) and entry.base_url.rstrip("/") != row.base_url.rstrip("/")
    changes: dict[str, Any] = {}
    if entry.dialect and entry.dialect != row.dialect:
        changes["dialect"] = entry.dialect
    if entry.headers:
        changes["headers"] = {**row.headers, **entry.headers}
    if entry.api_key_env:
        changes["key_variables"] = (entry.api_key_env,)
    elif own_address:
        # The vendor's key must not travel to somebody else's address.
        changes["key_variables"] = ()
    if own_address and not entry.preset:
        changes["models"] = ()
    return msgspec.structs.replace(row, **changes) if changes else row


def default_log_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the log stands when the configuration does not say: in the user's data folder."""
    environment = os.environ if environment is None else environment
    home = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "bardo" / "log.db"
