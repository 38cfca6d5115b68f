"""Run several simulators side by side, for a demonstration or a gateway with many providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager

from bardo.simulators.presets import presets
from bardo.simulators.simulator import LOOPBACK, Running, Simulator


@asynccontextmanager
async def serve_many(
    simulators: Iterable[Simulator] | None = None, *, host: str = LOOPBACK, first_port: int = 0
) -> AsyncIterator[Mapping[str, str]]:
    """Serve in the running event loop; gives the base URL of each by its preset's name.

    Without `simulators` all presets run. With `first_port` they take the ports from there on, in order.
    """
    async with AsyncExitStack() as stack:
        addresses: dict[str, str] = {}
        for place, simulator in enumerate(simulators or _all()):
            opened = simulator.serve(host=host, port=_port(first_port, place))
            addresses[simulator.provider.name] = await stack.enter_async_context(opened)
        yield addresses


@contextmanager
def running_many(
    simulators: Iterable[Simulator] | None = None, *, host: str = LOOPBACK, first_port: int = 0
) -> Iterator[Mapping[str, Running]]:
    """Do the same in threads."""
    with ExitStack() as stack:
        servers: dict[str, Running] = {}
        for place, simulator in enumerate(simulators or _all()):
            opened = simulator.running(host=host, port=_port(first_port, place))
            servers[simulator.provider.name] = stack.enter_context(opened)
        yield servers


def _all() -> list[Simulator]:
    return [Simulator(name) for name in presets()]


def _port(first_port: int, place: int) -> int:
    return first_port + place if first_port else 0
