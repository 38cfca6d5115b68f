"""Puts the parts together: from settings to a running engine. The gateway, the library and the command line start here."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bardo import reuse
from bardo.accounting.price_table import price_table
from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.config.environment import WORKERS_FOLDER, reuse_in
from bardo.adapters.config.formats import formats_of
from bardo.adapters.config.paths import named_path
from bardo.adapters.config.routing import health_store, is_shared
from bardo.adapters.config.settings import (
    Settings,
    data_folder,
    default_log_path,
    embedding_folder,
    log_path,
    state_path,
)
from bardo.adapters.config.storage import check_memory, place_of
from bardo.adapters.net.client import Deadlines, HttpTransport, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.feedback import FeedbackStore
from bardo.adapters.stores.replay_store import ReplayKeeper, open_keeper
from bardo.adapters.stores.response_store import ResponseStore, open_responses
from bardo.adapters.stores.retention import LogKeeper
from bardo.call.call_context import Limits
from bardo.call.call_routing import CallRouting
from bardo.call.failover import Failover
from bardo.call.runner import Runner
from bardo.call.runner_parts import CallMemory
from bardo.call.web_search import open_searcher, search_policy
from bardo.catalog.endpoint_choice import builtin_dialect_models, choice_rows
from bardo.catalog.features import features
from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.catalog.forms import builtin_forms
from bardo.catalog.hosted_tools import hosted_tools
from bardo.catalog.kept_ids import kept_ids
from bardo.catalog.load import builtin
from bardo.catalog.meaningful import builtin_meaningful
from bardo.catalog.models import builtin_models
from bardo.catalog.parameters import builtin_parameters
from bardo.catalog.prices import price_rows
from bardo.catalog.replay import builtin_replay
from bardo.catalog.request_shapes import builtin_shape_rules
from bardo.catalog.shared_fields import shared_rows
from bardo.dialects import CLIENT_FORMS, DIALECTS, dialect
from bardo.planning.knowledge import CachingPolicy, Knowledge
from bardo.reasoning.registry import builtin_formats
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.feedback import FeedbackRecorder
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.introspect import Introspector
from bardo.services.facts.introspect.adapters import builtin_adapters
from bardo.services.facts.listings import CatalogRefresh, HourlyRefresh, Listings, ListingStore
from bardo.services.facts.listings.listings import feed_prices
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.services.facts.provider_ids import ProviderIds, open_provider_ids
from bardo.services.pipeline.pipeline import Pipeline
from bardo.structured.modes import ladders
from bardo.structured.subsets import subsets
from bardo.tools.formats import tool_call_formats

if TYPE_CHECKING:
    from bardo.adapters.stores.log import LogWriter
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
    from bardo.adapters.stores.memory.store import MemoryWriter
    from bardo.services.accounts.agent_calls import AgentCalls
    from bardo.services.facts.health_pings import HealthPings
    from bardo.services.facts.health_sharing import HealthSharing
    from bardo.services.facts.learned_routing import LearnedRouting
    from bardo.services.payments.payer import Payments
    from bardo.services.telemetry.telemetry import Telemetry

# What the HTTP client loads with its first call, JSON Schema, JSON repair, and names of hosts that are not ASCII.
_MODULES = (
    "httptools",
    "aiohappyeyeballs",
    "jsonschema_rs",
    "json_repair",
    "encodings.idna",
    "unicodedata",
)
_TABLES: tuple[Callable[[], object], ...] = (
    builtin,
    builtin_adapters,
    builtin_dialect_models,
    builtin_field_refusals,
    builtin_formats,
    builtin_forms,
    builtin_meaningful,
    builtin_models,
    builtin_parameters,
    builtin_replay,
    builtin_shape_rules,
    choice_rows,
    features,
    ladders,
    price_rows,
    price_table,
    hosted_tools,
    kept_ids,
    shared_rows,
    subsets,
    tool_call_formats,
)


def preload() -> None:
    """Import every dialect and library, and read every table of the catalog. It takes a few tenths of a second, once."""
    for name in (*DIALECTS, *CLIENT_FORMS):
        dialect(name)
    for module in _MODULES:
        import_module(module)
    for read in _TABLES:
        read()


_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "transport": (),
    "replay": ("replay",),
    "responses": ("responses",),
    "provider_ids": ("provider_ids", "state", "log"),
    "learned": ("routing",),
    "payments": ("payments", "state", "log"),
    "episodes": ("memory", "log", "inference"),
    "retention": ("log",),
    "log": ("log",),
    "sharing": ("health",),
    "health": ("health",),
    "telemetry": ("telemetry",),
    "memory": (),
}
"""Which settings each part depends on, in the order in which parts are closed."""
Part = TypeVar("Part")


class ConfigurationParts:
    """The parts of one configuration, with those that it took over from `before`.

    `transport` is one that the caller closes; by default one is made. `open` opens what needs files. `commit` says that the new
    configuration is at work: the one before it then no longer closes what was taken over.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        transport: Transport | None = None,
        environment: Mapping[str, str] | None = None,
        before: ConfigurationParts | None = None,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._before = before
        self._parts: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._given: set[str] = set()
        self.transport: Transport = transport or self._part("transport", HttpTransport)
        self.health: HealthKeeper = self._part("health", lambda: HealthKeeper(health_store(settings.health)))
        self.memory: CallMemory = self._part("memory", CallMemory)
        self.sharing: HealthSharing | None = None
        self.learned: LearnedRouting | None = None
        self.payments: Payments | None = None
        self.telemetry: Telemetry | None = None
        self.log: LogWriter | None = None
        self.episodes: MemoryWriter | None = None
        self.retention: LogKeeper | None = None
        self.replay: ReplayKeeper | None = None
        self.responses: ResponseStore | None = None
        self.provider_ids: ProviderIds | None = None

    def open(self) -> None:
        """Open files and databases, and start what writes them. Raises ConfigError and LogProblem; nothing is left open then."""
        settings, environment = self._settings, self._environment
        try:
            self.sharing = self._part("sharing", lambda: _sharing(settings, self.health, environment))
            self.learned = self._part("learned", lambda: _load_learned(settings))
            self.payments = self._part("payments", lambda: _payments(settings, self.transport, environment))
            self.telemetry = self._part("telemetry", lambda: _telemetry(settings))
            self.log = self._part("log", lambda: open_log(settings, environment))
            self.episodes = self._part("episodes", lambda: _episodes(settings, environment))
            self.retention = self._part("retention", lambda: _retention(settings, environment))
            self.replay = self._part("replay", lambda: open_keeper(settings.replay, environment=environment))
            self.responses = self._part(
                "responses", lambda: open_responses(settings.responses, environment=environment)
            )
            self.provider_ids = self._part("provider_ids", lambda: open_provider_ids(settings, environment))
        except BaseException:
            self.abandon()
            raise

    def _part(self, name: str, make: Callable[[], Part]) -> Part:
        before = self._before
        if before is not None and name in before._parts and _same(name, before._settings, self._settings):
            self._taken.add(name)
            part: Part = before._parts[name]
        else:
            part = make()
        self._parts[name] = part
        return part

    def commit(self) -> None:
        """Have the configuration before this one leave open what was taken over."""
        if self._before is not None:
            self._before._given |= self._taken
        self._before = None

    def abandon(self) -> None:
        """Close what was opened for a configuration that is not used. No call was made with it."""
        for name in (
            "replay",
            "responses",
            "provider_ids",
            "retention",
            "episodes",
            "log",
            "telemetry",
            "payments",
            "learned",
        ):
            if name not in self._taken and (part := self._parts.get(name)) is not None:
                part.close()

    async def close(self) -> None:
        """Close the connections first and the log among the last: nothing that was to be written is lost."""
        for name in _SETTINGS:
            part = self._parts.get(name)
            if part is None or name in self._given or name in ("health", "memory"):
                continue
            if name in ("transport", "sharing"):
                await part.close()
            elif name in ("telemetry", "retention", "replay", "responses", "provider_ids"):
                await _close_beside(part.close)
            else:
                part.close()


