"""Local servers that imitate the real providers: for the tests of programs and for demonstrations.

    with simulate("anthropic", turns=[Turn(reasoning="27 * 43 …", text="1161")]) as provider:
        ...  # point a client at provider.base_url, then look at provider.requests

The same for pytest in one line, or several side by side:

    claude = provider_fixture("anthropic", turns=[Turn(reasoning="27 * 43 …", text="1161")])

    def test_my_program(claude: SimulatedProvider) -> None:
        ...  # point the program at claude.base_url, then look at claude.requests

Each provider has a thread and a free port of its own, on loopback only, so it serves programs with and without an event loop, and tests
that run side by side. Whatever happens in the test, both are gone when it ends. `Simulator` serves in an event loop of one's own.

They share no code with bardo's dialects, so that each can find the other's mistakes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from bardo.simulators.exchange import Incoming
from bardo.simulators.faults import KINDS, Fault, parse_fault
from bardo.simulators.gates import Gate
from bardo.simulators.presets import PRESETS, presets
from bardo.simulators.prompt_cache import PrefixCache
from bardo.simulators.provider import Provider
from bardo.simulators.script import Script
from bardo.simulators.simulator import LOOPBACK, Running, Simulator
from bardo.simulators.thinking_behaviour import THINKING_BEHAVIOURS, BehaviourKind, ThinkingBehaviour
from bardo.simulators.turns import Conversation, Tool, ToolCall, Turn, Usage
from bardo.simulators.x402 import SELLER_BEHAVIOURS, PaidSimulator, PaymentTerms, SimulatedNetwork

Turns: TypeAlias = Script | Turn | str | Sequence[Turn | str] | Callable[[Conversation], Turn]
"""The answers of a model: turns, of which plain text may be given as such, or a function that answers each request."""
FixtureScope: TypeAlias = Literal["function", "class", "module", "package", "session"]

_SECRET = "***"
_SECRET_HEADERS = frozenset(
    (
        "authorization", "proxy-authorization", "cookie", "api-key", "x-api-key", "x-goog-api-key",
        "x-amz-security-token",
    )
)  # fmt: skip
_SECRET_QUERY = frozenset(("key", "api_key", "access_token"))


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request that arrived. Header names are lower case; keys are `***`; `body` is its JSON, or None if there is none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class SimulatedProvider:
    """A provider that runs until the test ends.

    `base_url` is what OpenAI's SDK and bardo are configured with, `root` (no path) what Anthropic's and Google's are. `model` is one it
    lists and `api_key` a key it takes; unless told otherwise it takes any key.
    """

    def __init__(self, simulator: Simulator, running: Running, *, key: str | None = None) -> None:
        provider = simulator.provider
        self.name = provider.name
        self.dialect = provider.dialect
        self.base_url = running.base_url
        self.root = running.root
        self.api_key = key or "simulated-key"
        self.model = simulator.models[0]
        self._simulator = simulator

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests that arrived, in order, refused requests and requests for the list of models included."""
        return [_seen_request(incoming) for incoming in tuple(self._simulator.requests)]

    def play(self, turns: Turns, *, in_order: bool = False) -> None:
        """Replace the model's turns."""
        self._simulator.play(script_of(turns, in_order=in_order))

    def fail(self, fault: Fault | str | None) -> None:
        """Apply this fault to every request from now on, such as `status=429,retry-after=2`; None removes it."""
        self._simulator.fail(_fault_of(fault))

    def hold(self, after: int = 0) -> Gate:
        """Hold every later reply, after `after` of its events, until the returned gate is opened."""
        return self._simulator.hold(after)


@contextmanager
def simulate(
    preset: str,
    turns: Turns = (),
    *,
    in_order: bool = False,
    fault: Fault | str | None = None,
    thinking_behaviour: ThinkingBehaviour | BehaviourKind | None = None,
    key: str | None = None,
    models: Sequence[str] | None = None,
    delta_size: int = 8,
) -> Iterator[SimulatedProvider]:
    """Run a provider as long as the block does.

    The turn that is played has the number of assistant messages already in the request, or with `in_order` the number of requests
    before it; without turns the model answers by itself. `fault` is met by every request. `thinking_behaviour` is how the model responds to
    settings of its thinking: `honour`, `flatten`, `ignore` or `refuse`. Of keys only `key` is taken, without it any. `models` are the
    models that it takes, without it those that the preset lists; an empty list takes any. A streamed text comes in pieces of `delta_size`
    characters. Raises ValueError for an unknown preset or fault.
    """
    script = script_of(turns, in_order=in_order)
    simulator = Simulator(
        preset,
        script=script,
        key=key,
        models=models,
        fault=_fault_of(fault),
        thinking_behaviour=thinking_behaviour,
        delta_size=delta_size,
    )
    with simulator.running() as running:
        yield SimulatedProvider(simulator, running, key=key)


