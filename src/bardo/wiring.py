"""Puts the parts together: from settings to a running engine. The gateway, the library and the command line start here."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bardo import reuse
from bardo.accounting.cost import price_table
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
from bardo.adapters.log_filter import cover
from bardo.adapters.net.client import Deadlines, HttpTransport, Transport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.feedback import FeedbackStore
from bardo.adapters.stores.replay_store import ReplayKeeper, open_keeper
from bardo.adapters.stores.response_store import ResponseStore, open_responses
from bardo.adapters.stores.retention import LogKeeper
from bardo.call.open import open_call
from bardo.call.reply import LiveReply
from bardo.call.search import OpenCall, open_searcher, search_policy
from bardo.call.services import (
    CallMemory,
    CallNotes,
    EpisodeSink,
    Limits,
    PendingWriter,
    RowWriter,
    Services,
    WebSearcher,
)
from bardo.call.unary import embed
from bardo.catalog.agent_rows import picker
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
from bardo.catalog.prices import price_lists, price_rows
from bardo.catalog.prompt_caching import caching_table
from bardo.catalog.replay import builtin_replay
from bardo.catalog.request_shapes import builtin_shape_rules
from bardo.catalog.shared_fields import shared_rows
from bardo.dialects import CLIENT_FORMS, DIALECTS, dialect
from bardo.planning.knowledge import CachingPolicy, Knowledge
from bardo.reasoning.registry import builtin_formats
from bardo.services.accounts.call_gate import CallGate
from bardo.services.facts.call_routing import CallRouting
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.failover import Failover
from bardo.services.facts.feedback import FeedbackRecorder
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.introspect import Introspector
from bardo.services.facts.introspect.adapters import builtin_adapters
from bardo.services.facts.listings import CatalogRefresh, HourlyRefresh, Listings, ListingStore
from bardo.services.facts.listings.listings import feed_prices
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook
from bardo.services.facts.provider_ids import ProviderIds, open_provider_ids
from bardo.services.facts.server_choice import ServerFacts
from bardo.services.pipeline.effects import LayerHost
from bardo.services.pipeline.pipeline import Pipeline
from bardo.structured.modes import ladders
from bardo.structured.subsets import subsets
from bardo.tools.formats import tool_call_formats
from bardo.values.operations import Embeddings, EmbedRequest
from bardo.values.request import Request

if TYPE_CHECKING:
    from bardo.adapters.stores.log import LogWriter
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
    from bardo.adapters.stores.memory.store import MemoryWriter
    from bardo.services.accounts.accounts import Accounts
    from bardo.services.accounts.agent_calls import AgentCalls
    from bardo.services.facts.health_sharing import HealthPings, HealthSharing
    from bardo.services.facts.learned_routing import LearnedRouting
    from bardo.services.payments.payer import Payments
    from bardo.services.telemetry.telemetry import Telemetry

# What the HTTP client loads with its first call.
_MODULES = ("httptools", "aiohappyeyeballs")
# JSON Schema, JSON repair, and names of hosts that are not ASCII.
_LIBRARIES = ("jsonschema_rs", "json_repair", "encodings.idna", "unicodedata")
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
    caching_table,
    choice_rows,
    features,
    ladders,
    picker,
    price_lists,
    price_rows,
    price_table,
    hosted_tools,
    kept_ids,
    shared_rows,
    subsets,
    tool_call_formats,
)


def load_libraries() -> None:
    """Import what few calls need, in a thread: the gateway is served meanwhile, and a call that needs one of them waits for it."""
    for module in _LIBRARIES:
        import_module(module)


def preload() -> None:
    """Import every dialect, and read every table of the catalog. It takes a tenth of a second, once."""
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
        self.memory: CallMemory = self._part("memory", CallMemory)
        self.health: HealthKeeper = self._part(
            "health", lambda: HealthKeeper(health_store(settings.health), self.memory.events)
        )
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
                # Close a part off the event loop; here, where the interpreter ends and starts no thread any more.
                try:
                    await asyncio.to_thread(part.close)
                except RuntimeError:
                    part.close()
            else:
                part.close()


def _same(name: str, before: Settings, now: Settings) -> bool:
    return all(attrgetter(section)(before) == attrgetter(section)(now) for section in _SETTINGS[name])


def _sharing(settings: Settings, keeper: HealthKeeper, environment: Mapping[str, str] | None) -> HealthSharing | None:
    """Return what shares health with other gateways, or None if that is not wanted: without it nothing of this is loaded."""
    if not is_shared(settings.health):
        return None
    from bardo.services.facts.health_sharing import open_sharing

    return open_sharing(settings.health, keeper, environment)


def open_log(settings: Settings, environment: Mapping[str, str] | None = None) -> LogWriter | None:
    """Return the log's writer, or None if the log is off."""
    if not settings.log.enabled:
        return None
    from bardo.adapters.stores.log import LogWriter

    return LogWriter(log_path(settings, environment), keep_content=settings.log.content)