async def _close_beside(close: Callable[[], None]) -> None:
    """Close a part off the event loop; here, where the interpreter ends and starts no thread any more."""
    try:
        await asyncio.to_thread(close)
    except RuntimeError:
        close()


def _same(name: str, before: Settings, now: Settings) -> bool:
    return all(attrgetter(section)(before) == attrgetter(section)(now) for section in _SETTINGS[name])


def _sharing(settings: Settings, keeper: HealthKeeper, environment: Mapping[str, str] | None) -> HealthSharing | None:
    """Return what shares health with other gateways; None where that is not wanted: without it nothing of this is loaded."""
    if not is_shared(settings.health):
        return None
    from bardo.services.facts.health_sharing import open_sharing

    return open_sharing(settings.health, keeper, environment)


def open_log(settings: Settings, environment: Mapping[str, str] | None = None) -> LogWriter | None:
    """Return the log's writer, or None where the log is off."""
    if not settings.log.enabled:
        return None
    from bardo.adapters.stores.log import LogWriter

    return LogWriter(log_path(settings, environment), keep_content=settings.log.content)


def _retention(settings: Settings, environment: Mapping[str, str] | None) -> LogKeeper | None:
    """Return what removes old calls; None where all are kept."""
    log = settings.log
    return (
        LogKeeper(log_path(settings, environment), log.retention_days) if log.enabled and log.retention_days else None
    )


