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
from bardo.edge.directory import Directory
from bardo.edge.failover import Failover
from bardo.edge.feedback import FeedbackTaker
from bardo.edge.formats import formats_of
from bardo.edge.health import HealthKeeper
from bardo.edge.http import Deadlines, HttpTransport, Transport
from bardo.edge.introspect import Introspector
from bardo.edge.keys import Keyring
from bardo.edge.listings import CatalogRefresh, HourlyRefresh, Listings, ListingStore
from bardo.edge.listings.prices import feed_prices
from bardo.edge.log.feedback import FeedbackStore
from bardo.edge.model_facts import ModelFacts
from bardo.edge.pipeline.pipeline import Pipeline
from bardo.edge.price_book import PriceBook
from bardo.edge.replay_store import ReplayKeeper, open_keeper
from bardo.edge.response_store import ResponseStore, open_responses
from bardo.edge.runner import Runner
from bardo.edge.settings import Settings, default_log_path
from bardo.edge.settings_cache import place_of
from bardo.edge.settings_health import policy_of
from bardo.edge.web_search import open_searcher, search_policy
from bardo.engine.knowledge import CachingPolicy, Knowledge
from bardo.routing.health import MemoryHealth

if TYPE_CHECKING:
    from bardo.edge.health_pings import HealthPings
    from bardo.edge.learned_routing import LearnedRouting
    from bardo.edge.log import LogWriter
    from bardo.edge.payments.payer import Payments
    from bardo.edge.telemetry.telemetry import Telemetry

_log = logging.getLogger("bardo.control")


class Assembly:
    """A runner and what has to be closed after it."""

    def __init__(
        self,
        runner: Runner,
        *,
        transport: Transport | None,
        log: LogWriter | None,
        replay: ReplayKeeper | None = None,
        introspector: Introspector | None = None,
        responses: ResponseStore | None = None,
        feedback: FeedbackTaker | None = None,
        learned: LearnedRouting | None = None,
        pings: HealthPings | None = None,
        refresh: HourlyRefresh | None = None,
    ) -> None:
        self.runner = runner
        self._refresh = refresh
        self.feedback = feedback
        self.responses = responses
        self._introspector = introspector
        self._transport = transport
        self.log = log
        self._replay = replay
        self._learned = learned
        self._pings = pings

    def start(self) -> None:
        """Begin what goes on beside the calls, in the running event loop."""
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
        if self.runner.pipeline is not None:
            await self.runner.pipeline.close()
        if self._transport is not None:
            await self._transport.close()
        if self._replay is not None:
            self._replay.close()
        if self.responses is not None:
            self.responses.close()
        if self.feedback is not None:
            self.feedback.close()
        if self._learned is not None:
            self._learned.close()
        if self.runner.payments is not None:
            self.runner.payments.close()
        if self.log is not None:
            self.log.close()
        if self.runner.telemetry is not None:
            await asyncio.to_thread(self.runner.telemetry.close)


def assemble(
    settings: Settings,
    *,
    transport: Transport | None = None,
    environment: Mapping[str, str] | None = None,
) -> Assembly:
    """Return the engine that `settings` describe. A `transport` that is given stays the caller's to close."""
    own = HttpTransport(settings.http.client) if transport is None else None
    used: Transport = own if own is not None else transport  # type: ignore[assignment]
    keyring = Keyring(environment)
    if settings.inference.pipeline.cache.store_env:
        place_of(settings.inference.pipeline.cache, os.environ if environment is None else environment)
    listings = open_listings(settings, environment)
    directory = Directory.of(settings, used, keyring, clock=time.monotonic, listings=listings)
    for lost in settings.unheeded:
        _log.warning("%s of the configuration is not honoured: %s", lost.what, lost.why, extra={"field": lost.what})
    introspector = Introspector(used, keyring) if settings.reasoning.introspect else None
    learned = _learned(settings)
    payments = _payments(settings, used, environment)
    telemetry = _telemetry(settings)
    # Last, because it starts a thread: nothing is left behind where the configuration was wrong.
    log = open_log(settings, environment)
    replay = None
    try:
        replay = open_keeper(settings.replay)
        responses = open_responses(settings.responses)
    except BaseException:
        for opened in (log, replay):
            if opened is not None:
                opened.close()
        raise
    keyring.pays = payments is not None
    facts, prices = model_facts(settings, introspector, listings), PriceBook(settings.prices)
    runner = Runner(
        directory,
        used,
        keyring,
        limits=_limits(settings),
        facts=facts,
        routing=_routing(settings, directory, facts, prices, learned),
        log=log,
        journal=log,
        replay=replay,
        servers=introspector,
        client_keys=ClientKeys(settings.keys, environment),
        failover=Failover(settings.failover),
        prices=prices,
        payments=payments,
    )
    runner.pipeline = _pipeline(settings, runner, environment)
    runner.telemetry = telemetry
    feed_prices(listings, runner.prices, directory.providers)
    runner.searcher = open_searcher(settings.search, runner, environment)
    feedback = None if log is None else FeedbackTaker(log, FeedbackStore(log_path(settings, environment)))
    return Assembly(
        runner,
        transport=own,
        log=log,
        replay=replay,
        introspector=introspector,
        responses=responses,
        feedback=feedback,
        learned=learned,
        pings=_pings(settings, runner),
        refresh=HourlyRefresh(
            CatalogRefresh(listings, used, keyring),
            listings,
            lambda: directory.providers,
            seconds=settings.refresh.hours * 3600,
        ),
    )


