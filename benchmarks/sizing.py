"""How large a gateway has to be for its work: a model of what `python -m benchmarks scale` measures.

A worker is one event loop, so that it takes one core at most; what it takes of the processor is that of its calls and of the events of its
streams. Waiting takes memory alone. The page `docs/how-to/size-a-machine.md` has the figures and examples of it.
"""

from __future__ import annotations

import math

import msgspec

BUSY = 0.6
"""The share of its core that a worker may be at work: events wait for each other the more, the less is left."""


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What one of each takes: microseconds of a core, kB or MB of memory, and connections of PostgreSQL."""

    call_microseconds: float
    event_microseconds: float
    stream_kilobytes: float
    connection_kilobytes: float
    worker_megabytes: float
    worker_connections: float


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a gateway: calls a second, streams and idle connections open at once, and events a second of a stream."""

    calls: float = 0.0
    streams: int = 0
    events: float = 0.0
    idle_connections: int = 0


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """What it needs: workers with a core each, megabytes of memory in all, and of the log's database rows a second and connections."""

    workers: int
    megabytes: float
    rows: float
    connections: float


def sizing(work: Work, costs: Costs) -> Size:
    """Return what the work needs. Each call is one row of the log, whatever it brings."""
    cores = (work.calls * costs.call_microseconds + work.streams * work.events * costs.event_microseconds) / 1e6
    workers = max(1, math.ceil(cores / BUSY))
    waiting = work.streams * costs.stream_kilobytes + work.idle_connections * costs.connection_kilobytes
    return Size(
        workers=workers,
        megabytes=workers * costs.worker_megabytes + waiting / 1e3,
        rows=work.calls,
        connections=workers * costs.worker_connections,
    )
