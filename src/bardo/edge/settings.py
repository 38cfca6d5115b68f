"""`bardo.toml` and the environment, read and checked.

Every key has a default and no file is needed. A mistake is an error that names the line and says what to write instead. Keys never
stand in the file: it names the environment variable that holds them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from bardo.catalog.models import ModelRow
from bardo.catalog.prices import PriceRow
from bardo.edge.client_keys import KeyEntry as KeyEntry
from bardo.edge.client_keys import read_keys
from bardo.edge.log_filter import know
from bardo.edge.settings_aliases import read_aliases
from bardo.edge.settings_batches import BatchSettings
from bardo.edge.settings_budgets import BudgetSettings, check_budgets
from bardo.edge.settings_chat import DiscordSettings, TelegramSettings, check_chat
from bardo.edge.settings_embeddings import EmbeddingSettings as EmbeddingSettings
from bardo.edge.settings_embeddings import check_embeddings
from bardo.edge.settings_environment import with_environment
from bardo.edge.settings_failover import FailoverSettings, check_failover
from bardo.edge.settings_gateway import GatewaySettings as GatewaySettings
from bardo.edge.settings_gateway import check_gateway
from bardo.edge.settings_health import HealthSettings, check_health
from bardo.edge.settings_memory import MemorySettings, check_memory
from bardo.edge.settings_mistakes import Mistakes, read_tables, read_text
from bardo.edge.settings_payments import PaymentSettings, check_payments
from bardo.edge.settings_pipeline import check_pipeline
from bardo.edge.settings_prices import read_prices
from bardo.edge.settings_problems import Place
from bardo.edge.settings_profiles import CachingSettings as CachingSettings
from bardo.edge.settings_profiles import GolemSettings as GolemSettings
from bardo.edge.settings_profiles import check_golem, read_profiles, settle_workloads
from bardo.edge.settings_providers import FILE_NAME, provider_ids, read_providers
from bardo.edge.settings_providers import ProviderEntry as ProviderEntry
from bardo.edge.settings_providers import provider_of as provider_of
from bardo.edge.settings_refresh import RefreshSettings
from bardo.edge.settings_routing import (
    RoutingSettings,
    check_features,
    check_names,
    check_private,
    check_routing,
    check_workloads,
    read_workloads,
)
from bardo.edge.settings_rows import choices_of, read_formats, read_models
from bardo.edge.settings_search import SearchSettings as SearchSettings
from bardo.edge.settings_search import check_search
from bardo.edge.settings_secrets import HeaderVariable as HeaderVariable
from bardo.edge.settings_secrets import address_secrets
from bardo.edge.settings_state import StateSettings
from bardo.edge.settings_stores import check_store
from bardo.edge.settings_tables import HttpSettings as HttpSettings
from bardo.edge.settings_tables import InferenceSettings as InferenceSettings
from bardo.edge.settings_tables import LogSettings as LogSettings
from bardo.edge.settings_tables import ProviderIdSettings as ProviderIdSettings
from bardo.edge.settings_tables import ReasoningSettings as ReasoningSettings
from bardo.edge.settings_tables import ReplaySettings as ReplaySettings
from bardo.edge.settings_tables import ResponseSettings as ResponseSettings
from bardo.edge.settings_tables import TimeoutSettings as TimeoutSettings
from bardo.edge.settings_telemetry import TelemetrySettings as TelemetrySettings
from bardo.engine.aliases import Alias
from bardo.reasoning.formats import ReasoningFormat
from bardo.routing.workloads import WorkloadRow
from bardo.values.degradation import Degradation
from bardo.values.errors import ConfigError


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration. `source` is the file it came from, empty where there was none.

    `workloads` are the rows of the agent and the operator's, with `[inference.profiles]`; `unheeded` is what locked profiles refuse of it.
    """

    gateway: GatewaySettings = GatewaySettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    replay: ReplaySettings = ReplaySettings()
    responses: ResponseSettings = ResponseSettings()
    provider_ids: ProviderIdSettings = ProviderIdSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    inference: InferenceSettings = InferenceSettings()
    routing: RoutingSettings = RoutingSettings()
    search: SearchSettings = SearchSettings()
    golem: GolemSettings = GolemSettings()
    state: StateSettings = StateSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    memory: MemorySettings = MemorySettings()
    failover: FailoverSettings = FailoverSettings()
    budgets: BudgetSettings = BudgetSettings()
    health: HealthSettings = HealthSettings()
    payments: PaymentSettings = PaymentSettings()
    batches: BatchSettings = BatchSettings()
    refresh: RefreshSettings = RefreshSettings()
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    providers: tuple[ProviderEntry, ...] = ()
    aliases: dict[str, Alias] = {}
    keys: tuple[KeyEntry, ...] = ()
    workloads: dict[str, WorkloadRow] = {}
    unheeded: tuple[Degradation, ...] = ()
    reasoning_formats: tuple[ReasoningFormat, ...] = ()
    models: tuple[ModelRow, ...] = ()
    prices: tuple[PriceRow, ...] = ()
    source: str = ""


