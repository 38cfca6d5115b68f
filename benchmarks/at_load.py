"""How long a whole request takes where a gateway is asked for 80 % of what it can serve, in an open loop."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.bench import Bench, Sample
from benchmarks.contestants import Gateway
from benchmarks.figures import Figure, Row

SHARE = 0.8
# More than are ever busy at once: a request must not wait for the load generator.
_CONNECTIONS = 64
P50, P99, SPREAD = "whole, at 80 % load, p50", "whole, at 80 % load, p99", "whole, at 80 % load, p99 over p50"


def rows(
    bench: Bench, gateways: Sequence[Gateway], served: Mapping[str, Sequence[Sample]], model: str
) -> Iterator[Row]:
    """Yield the times of each gateway. `served` are the samples that say how much it serves, by its name."""
    found: dict[str, list[Sample]] = defaultdict(list)
    bench.tell("gateway: at 80 % load")
    for _ in range(bench.pace.rounds):
        for gateway in gateways:
            usable = [one for one in served[gateway.contestant.name] if one.usable]
            if not usable:
                continue
            rate = SHARE * statistics.median(one.result.requests / one.result.seconds for one in usable)
            asked = (gateway.contestant.lanes[0].asked(model),)
            seconds = bench.pace.seconds * 2
            sample = bench.measure(gateway, asked, concurrency=_CONNECTIONS, seconds=seconds, rate=rate)
            if sample.usable:
                found[gateway.contestant.name].append(sample)
    yield Row(measure=P50, unit="ms", figures=_figures(found, lambda one: one.result.latency.p50 / 1000))
    yield Row(measure=P99, unit="ms", figures=_figures(found, lambda one: one.result.latency.p99 / 1000))
    spread = _figures(found, lambda one: one.result.latency.p99 / max(one.result.latency.p50, 1e-9))
    yield Row(measure=SPREAD, unit="times", figures=spread)


def _figures(found: Mapping[str, Sequence[Sample]], value: Callable[[Sample], float]) -> dict[str, Figure]:
    return {name: figure for name, samples in found.items() if (figure := Figure.of([value(one) for one in samples]))}
