"""Puts the parts together: from settings to a running engine. The gateway, the library and the command line start here."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bardo.edge.call_context import Limits
from bardo.edge.call_routing import CallRouting
from bardo.edge.client_keys import ClientKeys
from bardo.edge.configuration_parts import ConfigurationParts
from bardo.edge.data_paths import data_folder, log_path
from bardo.edge.directory import ProviderDirectory
from bardo.edge.failover import Failover
from bardo.edge.feedback import FeedbackRecorder
from bardo.edge.formats import formats_of
from bardo.edge.http import Deadlines, Transport
from bardo.edge.introspect import Introspector
from bardo.edge.keys import Keyring
from bardo.edge.listings import CatalogRefresh, HourlyRefresh, Listings, ListingStore
from bardo.edge.listings.prices import feed_prices
from bardo.edge.log.feedback import FeedbackStore
from bardo.edge.model_facts import ModelFacts
from bardo.edge.named_paths import named_path
from bardo.edge.pipeline.pipeline import Pipeline
from bardo.edge.price_book import PriceBook
from bardo.edge.runner import Runner
from bardo.edge.settings import Settings, default_log_path
from bardo.edge.settings_environment import WORKERS_FOLDER
from bardo.edge.settings_memory import check_memory, embedding_folder
from bardo.edge.settings_stores import place_of
from bardo.edge.web_search import open_searcher, search_policy
from bardo.engine.knowledge import CachingPolicy, Knowledge

if TYPE_CHECKING:
    from bardo.edge.agent_calls import AgentCalls
    from bardo.edge.health_pings import HealthPings
    from bardo.edge.memory.reasoning_memory import ReasoningMemory

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
    if settings.inference.pipeline.cache.store_env:
        place_of(settings.inference.pipeline.cache, os.environ if environment is None else environment, "kept replies")
    check_memory(settings)
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
    from bardo.edge.agent_calls import AgentCalls
    from bardo.edge.agent_spending import DaySpending
    from bardo.edge.agent_steps import SessionSteps

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
    from bardo.edge.memory.reasoning_memory import ReasoningMemory

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
    from bardo.edge.health_pings import HealthPings

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