def _routing(
    settings: Settings, directory: Directory, facts: ModelFacts, prices: PriceBook, learned: LearnedRouting | None
) -> CallRouting:
    """Return what finds who is asked, with the health of providers."""
    return CallRouting(
        directory,
        facts,
        strategy=settings.routing.strategy,
        private=settings.routing.private_providers,
        learned=learned,
        prices=prices,
        health=HealthKeeper(MemoryHealth(policy_of(settings.health))),
    )


def _pings(settings: Settings, runner: Runner) -> HealthPings | None:
    """Return what pings providers; None where the operator does not want it."""
    if not settings.health.ping:
        return None
    from bardo.edge.health_pings import HealthPings

    seconds, watch = settings.health.ping_seconds, runner.watch
    return HealthPings(runner.directory, runner.transport, runner.keyring, runner.health, seconds=seconds, watch=watch)


def _learned(settings: Settings) -> LearnedRouting | None:
    """Return what routing has learned, for the strategy that needs it: without it nothing of this is loaded."""
    if settings.routing.strategy != "learned":
        return None
    from bardo.edge.learned_routing import LearnedRouting

    return LearnedRouting.of(settings)


def _payments(settings: Settings, transport: Transport, environment: Mapping[str, str] | None) -> Payments | None:
    """Return what pays for calls; None where no wallet is named: without one nothing of this is loaded."""
    if not settings.payments.wallet_key_env:
        return None
    from bardo.edge.payments.wallet import open_payments

    path = state_path(settings, environment)
    return open_payments(settings.payments, transport, path, environment, clock=time.time)


def _pipeline(settings: Settings, runner: Runner, environment: Mapping[str, str] | None) -> Pipeline:
    """Return what runs the layers of calls. A layer is made when a profile that has it is first used."""
    folder = data_folder(settings, environment)
    return Pipeline.of(settings, runner, folder, os.environ if environment is None else environment)


def data_folder(settings: Settings, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder in which bardo keeps its data: that of its log."""
    log = log_path(settings, environment)
    return log.parent if isinstance(log, Path) else default_log_path(environment).parent


def _telemetry(settings: Settings) -> Telemetry | None:
    """Return what tells monitoring systems of calls; None where nobody is told: without it nothing of this is loaded."""
    if not settings.telemetry.metrics and not settings.telemetry.otlp:
        return None
    from bardo.edge.telemetry.telemetry import open_telemetry

    return open_telemetry(settings.telemetry)


def _limits(settings: Settings) -> Limits:
    timeouts = settings.timeouts
    return Limits(
        deadlines=Deadlines(
            connect=timeouts.connect, first_byte=timeouts.first_byte, idle=timeouts.idle, total=timeouts.total
        ),
        max_reply_bytes=settings.gateway.max_reply_bytes,
        max_stream_bytes=settings.gateway.max_stream_bytes,
        keep_content=settings.log.content,
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
        structured=settings.inference.structured_outputs,
        caching=CachingPolicy(markers=caching.auto_cache_control) if caching.calls == "all" else None,
        search=search_policy(settings.search),
    )
    return ModelFacts(settings.models, settings=planning, introspector=introspector, listings=listings)


def log_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where the inference log stands: a file, or the address of a database."""
    named = settings.log.path
    if "://" in named:
        return named
    return Path(named).expanduser() if named else default_log_path(environment)


def state_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where keys, payments and batches are kept: a file, or the address of a database."""
    named = settings.state.url
    if "://" in named:
        return named
    if named:
        return Path(named).expanduser()
    log = log_path(settings, environment)
    return log.with_name("state.db") if isinstance(log, Path) else log


def open_log(settings: Settings, environment: Mapping[str, str] | None = None) -> LogWriter | None:
    """Return the log's writer, or None where the log is off."""
    if not settings.log.enabled:
        return None
    from bardo.edge.log import LogWriter

    return LogWriter(log_path(settings, environment), keep_content=settings.log.content)


def open_listings(settings: Settings, environment: Mapping[str, str] | None = None) -> Listings:
    """Return the providers' lists of models that were kept. Nothing is read before it is asked for."""
    named = settings.refresh.folder
    log = log_path(settings, environment)
    beside = (log if isinstance(log, Path) else default_log_path(environment)).with_name("catalog")
    return Listings(ListingStore(Path(named).expanduser() if named else beside))