def load_settings(path: str | Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of `path`, of `BARDO_CONFIG`, of `bardo.toml` here, or the defaults; then the environment's.

    Raises ConfigError naming the file and the line.
    """
    environment = os.environ if environment is None else environment
    file = settings_file(path, environment)
    read = Settings() if file is None else parse_settings(read_text(file), str(file))
    settings = with_environment(read, environment)
    know(address_secrets(settings, environment))
    return settings


def settings_file(path: str | Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file that is read, which may not exist where somebody named it; None where there is none."""
    named = path or environment.get("BARDO_CONFIG")
    if named:
        return Path(named)
    file = Path(FILE_NAME)
    return file if file.is_file() else None


def parse_settings(text: str, source: str = FILE_NAME) -> Settings:
    """Return the settings in `text`. Raises ConfigError naming the line; if there are several mistakes, `problems` holds each of them."""
    tables = read_tables(text, source)
    mistakes = Mistakes(text, source, _tables_of_keys())
    rows: dict[str, Any] = {}
    lists, aliases, workloads = mistakes.lists(tables), tables.pop("aliases", {}), tables.pop("workloads", {})
    inference = tables.get("inference")
    profiles = inference.pop("profiles", {}) if isinstance(inference, dict) else {}
    mistakes.unknown_tables(tables, _Tables.__struct_fields__)
    choices = choices_of(RoutingSettings) | choices_of(GolemSettings)
    read = mistakes.read(tables, _Tables, Place(text, source), choices).value or _Tables()
    with mistakes.collected():
        rows["aliases"] = read_aliases(aliases, text, source)
    with mistakes.collected():
        rows |= _workload_rows(workloads, profiles, read, text, source)
    _check_each(read, _FIRST_CHECKS, mistakes, Place(text, source))
    for name, read_rows in _ROW_READERS.items():
        with mistakes.collected():
            rows[name] = read_rows(lists[name], text, source)
    rows["providers"] = read_providers(lists["providers"], text, source, mistakes)
    _check_rows(read, rows, mistakes, text, source)
    _check_each(read, _LAST_CHECKS, mistakes, Place(text, source))
    mistakes.check()
    settings = Settings(**msgspec.structs.asdict(read), **rows, source=source)
    check_embeddings(settings, Place(text, source, "inference.embeddings"))
    check_pipeline(settings, Place(text, source, "inference.pipeline"))
    check_memory(settings)
    return settings


def _workload_rows(workloads: Any, profiles: Any, read: _Tables, text: str, source: str) -> dict[str, Any]:
    """Return the rows of `[workloads]`, with the profiles applied. Raises ConfigError."""
    made = settle_workloads(
        read_workloads(workloads, text, source),
        read_profiles(profiles, text, source),
        read.golem,
        read.inference.caching,
        Place(text, source, "inference.profiles"),
    )
    check_workloads(made.rows, text, source)
    return {"workloads": made.rows, "unheeded": made.unheeded}


def _check_each(read: _Tables, checks: Mapping[str, Check], mistakes: Mistakes, place: Place) -> None:
    """Check each table alone, and collect the mistakes."""
    for name, check in checks.items():
        with mistakes.collected():
            check(getattr(read, name), place.inside(name))


def _check_rows(read: _Tables, rows: Mapping[str, Any], mistakes: Mistakes, text: str, source: str) -> None:
    """Check what tables say about rows of other tables, and collect the mistakes."""
    if "aliases" in rows and "workloads" in rows:
        with mistakes.collected():
            check_names(rows["workloads"], rows["aliases"], text, source)
        with mistakes.collected():
            check_features(rows["workloads"], text, source)
        if not mistakes.found:
            with mistakes.collected():
                configured = [provider_of(entry, source) for entry in rows["providers"]]
                check_private(rows["workloads"], read.routing, configured, rows["aliases"], text, source)
    with mistakes.collected():
        check_routing(read.routing, rows["providers"], Place(text, source, "routing"))
    with mistakes.collected():
        check_failover(read.failover, provider_ids(rows["providers"]), Place(text, source, "failover"))


def _check_one_place(log: LogSettings, place: Place) -> None:
    """Raise ConfigError where the log is to be kept at two places."""
    if named := [name for name in ("path", "url", "url_env") if getattr(log, name)][1:]:
        raise ConfigError(f"{place.of(named[0])} and another name a place for the log", hint="keep one of them")


def _check_its_store(settings: ReplaySettings | ResponseSettings | ProviderIdSettings, place: Place) -> None:
    check_store(settings.store, place)


Check = Callable[[Any, Place], None]
"""Checks one table. Raises ConfigError."""
_FIRST_CHECKS: Mapping[str, Check] = {
    "gateway": check_gateway,
    "golem": check_golem,
    "log": _check_one_place,
    "search": check_search,
}
_LAST_CHECKS: Mapping[str, Check] = {
    "telegram": check_chat,
    "discord": check_chat,
    "budgets": check_budgets,
    "health": check_health,
    "replay": _check_its_store,
    "responses": _check_its_store,
    "provider_ids": _check_its_store,
    "payments": check_payments,
}
_ROW_READERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], str, str], Any]] = {
    "reasoning_formats": read_formats,
    "models": read_models,
    "prices": read_prices,
    "keys": read_keys,
}


class _Tables(msgspec.Struct, forbid_unknown_fields=True):
    """The file without its lists of tables, which are read one by one, so that an error can name which it is."""

    gateway: GatewaySettings = GatewaySettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    replay: ReplaySettings = ReplaySettings()
    responses: ResponseSettings = ResponseSettings()
    provider_ids: ProviderIdSettings = ProviderIdSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    inference: InferenceSettings = InferenceSettings()
    routing: RoutingSettings = RoutingSettings()
    search: SearchSettings = SearchSettings()
    golem: GolemSettings = GolemSettings()
    state: StateSettings = StateSettings()
    failover: FailoverSettings = FailoverSettings()
    budgets: BudgetSettings = BudgetSettings()
    health: HealthSettings = HealthSettings()
    payments: PaymentSettings = PaymentSettings()
    batches: BatchSettings = BatchSettings()
    refresh: RefreshSettings = RefreshSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    memory: MemorySettings = MemorySettings()
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()


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


def default_log_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the log stands when the configuration does not say: in the user's data folder."""
    environment = os.environ if environment is None else environment
    home = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "bardo" / "log.db"