def _episodes(settings: Settings, environment: Mapping[str, str] | None) -> MemoryWriter | None:
    """Return what keeps the thinking of calls; None where the operator does not want it: without it nothing of this is loaded."""
    if not settings.memory.enabled:
        return None
    from bardo.adapters.stores.memory.store import open_writer

    return open_writer(log_path(settings, environment), settings.memory, embedding_folder(settings))


def _load_learned(settings: Settings) -> LearnedRouting | None:
    """Return what routing has learned, for the strategy that needs it: without it nothing of this is loaded."""
    if settings.routing.strategy != "learned":
        return None
    from bardo.services.facts.learned_routing import LearnedRouting

    return LearnedRouting.of(settings)


def _payments(settings: Settings, transport: Transport, environment: Mapping[str, str] | None) -> Payments | None:
    """Return what pays for calls; None where no wallet is named: without one nothing of this is loaded."""
    if not settings.payments.wallet_key_env:
        return None
    from bardo.services.payments.wallet import open_payments

    path = state_path(settings, environment)
    return open_payments(settings.payments, transport, path, environment, clock=time.time)


def _telemetry(settings: Settings) -> Telemetry | None:
    """Return what tells monitoring systems of calls; None where nobody is told: without it nothing of this is loaded."""
    if not settings.telemetry.metrics and not settings.telemetry.otlp:
        return None
    from bardo.services.telemetry.telemetry import open_telemetry

    return open_telemetry(settings.telemetry)


_log = logging.getLogger("bardo.control")


class Assembly:
    """A runner and what has to be closed after it. `lasting` are the parts that the next configuration may take over."""

    def __init__(
        self,
        runner: Runner,
        lasting: ConfigurationParts,
        *,
        introspector: Introspector | None = None,
        feedback: FeedbackRecorder | None = None,
        pings: HealthPings | None = None,
        refresh: HourlyRefresh | None = None,
        memory: ReasoningMemory | None = None,
    ) -> None:
        self.runner = runner
        self.lasting = lasting
        self.feedback = feedback
        self.memory = memory
        self.responses = lasting.responses
        self.log = lasting.log
        self._introspector = introspector
        self._pings = pings
        self._refresh = refresh

    def start(self) -> None:
        """Begin what goes on beside the calls, in the running event loop."""
        if self.lasting.sharing is not None:
            self.lasting.sharing.start()
        if self._pings is not None:
            self._pings.start()
        if self._refresh is not None:
            self._refresh.start()

    async def close(self) -> None:
        """Close connections, then the log: nothing that was to be written is lost."""
        if self._refresh is not None:
            await self._refresh.close()
        if self._introspector is not None:
            await self._introspector.close()
        if self._pings is not None:
            await self._pings.close()
        await self.runner.directory.close()
        if self.runner.pipeline is not None:
            await self.runner.pipeline.close()
        if self.feedback is not None:
            self.feedback.close()
        if self.memory is not None:
            self.memory.close()
        if self.runner.agent is not None:
            await asyncio.to_thread(self.runner.agent.spending.close)
        await self.lasting.close()


