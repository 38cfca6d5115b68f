"""The health of each provider, its keys and its models, as the gateway shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from bardo.adapters.net.keys import Keyring
from bardo.planning.route import Provider
from bardo.routing.candidates import Health
from bardo.routing.circuit import Fault
from bardo.routing.health import Latency
from bardo.services.facts.cache_health import CacheHealth
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.lessons import KnownLesson
from bardo.services.facts.model_facts import ModelFacts

_BEST_FIRST: tuple[Health, ...] = ("healthy", "unknown", "degraded", "down")


class KeyHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a provider by the name of its variable, empty for its only one.

    `state` is `resting` while it is not used at some model or at all (`models` empty), `missing` where its variable is not set.
    `wait_seconds` is until it may be used again everywhere, `uses` how often it was chosen lately.
    """

    label: str
    state: str
    why: str = ""
    models: tuple[str, ...] = ()
    wait_seconds: float | None = None
    uses: float | None = None


class TargetHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A provider (`model` empty) or a model there.

    `calls`, `failed` and `faults` are of the window. `wait_seconds` is until it is asked again, or None if it is asked now; `wait_until` is
    that as Unix time.
    """

    model: str
    state: Health
    why: str = ""
    calls: int = 0
    failed: int = 0
    faults: dict[Fault, int] = {}
    consecutive_failures: int = 0
    wait_seconds: float | None = None
    wait_until: float | None = None
    latency: Latency = Latency()


class ServerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One of several servers of a provider, by its host and port. `in_flight` is how many calls it has now."""

    address: str
    in_flight: int
    connection: TargetHealth
    keys: tuple[KeyHealth, ...] = ()
    models: tuple[TargetHealth, ...] = ()
    caches: tuple[CacheHealth, ...] = ()


class ProviderHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A provider: its connection, its keys, the models that were called, and what it last said is left of the account's money.

    `balances` are by what they are in (`diem`, `usd`); empty where the provider has named none. A provider with several addresses has all
    this by `servers`, and its own `connection` is that of the best of them. `caches` is what was seen of prompt caches, where the layer
    `affinity` looks at them.
    """

    provider: str
    connection: TargetHealth
    keys: tuple[KeyHealth, ...] = ()
    models: tuple[TargetHealth, ...] = ()
    balances: dict[str, float] = {}
    servers: tuple[ServerHealth, ...] = ()
    caches: tuple[CacheHealth, ...] = ()


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """The health of all providers, at Unix time `at`.

    `sharing` is `shared` where it holds what other gateways see too, `alone` while these cannot be reached, and empty where none are asked.
    `lessons` is what refusals taught, and holds now.
    """

    at: float
    providers: tuple[ProviderHealth, ...]
    sharing: str = ""
    lessons: tuple[KnownLesson, ...] = ()


class CacheReporter(Protocol):
    """Reports the tokens expected to be cached at the servers of a provider."""

    def report(self, place_name: str, provider: str) -> tuple[CacheHealth, ...]: ...


class ReportContext(Protocol):
    """The sources of a report."""

    @property
    def directory(self) -> ProviderDirectory: ...
    @property
    def keyring(self) -> Keyring: ...
    @property
    def health(self) -> HealthKeeper: ...
    @property
    def affinity(self) -> CacheReporter | None: ...
    @property
    def facts(self) -> ModelFacts: ...
    @property
    def clock(self) -> Callable[[], float]: ...
    @property
    def watch(self) -> Callable[[], float]: ...


def health_report(context: ReportContext, *, caller: str | None = None) -> HealthReport:
    """Return the health of every provider that is configured, as of now. `caller`: whose lessons are told, None for those of all."""
    now, at = context.watch(), context.clock()
    called: dict[str, list[str]] = defaultdict(list)
    for provider, model in context.health.store.targets():
        if model:
            called[provider].append(model)
    providers = [_provider(context, provider, called, now, at) for provider in context.directory.providers]
    lessons = tuple([lesson for lesson in context.facts.lessons.all() if caller in (None, lesson.caller)])
    return HealthReport(at=at, providers=tuple(providers), sharing=context.health.sharing, lessons=lessons)


def _provider(
    context: ReportContext, provider: Provider, called: Mapping[str, list[str]], now: float, at: float
) -> ProviderHealth:
    balances = context.health.balances.of(provider.id, at)
    servers = [_server(context, server, sorted(called.get(server.place, ())), now, at) for server in provider.servers]
    if len(servers) == 1:
        only = servers[0]
        return ProviderHealth(
            provider=provider.id,
            connection=only.connection,
            keys=only.keys,
            models=only.models,
            balances=balances,
            caches=only.caches,
        )
    best = min((server.connection for server in servers), key=lambda connection: _BEST_FIRST.index(connection.state))
    return ProviderHealth(provider=provider.id, connection=best, balances=balances, servers=tuple(servers))


def _server(context: ReportContext, server: Provider, models: list[str], now: float, at: float) -> ServerHealth:
    health, name = context.health, server.place
    row = server.row
    if not row.several_keys:
        report = _key(context, server, "", now)
        keys: tuple[KeyHealth, ...] = () if report.state == "ok" else (report,)
    else:
        there = context.keyring.labels(server)
        missing = [
            KeyHealth(label=name, state="missing", why="not set") for name in row.key_variables if name not in there
        ]
        keys = (*(_key(context, server, label, now) for label in there), *missing)
    return ServerHealth(
        address=server.address,
        in_flight=health.in_flight(name),
        connection=_target(health, name, "", now, at),
        keys=keys,
        models=tuple([_target(health, name, model, now, at) for model in models]),
        caches=() if context.affinity is None else context.affinity.report(name, server.id),
    )


def _target(health: HealthKeeper, provider: str, model: str, now: float, at: float) -> TargetHealth:
    circuit = health.store.circuit(provider, model, now)
    state, why = health.state(provider, model, now), health.reason(provider, model, now)
    due = max(
        (end for end in (health.store.down(provider, model, now), health.rest_until(provider, model, now)) if end),
        default=None,
    )
    waits = None if due is None else round(max(0.0, due - now), 3)
    until = None if waits is None else round(at + waits, 3)
    latency = health.latency(provider, model)
    if circuit is None:
        return TargetHealth(model=model, state=state, why=why, wait_seconds=waits, wait_until=until, latency=latency)
    return TargetHealth(
        model=model,
        state=state,
        why=why,
        calls=circuit.window.calls,
        failed=circuit.window.failed,
        faults=circuit.window.faults,
        consecutive_failures=circuit.consecutive_failures,
        wait_seconds=waits,
        wait_until=until,
        latency=latency,
    )


def _key(context: ReportContext, provider: Provider, label: str, now: float) -> KeyHealth:
    state = context.health.store.rests.states.get((provider.place, label))
    uses = context.keyring.rotation.uses(provider.place, label) if label else None
    rests = {} if state is None else {model: rest for model, rest in state.rests.items() if rest.lasts(now)}
    if not rests:
        return KeyHealth(label=label, state="ok", uses=uses)
    longest = max(rests.values())
    models = () if "" in rests else tuple(sorted(rests))
    waits = round(longest.until - now, 3)
    return KeyHealth(label=label, state="resting", why=longest.why, models=models, wait_seconds=waits, uses=uses)
