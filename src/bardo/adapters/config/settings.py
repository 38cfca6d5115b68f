"""`bardo.toml` and the environment, read and checked: the whole configuration, and the questions to all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bardo.adapters.config.accounts import BudgetSettings, PaymentSettings, check_budgets, check_payments, read_keys
from bardo.adapters.config.accounts import KeyEntry as KeyEntry
from bardo.adapters.config.chat import DiscordSettings, TelegramSettings, check_chat
from bardo.adapters.config.environment import with_environment
from bardo.adapters.config.gateway import BatchSettings, check_gateway
from bardo.adapters.config.gateway import GatewaySettings as GatewaySettings
from bardo.adapters.config.gateway import TelemetrySettings as TelemetrySettings
from bardo.adapters.config.gateway import TimeoutSettings as TimeoutSettings
from bardo.adapters.config.mistakes import Mistakes, Place, choices_of, read_tables, read_text
from bardo.adapters.config.paths import named_path
from bardo.adapters.config.pipeline import (
    ANY,
    OFF,
    EmbeddingSettings,
    PipelineSettings,
    check_embeddings,
    check_pipeline,
    layers_of,
    model_asked,
    profile_names,
)
from bardo.adapters.config.providers import (
    FILE_NAME,
    check_aliases,
    provider_ids,
    read_aliases,
    read_formats,
    read_models,
    read_prices,
    read_providers,
)
from bardo.adapters.config.providers import ProviderEntry as ProviderEntry
from bardo.adapters.config.providers import provider_of as provider_of
from bardo.adapters.config.routing import (
    CachingSettings,
    FailoverSettings,
    HealthSettings,
    RoutingSettings,
    check_failover,
    check_features,
    check_golem,
    check_health,
    check_names,
    check_private,
    check_routing,
    check_search,
    check_workloads,
    read_profiles,
    read_workloads,
    settle_workloads,
)
from bardo.adapters.config.routing import GolemSettings as GolemSettings
from bardo.adapters.config.routing import SearchSettings as SearchSettings
from bardo.adapters.config.secrets import HeaderVariable as HeaderVariable
from bardo.adapters.config.secrets import address_secrets
from bardo.adapters.config.storage import NO_EMBEDDING, PIPELINE, check_its_store, check_memory, check_one_place
from bardo.adapters.config.storage import LogSettings as LogSettings
from bardo.adapters.config.storage import MemorySettings as MemorySettings
from bardo.adapters.config.storage import ProviderIdSettings as ProviderIdSettings
from bardo.adapters.config.storage import RefreshSettings as RefreshSettings
from bardo.adapters.config.storage import ReplaySettings as ReplaySettings
from bardo.adapters.config.storage import ResponseSettings as ResponseSettings
from bardo.adapters.config.storage import StateSettings as StateSettings
from bardo.adapters.log_filter import know
from bardo.catalog.models import ModelRow
from bardo.catalog.prices import PriceRow
from bardo.context.privacy.settings import PrivacySettings
from bardo.planning.model_names import Alias
from bardo.reasoning.control import PORTABLE, PortableBudgets
from bardo.reasoning.formats import ReasoningFormat
from bardo.routing.workloads import WorkloadRow
from bardo.structured import StructuredSettings
from bardo.values.degradation import Degradation
from bardo.values.errors import ConfigError


def embedding_folder(settings: Settings) -> str | None:
    """Return the folder of the model that makes vectors of episodes, empty for the table that ships, or None if none are made."""
    named = settings.memory.embedding
    if named == NO_EMBEDDING:
        return None
    return settings.inference.pipeline.embedding if named in (PIPELINE, "") else named


class ReasoningSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How models are told to think. `introspect`: servers are asked what they know of their models, once, beside the calls.

    `prompt_words`: a model that has no control of its thinking is told the request in the system prompt. `budgets` are the tokens of
    each level, the one table between the two. `keep_budgets`: the gateway ends thinking at its budget where the server cannot, and
    `budget_words` are what it lets the model think last then.
    """

    introspect: bool = True
    prompt_words: bool = False
    keep_budgets: bool = False
    budget_words: str = ""
    budgets: PortableBudgets = PORTABLE


class InferenceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How models are asked. `structured_outputs`: for answers in a schema; `caching`: so that prompts are cached;
    `embeddings`: who makes vectors of texts; `pipeline`: the layers that process a request before it is sent. `repair_history`: a history
    that the provider would refuse (a call without its result, a text of nothing) is mended and
    reported; if false, it is refused with 400, naming the broken parts.
    """

    structured_outputs: StructuredSettings = StructuredSettings()
    caching: CachingSettings = CachingSettings()
    embeddings: EmbeddingSettings = EmbeddingSettings()
    pipeline: PipelineSettings = PipelineSettings()
    repair_history: bool = True


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration. `source` is the file it came from, empty where there was none.

    `workloads` are the rows of the agent and the operator's, with `[inference.profiles]`; `unheeded` is what locked profiles refuse of it.
    """

    gateway: GatewaySettings = GatewaySettings()
    timeouts: TimeoutSettings = TimeoutSettings()
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
    """Return the file that is read, which may not exist where somebody named it, or None if there is none."""
    named = path or environment.get("BARDO_CONFIG")
    if named:
        return Path(named)
    file = Path(FILE_NAME)
    return file if file.is_file() else None


def parse_settings(text: str, source: str = FILE_NAME) -> Settings:
    """Return the settings in `text`. Raises ConfigError naming the line; if there are several mistakes, `problems` holds each of them."""
    tables = read_tables(text, source)
    mistakes = Mistakes(text, source, _tables_of_keys())
    mistakes.check_globs(tables)
    rows: dict[str, Any] = {}
    lists, aliases, workloads = mistakes.lists(tables), tables.pop("aliases", {}), tables.pop("workloads", {})
    inference = tables.get("inference")
    profiles = inference.pop("profiles", {}) if isinstance(inference, dict) else {}
    if tables.get("http") == {"client": "direct"}:
        # It chose between two HTTP clients, and says what holds now in any case.
        del tables["http"]
    mistakes.unknown_tables(tables, _table_kinds())
    choices = choices_of(RoutingSettings) | choices_of(GolemSettings)
    read = mistakes.read(tables, Settings, Place(text, source), choices).value or Settings()
    with mistakes.collected():
        rows["aliases"] = read_aliases(aliases, text, source)
    with mistakes.collected():
        made = settle_workloads(
            read_workloads(workloads, text, source),
            read_profiles(profiles, text, source),
            read.golem,
            read.inference.caching,
            Place(text, source, "inference.profiles"),
        )
        check_workloads(made.rows, text, source)
        rows |= {"workloads": made.rows, "unheeded": made.unheeded}
    _check_each(read, _FIRST_CHECKS, mistakes, Place(text, source))
    for name, read_rows in _ROW_READERS.items():
        with mistakes.collected():
            rows[name] = read_rows(lists[name], text, source)
    rows["providers"] = read_providers(lists["providers"], text, source, mistakes)
    _check_rows(read, rows, mistakes, text, source)
    _check_each(read, _LAST_CHECKS, mistakes, Place(text, source))
    mistakes.check()
    settings = msgspec.structs.replace(read, **rows, source=source)
    inference, place = settings.inference, Place(text, source, "inference")
    check_embeddings(inference.embeddings, inference.pipeline.embedding, settings.providers, place.inside("embeddings"))
    check_pipeline(inference.pipeline, profiles_named(settings), _profiles_allowed(settings), place.inside("pipeline"))
    check_memory(settings.memory, settings.log, source)
    return settings


def _check_each(read: Settings, checks: Mapping[str, Check], mistakes: Mistakes, place: Place) -> None:
    """Check each table alone, and collect the mistakes."""
    for name, check in checks.items():
        with mistakes.collected():
            check(getattr(read, name), place.inside(name))


def _check_rows(read: Settings, rows: Mapping[str, Any], mistakes: Mistakes, text: str, source: str) -> None:
    """Check what tables say about rows of other tables, and collect the mistakes."""
    if "aliases" in rows and "workloads" in rows:
        with mistakes.collected():
            check_names(rows["workloads"], rows["aliases"], text, source)
        with mistakes.collected():
            check_features(rows["workloads"], text, source)
        if not mistakes.found:
            with mistakes.collected():
                configured = [provider_of(entry, source) for entry in rows["providers"]]
                check_aliases(rows["aliases"], configured, Place(text, source, "aliases"))
                check_private(rows["workloads"], read.routing, configured, rows["aliases"], text, source)
    with mistakes.collected():
        check_routing(read.routing, rows["providers"], Place(text, source, "routing"))
    with mistakes.collected():
        check_failover(read.failover, provider_ids(rows["providers"]), Place(text, source, "failover"))