def _retention(settings: Settings, environment: Mapping[str, str] | None) -> LogKeeper | None:
    """Return what removes old calls, or None if all are kept."""
    log = settings.log
    return (
        LogKeeper(log_path(settings, environment), log.retention_days) if log.enabled and log.retention_days else None
    )


def _episodes(settings: Settings, environment: Mapping[str, str] | None) -> MemoryWriter | None:
    """Return what keeps the thinking of calls, or None if the operator does not want it: without it nothing of this is loaded."""
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
    """Return what pays for calls, or None if no wallet is named: without one nothing of this is loaded."""
    if not settings.payments.wallet_key_env:
        return None
    from bardo.services.payments.wallet import open_payments

    path = state_path(settings, environment)
    return open_payments(settings.payments, transport, path, environment, clock=time.time)


def _telemetry(settings: Settings) -> Telemetry | None:
    """Return what tells monitoring systems of calls, or None if nobody is told: without it nothing of this is loaded."""
    if not settings.telemetry.metrics and not settings.telemetry.otlp:
        return None
    from bardo.services.telemetry.telemetry import open_telemetry

    return open_telemetry(settings.telemetry)


_log = logging.getLogger("bardo.control")


class Assembly:
    """The services of calls, and what has to be closed after them. `lasting` are the parts that the next configuration may take over."""

    def __init__(
        self,
        services: Services,
        lasting: ConfigurationParts,
        *,
        introspector: Introspector | None = None,
        feedback: FeedbackRecorder | None = None,
        pings: HealthPings | None = None,
        refresh: HourlyRefresh | None = None,
        memory: ReasoningMemory | None = None,
    ) -> None:
        self.services = services
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
        await self.services.directory.close()
        if self.services.pipeline is not None:
            await self.services.pipeline.close()
        if self.feedback is not None:
            self.feedback.close()
        if self.memory is not None:
            self.memory.close()
        if self.services.agent is not None:
            await asyncio.to_thread(self.services.agent.spending.close)
        await self.lasting.close()