def provider_fixture(
    preset: str,
    turns: Turns = (),
    *,
    scope: FixtureScope = "function",
    in_order: bool = False,
    fault: Fault | str | None = None,
    thinking_behaviour: ThinkingBehaviour | BehaviourKind | None = None,
    key: str | None = None,
    models: Sequence[str] | None = None,
    delta_size: int = 8,
) -> Any:
    """Return a pytest fixture that gives a SimulatedProvider; the variable it is assigned to is its name.

    Options are those of `simulate`. With a wider `scope` tests share one provider, its requests and what it was told to do.
    """
    import pytest  # Only tests call this; programs that use bardo need no pytest.

    @pytest.fixture(scope=scope)
    def provider() -> Iterator[SimulatedProvider]:
        with simulate(
            preset,
            turns,
            in_order=in_order,
            fault=fault,
            thinking_behaviour=thinking_behaviour,
            key=key,
            models=models,
            delta_size=delta_size,
        ) as running:
            yield running

    return provider


def script_of(turns: Turns, *, in_order: bool = False) -> Script:
    """Return turns as a script."""
    if isinstance(turns, Script):
        return turns
    if callable(turns):
        return Script(otherwise=turns)
    listed = (turns,) if isinstance(turns, Turn | str) else turns
    return Script(tuple(Turn(text=turn) if isinstance(turn, str) else turn for turn in listed), in_order=in_order)


def _fault_of(fault: Fault | str | None) -> Fault | None:
    return parse_fault(fault) if isinstance(fault, str) else fault


def _seen_request(incoming: Incoming) -> SeenRequest:
    return SeenRequest(
        method=incoming.method,
        path=incoming.path,
        query=_without_secrets(incoming.query, _SECRET_QUERY),
        headers=_without_secrets(incoming.headers, _SECRET_HEADERS),
        body=incoming.body,
    )


def _without_secrets(values: Mapping[str, str], secret: frozenset[str]) -> dict[str, str]:
    return {name: _SECRET if name in secret else value for name, value in values.items()}


@asynccontextmanager
async def serve_many(
    simulators: Iterable[Simulator] | None = None, *, host: str = LOOPBACK, first_port: int = 0
) -> AsyncIterator[Mapping[str, str]]:
    """Serve in the running event loop; gives the base URL of each by its preset's name.

    Without `simulators` all presets run. With `first_port` they take the ports from there on, in order.
    """
    async with AsyncExitStack() as stack:
        addresses: dict[str, str] = {}
        for index, simulator in enumerate(simulators or _all()):
            opened = simulator.serve(host=host, port=_port(first_port, index))
            addresses[simulator.provider.name] = await stack.enter_async_context(opened)
        yield addresses


@contextmanager
def running_many(
    simulators: Iterable[Simulator] | None = None, *, host: str = LOOPBACK, first_port: int = 0
) -> Iterator[Mapping[str, Running]]:
    """Do the same in threads."""
    with ExitStack() as stack:
        servers: dict[str, Running] = {}
        for index, simulator in enumerate(simulators or _all()):
            opened = simulator.running(host=host, port=_port(first_port, index))
            servers[simulator.provider.name] = stack.enter_context(opened)
        yield servers


def _all() -> list[Simulator]:
    return [Simulator(name) for name in presets()]


def _port(first_port: int, index: int) -> int:
    return first_port + index if first_port else 0


__all__ = [
    "KINDS",
    "PRESETS",
    "SELLER_BEHAVIOURS",
    "THINKING_BEHAVIOURS",
    "Conversation",
    "Fault",
    "Gate",
    "Incoming",
    "PaidSimulator",
    "PaymentTerms",
    "PrefixCache",
    "Provider",
    "Running",
    "Script",
    "SeenRequest",
    "SimulatedNetwork",
    "SimulatedProvider",
    "Simulator",
    "ThinkingBehaviour",
    "Tool",
    "ToolCall",
    "Turn",
    "Usage",
    "parse_fault",
    "presets",
    "provider_fixture",
    "running_many",
    "serve_many",
    "simulate",
]
