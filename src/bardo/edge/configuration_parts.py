"""The parts of an engine that hold what earlier calls left: connections, the log, kept replies, health, and others.

A new configuration takes each of them over from the one before it, as long as the settings of that part are the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from bardo.edge.data_paths import log_path, state_path
from bardo.edge.health import HealthKeeper
from bardo.edge.http import HttpTransport, Transport
from bardo.edge.provider_ids import ProviderIds, open_provider_ids
from bardo.edge.replay_store import ReplayKeeper, open_keeper
from bardo.edge.response_store import ResponseStore, open_responses
from bardo.edge.retention import LogKeeper
from bardo.edge.runner_parts import CallMemory
from bardo.edge.settings import Settings
from bardo.edge.settings_health import health_store, is_shared
from bardo.edge.settings_memory import embedding_folder

if TYPE_CHECKING:
    from bardo.edge.health_sharing import HealthSharing
    from bardo.edge.learned_routing import LearnedRouting
    from bardo.edge.log import LogWriter
    from bardo.edge.memory.store import MemoryWriter
    from bardo.edge.payments.payer import Payments
    from bardo.edge.telemetry.telemetry import Telemetry

_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "transport": ("http",),
    "replay": ("replay",),
    "responses": ("responses",),
    "provider_ids": ("provider_ids", "state", "log"),
    "learned": ("routing", "log"),
    "payments": ("payments", "http", "state", "log"),
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
        self.transport: Transport = transport or self._part("transport", lambda: HttpTransport(settings.http.client))
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
    from bardo.edge.health_sharing import open_sharing

    return open_sharing(settings.health, keeper, environment)


def open_log(settings: Settings, environment: Mapping[str, str] | None = None) -> LogWriter | None:
    """Return the log's writer, or None where the log is off."""
    if not settings.log.enabled:
        return None
    from bardo.edge.log import LogWriter

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
    from bardo.edge.memory.store import open_writer

    return open_writer(log_path(settings, environment), settings.memory, embedding_folder(settings))


def _load_learned(settings: Settings) -> LearnedRouting | None:
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


def _telemetry(settings: Settings) -> Telemetry | None:
    """Return what tells monitoring systems of calls; None where nobody is told: without it nothing of this is loaded."""
    if not settings.telemetry.metrics and not settings.telemetry.otlp:
        return None
    from bardo.edge.telemetry.telemetry import open_telemetry

    return open_telemetry(settings.telemetry)