def assemble(
    settings: Settings,
    *,
    transport: Transport | None = None,
    environment: Mapping[str, str] | None = None,
    before: Assembly | None = None,
    accounts: Accounts | None = None,
    for_clients: bool = False,
) -> Assembly:
    """Return the engine that `settings` describe. A `transport` that is given stays the caller's to close.

    `accounts` are the keys of clients with their limits, or None if no keys are asked for. `for_clients`: calls come from others than the
    operator, and choose only what is allowed to them.

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
        assembly = _assembled(
            settings, lasting, directory, keyring, listings, environment, accounts=accounts, for_clients=for_clients
        )
    except BaseException:
        lasting.abandon()
        raise
    reuse.limit(settings.gateway.max_reuse_bytes)
    return assembly


def _assembled(
    settings: Settings,
    lasting: ConfigurationParts,
    directory: ProviderDirectory,
    keyring: Keyring,
    listings: Listings,
    environment: Mapping[str, str] | None,
    *,
    accounts: Accounts | None,
    for_clients: bool,
) -> Assembly:
    transport, log = lasting.transport, lasting.log
    keyring.pays = lasting.payments is not None
    introspector = Introspector(transport, keyring) if settings.reasoning.introspect else None
    facts, prices = model_facts(settings, introspector, listings), PriceBook(settings.prices)
    services = make_services(
        directory,
        transport,
        keyring,
        limits=_limits(settings),
        facts=facts,
        prices=prices,
        routing=CallRouting(
            directory,
            facts,
            strategy=settings.routing.strategy,
            private=settings.routing.private_providers,
            learned=lasting.learned,
            prices=prices,
            health=lasting.health,
            servers=introspector,
        ),
        client_keys=ClientKeys(settings.keys, environment),
        failover=Failover(settings.failover),
        memory=lasting.memory,
        log=log,
        pending=None if log is None else log.journal,
        replay=lasting.replay,
        server_facts=introspector,
        payments=lasting.payments,
        gate=None if accounts is None else CallGate(accounts, prices, settings.budgets, clock=time.time),
        provider_ids=lasting.provider_ids if accounts is not None and for_clients else None,
        agent=open_agent(settings, directory, lasting.health, environment, log=log) if settings.golem.enabled else None,
        episodes=lasting.episodes,
        telemetry=lasting.telemetry,
        pipeline=lambda host: Pipeline.of(
            settings,
            host,
            data_folder(settings, environment),
            os.environ if environment is None else environment,
            for_clients=for_clients,
        ),
        searcher=partial(open_searcher, settings.search, transport, environment=environment),
    )
    feed_prices(listings, prices, directory.providers)
    refresh = CatalogRefresh(listings, transport, keyring)
    return Assembly(
        services,
        lasting,
        introspector=introspector,
        feedback=None if log is None else FeedbackRecorder(log, FeedbackStore(log_path(settings, environment))),
        memory=None if lasting.episodes is None else open_memory(settings, environment, lasting),
        pings=_pings(settings, services),
        refresh=HourlyRefresh(refresh, listings, lambda: directory.providers, seconds=settings.refresh.hours * 3600),
    )


def make_services(
    directory: ProviderDirectory,
    transport: Transport,
    keyring: Keyring,
    *,
    limits: Limits | None = None,
    facts: ModelFacts | None = None,
    prices: PriceBook | None = None,
    routing: CallRouting | None = None,
    client_keys: ClientKeys | None = None,
    failover: Failover | None = None,
    memory: CallMemory | None = None,
    log: RowWriter | None = None,
    pending: PendingWriter | None = None,
    replay: ReplayKeeper | None = None,
    server_facts: ServerFacts | None = None,
    payments: Payments | None = None,
    gate: CallGate | None = None,
    provider_ids: ProviderIds | None = None,
    agent: AgentCalls | None = None,
    episodes: EpisodeSink | None = None,
    telemetry: Telemetry | None = None,
    pipeline: Callable[[LayerHost], Pipeline] | None = None,
    searcher: Callable[[OpenCall], WebSearcher | None] | None = None,
    clock: Callable[[], float] = time.time,
    watch: Callable[[], float] = time.monotonic,
) -> Services:
    """Return what every call works with. What is not given is as without a configuration.

    `pipeline` and `searcher` make what makes calls of its own: with the same services as all other calls.
    """
    facts, prices, memory = facts or ModelFacts(), prices or PriceBook(), memory or CallMemory(clock)
    if routing is None:
        health = HealthKeeper(events=memory.events)
        routing = CallRouting(directory, facts, prices=prices, health=health, servers=server_facts, watch=watch)
    client_keys = client_keys or ClientKeys()

    async def open_own_call(request: Request, *, tenant: str = "") -> LiveReply:
        return await open_call(services, request, may_forward=False, tenant=tenant)

    async def embed_texts(request: EmbedRequest) -> Embeddings:
        return (await embed(services, request)).result

    async def search_by_call(request: Request) -> LiveReply:
        return await open_call(services, request)

    host = LayerHost(
        directory=directory,
        facts=facts,
        prices=prices,
        health=routing.health,
        keyring=keyring,
        client_keys=client_keys,
        estimates=memory.estimates,
        replay=replay,
        clock=clock,
        watch=watch,
        open_call=open_own_call,
        embed=embed_texts,
    )
    services = Services(
        directory=directory,
        transport=transport,
        keyring=keyring,
        client_keys=client_keys,
        limits=limits or Limits(),
        facts=facts,
        prices=prices,
        routing=routing,
        health=routing.health,
        failover=failover or Failover(),
        journal=CallNotes(
            routing, memory.events, log=log, pending=pending, gate=gate, agent=agent, telemetry=telemetry
        ),
        events=memory.events,
        estimates=memory.estimates,
        outputs=memory.outputs,
        prompts=memory.prompts,
        clock=clock,
        watch=watch,
        replay=replay,
        server_facts=server_facts,
        payments=payments,
        gate=gate,
        provider_ids=provider_ids,
        agent=agent,
        pipeline=None if pipeline is None else pipeline(host),
        searcher=None if searcher is None else searcher(search_by_call),
        episodes=episodes,
        telemetry=telemetry,
    )
    cover(services)
    return services


def open_agent(
    settings: Settings,
    directory: ProviderDirectory,
    health: HealthKeeper,
    environment: Mapping[str, str] | None = None,
    *,
    log: LogWriter | None = None,
    clock: Callable[[], float] = time.time,
) -> AgentCalls:
    """Return what settles the calls of the agent. Nothing is opened before it is used. `log` takes the rows of calls, or is None."""
    # Read only where somebody has such an agent.
    from bardo.services.accounts.agent_calls import AgentCalls, DaySpending, SessionSteps

    shared = (os.environ if environment is None else environment).get(WORKERS_FOLDER)
    path = log_path(settings, environment) if settings.log.enabled else None
    return AgentCalls(
        settings.golem,
        settings.inference.caching.prompt_cache_key_prefix,
        directory,
        health.balances,
        DaySpending(path, clock, lambda: 0 if log is None else log.waiting),
        SessionSteps(Path(shared) / "agent_steps.db" if shared else None, clock),
        clock=clock,
    )


def open_memory(
    settings: Settings, environment: Mapping[str, str] | None = None, lasting: ConfigurationParts | None = None
) -> ReasoningMemory:
    """Return the reasoning memory of a configuration. Nothing is opened before it is used. `lasting` are the parts that fill it, if any."""
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

    path, folder = log_path(settings, environment), embedding_folder(settings)
    log, episodes = (None, None) if lasting is None else (lasting.log, lasting.episodes)
    return ReasoningMemory(path, settings.memory, folder, writer=episodes, log=log)


def _pings(settings: Settings, services: Services) -> HealthPings | None:
    """Return what pings providers, or None if the operator does not want it."""
    if not settings.health.ping:
        return None
    from bardo.services.facts.health_sharing import HealthPings

    seconds, watch = settings.health.ping_seconds, services.watch
    directory, transport, keyring = services.directory, services.transport, services.keyring
    return HealthPings(directory, transport, keyring, services.health, seconds=seconds, watch=watch)


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
