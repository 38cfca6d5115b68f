"""A gateway on a real socket, over simulated providers on real sockets, and its log as a list."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from bardo.adapters.config.accounts import ClientKeys
from bardo.adapters.config.routing import policy_of
from bardo.adapters.config.settings import GatewaySettings, LogSettings, ProviderEntry, parse_settings
from bardo.adapters.net.client import Deadlines, HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log import LogRow
from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.response_store import ResponseStore
from bardo.call.services import CallMemory, Limits
from bardo.routing.health import MemoryHealth
from bardo.server.serving import BackgroundServer
from bardo.services.facts.call_routing import CallRouting
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.failover import Failover
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.learned_routing import LearnedRouting
from bardo.services.facts.price_book import PriceBook
from bardo.services.payments.wallet import open_payments
from bardo.services.pipeline.layers import BUILDERS
from bardo.services.pipeline.parts import Builder
from bardo.services.pipeline.pipeline import Pipeline
from bardo.services.telemetry.telemetry import Telemetry
from bardo.simulators import PRESETS, Incoming, Running
from bardo.simulators.delivery import Action, Pause, Send
from bardo.surfaces.gateway.app import Gateway
from bardo.wiring import make_services, model_facts, open_agent
from support.any_model import AnySimulator, Simulator
from support.patience import PATIENCE

KEY_VARIABLE = "BARDO_TEST_KEY"
SECRET = "sk-recognisable-0123456789abcdef"

# Retries wait for nobody in tests.
_QUICK = {"backoff_seconds": 0.01}

# Models that the real providers have, where a dialect looks at the name.
_MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-2.5-flash",
    "gemini_interactions": "gemini-2.5-flash",
    "openai_responses": "gpt-5",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "vertex": "gemini-2.5-flash",
    "vertex_anthropic": "claude-sonnet-4-5@20250929",
}


def model_of(provider: str) -> str:
    """Return the name a client asks a simulated provider by."""
    return f"{provider}/{_MODELS.get(provider, 'm1')}"


class Noted:
    """A log that is a list. Rows may come after the client has its answer, so tests wait for them."""

    def __init__(self) -> None:
        self.rows: list[LogRow] = []
        self._changed = threading.Condition()

    def write(self, row: LogRow) -> None:
        with self._changed:
            self.rows.append(row)
            self._changed.notify_all()

    def row(self, request_id: str) -> LogRow:
        """Return the one row of a call."""
        found = self.wait(lambda row: row.request_id == request_id)
        assert len(found) == 1, "a call has one row"
        return found[0]

    def of_model(self, model: str) -> LogRow:
        """Return the one row of the call that asked for `model`, a name no other test asks for."""
        found = self.wait(lambda row: row.model_asked == model)
        assert len(found) == 1, "a call has one row"
        return found[0]

    def wait(self, wanted: Callable[[LogRow], bool]) -> list[LogRow]:
        """Return the rows that are `wanted`, once there is one."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(wanted, self.rows)), PATIENCE), "no row came"
            return [row for row in self.rows if wanted(row)]


@dataclass
class House:
    """A running gateway and what is around it."""

    address: str
    log: Noted
    servers: Mapping[str, Running] = field(default_factory=dict)
    simulators: Mapping[str, AnySimulator] = field(default_factory=dict)
    learned: LearnedRouting | None = None

    def arrived(self, provider: str) -> list[Incoming]:
        """Return the requests that reached a simulator and asked its model."""
        return [incoming for incoming in self.servers[provider].requests if incoming.method == "POST"]

    def last(self, provider: str) -> Any:
        """Return the body of the last request that reached a simulator."""
        return self.arrived(provider)[-1].body

    def sent(self, provider: str, place: int = -1) -> bytes:
        """Return the body of a reply of a simulator that remembers: of its last, unless told which."""
        simulator = self.simulators[provider]
        assert isinstance(simulator, Remembering)
        return bytes(simulator.sent[place])


def entry(simulator: AnySimulator, base_url: str, **changes: Any) -> ProviderEntry:
    """Return the configuration of a simulated provider, called as its preset is."""
    provider = simulator.provider
    fields = {"id": provider.name, "preset": provider.catalog_name, "api_key_env": KEY_VARIABLE, **changes}
    return ProviderEntry(base_url=base_url, **fields)