def assemble(
    settings: Settings,
    *,
    transport: Transport | None = None,
    environment: Mapping[str, str] | None = None,
    before: Assembly | None = None,
    for_clients: bool = False,
) -> Assembly:
    """Return the engine that `settings` describe. A `transport` that is given stays the caller's to close.

    `for_clients`: calls come from others than the operator, and choose only what is allowed to them.

    `before` is the engine of an earlier configuration, which goes on with its open calls: what it holds is shared with it, and closed by
    the new one, once `lasting.commit` was called.
    """
    variables = os.environ if environment is None else environment
    if settings.inference.pipeline.cache.store_env:
        place_of(settings.inference.pipeline.cache, variables, "kept replies")
    keeps = reuse_in(variables)
    if keeps is not None:
        reuse.turn(keeps)
    check_memory(settings.memory, settings.log, settings.source)
    for lost in settings.unheeded:
        _log.warning("%s of the configuration is not honoured: %s", lost.what, lost.why, extra={"field": lost.what})
    earlier = None if before is None else before.lasting
    lasting = ConfigurationParts(settings, transport=transport, environment=environment, before=earlier)
    keyring, listings = Keyring(environment), open_listings(settings, environment)
    directory = ProviderDirectory.of(settings, lasting.transport, keyring, clock=time.monotonic, listings=listings)
    # Last, because it starts a thread: nothing is left behind where the configuration was wrong.
    lasting.open()
    try:
        return _assembled(settings, lasting, directory, keyring, listings, environment, for_clients=for_clients)
    except BaseException:
        lasting.abandon()
        raise


def _assembled(
    settings: Settings,
    lasting: ConfigurationParts,
    directory: ProviderDirectory,
    keyring: Keyring,
    listings: Listings,
    environment: Mapping[str, str] | None,
    *,
    for_clients: bool,
) -> Assembly:
    transport, log = lasting.transport, lasting.log
    keyring.pays = lasting.payments is not None
    introspector = Introspector(transport, keyring) if settings.reasoning.introspect else None
    facts, prices = model_facts(settings, introspector, listings), PriceBook(settings.prices)
    runner = Runner(
        directory,
        transport,
        keyring,
        limits=_limits(settings),
        facts=facts,
        routing=_routing(settings, directory, facts, prices, lasting),
        log=log,
        journal=None if log is None else log.journal,
        replay=lasting.replay,
        servers=introspector,
        client_keys=ClientKeys(settings.keys, environment),
        failover=Failover(settings.failover),
        prices=prices,
        payments=lasting.payments,
        memory=lasting.memory,
    )
    runner.pipeline = _pipeline(settings, runner, environment, for_clients=for_clients)
    runner.telemetry = lasting.telemetry
    runner.episodes = lasting.episodes
    if settings.golem.enabled:
        runner.agent = open_agent(settings, runner, environment)
    feed_prices(listings, runner.prices, directory.providers)
    runner.searcher = open_searcher(settings.search, runner, environment)
    refresh = CatalogRefresh(listings, transport, keyring)
    return Assembly(
        runner,
        lasting,
        introspector=introspector,
        feedback=None if log is None else FeedbackRecorder(log, FeedbackStore(log_path(settings, environment))),
        memory=None if lasting.episodes is None else open_memory(settings, environment, lasting),
        pings=_pings(settings, runner),
        refresh=HourlyRefresh(refresh, listings, lambda: directory.providers, seconds=settings.refresh.hours * 3600),
    )