Check = Callable[[Any, Place], None]
"""Checks one table. Raises ConfigError."""
_FIRST_CHECKS: Mapping[str, Check] = {
    "gateway": check_gateway,
    "golem": check_golem,
    "log": check_one_place,
    "search": check_search,
}
_LAST_CHECKS: Mapping[str, Check] = {
    "telegram": check_chat,
    "discord": check_chat,
    "budgets": check_budgets,
    "health": check_health,
    "replay": check_its_store,
    "responses": check_its_store,
    "provider_ids": check_its_store,
    "payments": check_payments,
}
_ROW_READERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], str, str], Any]] = {
    "reasoning_formats": read_formats,
    "models": read_models,
    "prices": read_prices,
    "keys": read_keys,
}


@cache
def _tables_of_keys() -> dict[str, tuple[str, ...]]:
    """Return under which tables each key may stand."""
    tables: dict[str, tuple[str, ...]] = {}
    for name, table in _named_tables(Settings(), ""):
        for key in table.__struct_fields__:
            tables[key] = (*tables.get(key, ()), f"[{name}]")
    return tables


@cache
def _table_kinds() -> tuple[str, ...]:
    """Return the names of the tables at the top of the file, without its lists of tables, which are read one by one."""
    return tuple(name for name, _ in _named_tables(Settings(), "") if "." not in name)


def _named_tables(settings: msgspec.Struct, below: str) -> Iterator[tuple[str, msgspec.Struct]]:
    for name in settings.__struct_fields__:
        if isinstance(table := getattr(settings, name), msgspec.Struct):
            yield f"{below}{name}", table
            yield from _named_tables(table, f"{below}{name}.")


def profiles_named(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield which profiles keys, aliases and workloads name: what names one, its name, and the profile."""
    yield from (("key", key.id, key.pipeline) for key in settings.keys if key.pipeline)
    yield from (("alias", name, alias.pipeline) for name, alias in settings.aliases.items() if alias.pipeline)
    yield from (("workload", name, entry.pipeline) for name, entry in settings.workloads.items() if entry.pipeline)


def _profiles_allowed(settings: Settings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield which profiles callers may name: where that is said, and the profiles."""
    yield "[gateway] client_pipelines", settings.gateway.client_pipelines
    yield from ((f"key {key.id!r} pipelines", key.pipelines) for key in settings.keys)


def may_mask(settings: Settings) -> bool:
    """Whether a call may have the layer `privacy`: a profile that the configuration names has it, or one that callers may name."""
    own = settings.inference.pipeline
    used = {own.profile, *(profile for _, _, profile in profiles_named(settings))} - {"", OFF}
    allowed = {name for _, names in _profiles_allowed(settings) for name in names}
    used |= set(profile_names(own)) - {OFF} if ANY in allowed else allowed - {OFF}
    layers = {layer for name in used for layer in layers_of(name, own)}
    return "privacy" in layers or own.privacy != PrivacySettings()


def model_of_vectors(settings: Settings) -> str | None:
    """Return the model that is asked for vectors, with its provider (`venice/text-embedding-bge-m3`), or None if no provider is."""
    return model_asked(settings.inference.embeddings, settings.providers, settings.source)


def default_log_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return where the log stands when the configuration does not say: in the user's data folder."""
    environment = os.environ if environment is None else environment
    home = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "bardo" / "log.db"


def log_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where the inference log stands: a file, or the address of a database. Raises ConfigError for a variable that is not set."""
    log = settings.log
    named = _address(log.url_env, environment) or log.url or log.path
    if "://" in named:
        return named
    return named_path(named) if named else default_log_path(environment)


def state_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where keys, payments and batches are kept, as `log_path` does."""
    named = _address(settings.state.url_env, environment) or settings.state.url
    if "://" in named:
        return named
    if named:
        return named_path(named)
    log = log_path(settings, environment)
    return log.with_name("state.db") if isinstance(log, Path) else log


def _address(variable: str, environment: Mapping[str, str] | None) -> str:
    """Return what a variable holds; nothing where none is named."""
    if not variable:
        return ""
    address = (os.environ if environment is None else environment).get(variable, "")
    if not address:
        raise ConfigError(f"{variable}, which holds the address of a database, is not set", hint=f"set {variable}")
    return address


def data_folder(settings: Settings, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder in which bardo keeps its data: that of its log."""
    log = log_path(settings, environment)
    return log.parent if isinstance(log, Path) else default_log_path(environment).parent