@contextmanager
def house(
    simulators: Sequence[AnySimulator] = (),
    *,
    before: Sequence[ProviderEntry] = (),
    each: Mapping[str, Any] | None = None,
    deadlines: Deadlines | None = None,
    environment: Mapping[str, str] | None = None,
    keep_content: bool = False,
    for_clients: bool = False,
    keep_alive_seconds: float = 0.0,
    replay: ReplayKeeper | None = None,
    responses: ResponseStore | None = None,
    gateway: Mapping[str, Any] | None = None,
    max_stream_bytes: int = 256 * 1024 * 1024,
    grace: float = 5.0,
    toml: str = "",
    failover: Failover | None = None,
    state: Path | str = "",
    health: HealthKeeper | None = None,
    layers: Mapping[str, Builder] | None = None,
    telemetry: Telemetry | None = None,
) -> Iterator[House]:
    """Run a gateway over `simulators`, each configured with `each` besides, and further providers `before` them.

    `gateway` are keys of `[gateway]`, `toml` is a bardo.toml without providers, `state` the database of the wallet's payments; leaving the
    block gives open requests `grace` seconds. `layers` builds layers by their names in the place of bardo's own.
    """
    with ExitStack() as stack:
        servers = {one.provider.name: stack.enter_context(one.running()) for one in simulators}
        own = [entry(one, servers[one.provider.name].base_url, **(each or {})) for one in simulators]
        log = Noted()
        limits = Limits(
            deadlines=deadlines or Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=PATIENCE),
            max_reply_bytes=8_000_000,
            max_stream_bytes=max_stream_bytes,
            keep_content=keep_content,
        )
        transport = HttpTransport()
        variables = {KEY_VARIABLE: SECRET} if environment is None else environment
        keyring = Keyring(variables)
        settings = msgspec.structs.replace(parse_settings(toml), providers=(*before, *own))
        limits = msgspec.structs.replace(limits, search_usd_per_day=settings.budgets.search_usd_per_day)
        directory = ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic)
        keys = ClientKeys(settings.keys, variables)
        learned = LearnedRouting.of(settings) if settings.routing.strategy == "learned" else None
        facts = model_facts(settings)
        prices = PriceBook(settings.prices)
        memory = CallMemory()
        health = health or HealthKeeper(MemoryHealth(policy_of(settings.health)), memory.events)
        strategy = settings.routing.strategy
        routing = CallRouting(directory, facts, strategy=strategy, learned=learned, prices=prices, health=health)
        if learned is not None:
            stack.callback(learned.close)
        payments = None
        if settings.payments.wallet_key_env:
            path = state or Path(stack.enter_context(TemporaryDirectory())) / "state.db"
            payments = open_payments(settings.payments, transport, path, variables, clock=time.time)
            keyring.pays = payments is not None
        folder = Path(stack.enter_context(TemporaryDirectory()))
        agent = None
        if settings.golem.enabled:
            silent = msgspec.structs.replace(settings, log=LogSettings(enabled=False))
            agent = open_agent(silent, directory, health, {})
        builders = {**BUILDERS, **(layers or {})}
        services = make_services(
            directory,
            transport,
            keyring,
            limits=limits,
            facts=facts,
            log=log,
            replay=replay,
            client_keys=keys,
            routing=routing,
            failover=failover or Failover(msgspec.structs.replace(settings.failover, **_QUICK)),
            prices=prices,
            payments=payments,
            memory=memory,
            telemetry=telemetry,
            agent=agent,
            pipeline=lambda host: Pipeline.of(
                settings, host, folder, variables, builders=builders, for_clients=for_clients
            ),
        )
        if payments is not None:
            stack.callback(payments.close)
        pipeline = services.pipeline
        assert pipeline is not None

        async def stop() -> None:
            await pipeline.close()
            await transport.close()

        options = {"max_body_bytes": 1_000_000, "keep_alive_seconds": keep_alive_seconds, **(gateway or {})}
        app = Gateway(services, GatewaySettings(**options), responses=responses, stop=stop)
        server = stack.enter_context(BackgroundServer(app, grace=grace))
        yield House(server.address, log, servers, {one.provider.name: one for one in simulators}, learned)


def all_simulators() -> list[Remembering]:
    """Return one simulator of every preset, with its default script."""
    return [Remembering(name) for name in sorted(PRESETS)]


class Remembering(Simulator):
    """A simulator that keeps the body of every reply of its model, in the order of the requests; a list of models is none."""

    def __init__(self, preset: str, **options: Any) -> None:
        super().__init__(preset, **options)
        # Not bytes: pieces of a large body would each copy all that came before.
        self.sent: list[bytearray] = []

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        if incoming.method != "POST":
            yield from super().actions(incoming)
            return
        place = len(self.sent)
        self.sent.append(bytearray())
        for action in super().actions(incoming):
            if isinstance(action, Send):
                self.sent[place] += action.data
            yield action


class Watched(Simulator):
    """A simulator that tells when a request has come and when its client has left, or has all.

    With `silent_first` it says nothing until the client leaves.
    """

    def __init__(self, preset: str, *, silent_first: bool = False, **options: Any) -> None:
        super().__init__(preset, **options)
        self.asked = threading.Event()
        self.over = threading.Event()
        self._silent_first = silent_first

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        self.asked.set()
        try:
            if self._silent_first:
                yield Pause(4 * PATIENCE)
            yield from super().actions(incoming)
        finally:
            # A client that leaves ends this generator in the middle.
            self.over.set()