def open_agent(settings: Settings, runner: Runner, environment: Mapping[str, str] | None = None) -> AgentCalls:
    """Return what settles the calls of the agent. Nothing is opened before it is used."""
    # Read only where somebody has such an agent.
    from bardo.services.accounts.agent_calls import AgentCalls, DaySpending, SessionSteps

    shared = (os.environ if environment is None else environment).get(WORKERS_FOLDER)
    path = log_path(settings, environment) if settings.log.enabled else None
    return AgentCalls(
        settings.golem,
        settings.inference.caching.prompt_cache_key_prefix,
        runner.directory,
        runner.health.balances,
        DaySpending(path, runner.clock),
        SessionSteps(Path(shared) / "agent_steps.db" if shared else None, runner.clock),
        clock=runner.clock,
    )


def open_memory(
    settings: Settings, environment: Mapping[str, str] | None = None, lasting: ConfigurationParts | None = None
) -> ReasoningMemory:
    """Return the reasoning memory of a configuration. Nothing is opened before it is used. `lasting` are the parts that fill it, if any."""
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

    path, folder = log_path(settings, environment), embedding_folder(settings)
    log, episodes = (None, None) if lasting is None else (lasting.log, lasting.episodes)
    return ReasoningMemory(path, settings.memory, folder, writer=episodes, log=log)


def _routing(
    settings: Settings, directory: ProviderDirectory, facts: ModelFacts, prices: PriceBook, lasting: ConfigurationParts
) -> CallRouting:
    """Return what finds who is asked, with the health of providers."""
    return CallRouting(
        directory,
        facts,
        strategy=settings.routing.strategy,
        private=settings.routing.private_providers,
        learned=lasting.learned,
        prices=prices,
        health=lasting.health,
    )


def _pings(settings: Settings, runner: Runner) -> HealthPings | None:
    """Return what pings providers; None where the operator does not want it."""
    if not settings.health.ping:
        return None
    from bardo.services.facts.health_pings import HealthPings

    seconds, watch = settings.health.ping_seconds, runner.watch
    return HealthPings(runner.directory, runner.transport, runner.keyring, runner.health, seconds=seconds, watch=watch)


def _pipeline(
    settings: Settings, runner: Runner, environment: Mapping[str, str] | None, *, for_clients: bool
) -> Pipeline:
    """Return what runs the layers of calls. A layer is made when a profile that has it is first used."""
    folder = data_folder(settings, environment)
    known = os.environ if environment is None else environment
    return Pipeline.of(settings, runner, folder, known, for_clients=for_clients)


def _limits(settings: Settings) -> Limits:
    timeouts = settings.timeouts
    return Limits(
        deadlines=Deadlines(
            connect=timeouts.connect, first_byte=timeouts.first_byte, idle=timeouts.idle, total=timeouts.total
        ),
        max_reply_bytes=settings.gateway.max_reply_bytes,
        max_stream_bytes=settings.gateway.max_stream_bytes,
        keep_content=settings.log.content,
        search_usd_per_day=settings.budgets.search_usd_per_day,
    )


def model_facts(
    settings: Settings, introspector: Introspector | None = None, listings: Listings | None = None
) -> ModelFacts:
    """Return what a call of these settings draws on. Without an `introspector` no server is asked."""
    caching = settings.inference.caching
    planning = Knowledge(
        formats=formats_of(settings),
        budgets=settings.reasoning.budgets,
        prompt_words=settings.reasoning.prompt_words,
        kept_budgets=settings.reasoning.budget_words if settings.reasoning.keep_budgets else None,
        repair_history=settings.inference.repair_history,
        structured=settings.inference.structured_outputs,
        caching=CachingPolicy(markers=caching.auto_cache_control) if caching.calls == "all" else None,
        search=search_policy(settings.search),
    )
    return ModelFacts(settings.models, settings=planning, introspector=introspector, listings=listings)


def open_listings(settings: Settings, environment: Mapping[str, str] | None = None) -> Listings:
    """Return the providers' lists of models that were kept. Nothing is read before it is asked for."""
    named = settings.refresh.folder
    log = log_path(settings, environment)
    beside = (log if isinstance(log, Path) else default_log_path(environment)).with_name("catalog")
    return Listings(ListingStore(named_path(named) if named else beside))
