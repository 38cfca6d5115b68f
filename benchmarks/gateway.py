"""Subject `gateway`: what a request and an event cost in each gateway, what they add to the time, and what a gateway takes to be there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchmarks import at_load
from benchmarks.bench import Bench, Sample
from benchmarks.contestants import CHAT, FLOOR, Gateway
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.footprint import cold_starts, import_rows, memory, there_rows

LANES = {
    "forwarded": "chat client, frames forwarded",
    "translated": "Anthropic client",
    "rebuilt": "chat client, reply rebuilt",
}
LITELLM, SGLANG = "LiteLLM", "sglang-router"


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked in a cell: a canned reply, so many at once."""

    model: str
    concurrency: int
    least: int = 4

    def __str__(self) -> str:
        return f"{self.model} × {self.concurrency}"


WHOLE_1, WHOLE_16 = Shape(model="whole", concurrency=1), Shape(model="whole", concurrency=16, least=32)
BURST_1, BURST_16 = Shape(model="burst-200", concurrency=1), Shape(model="burst-200", concurrency=16, least=16)
LONG_1 = Shape(model="burst-2000", concurrency=1, least=2)
PACED_16, FIRST_1 = Shape(model="paced-200", concurrency=16, least=16), Shape(model="paced-10", concurrency=1)
SHAPES = (WHOLE_1, WHOLE_16, BURST_1, BURST_16, LONG_1, PACED_16, FIRST_1)

# What was found, by contestant, lane and shape; the direct way to the upstream has neither contestant nor lane.
Key = tuple[str, str, Shape]
Found = dict[Key, list[Sample]]
Value = Callable[[Found, str, str, int], float | None]


def run(bench: Bench) -> tuple[Table, list[Target]]:
    """Measure every gateway and return their table, and how bardo stands to its targets."""
    contestants = bench.contestants()
    starts = cold_starts(bench, contestants)
    imports = import_rows(bench)
    gateways = [gateway for contestant in contestants if (gateway := bench.start(contestant)) is not None]
    for gateway in gateways:
        starts[gateway.contestant.name].append(gateway.ready_seconds * 1000)
    idle = {gateway.contestant.name: memory(gateway) for gateway in gateways}
    found = measure_rounds(bench, gateways)
    served = {gateway.contestant.name: found[(gateway.contestant.name, CHAT.name, WHOLE_16)] for gateway in gateways}
    late = [*at_load.rows(bench, gateways, served, WHOLE_16.model)]
    loaded = {gateway.contestant.name: memory(gateway) for gateway in gateways}
    for gateway in gateways:
        gateway.stop()
    names = tuple(gateway.contestant.name for gateway in gateways)
    rows = [*cell_rows(found, names), *late, *there_rows(starts, idle, loaded), *imports]
    table = Table(subject="gateway", title="gateway", columns=names, rows=tuple(rows), notes=_NOTES, floor=FLOOR)
    return table, targets(table)


_NOTES = (
    "A figure is the median of the rounds; ± is half the distance between the lowest and the highest. In brackets: times bardo's figure.",
    f"In square brackets: times the figure of the {FLOOR}, which is uvicorn and aiohttp passing a chat request and its reply on unread, "
    "without a key or a log. Every lane is compared with the same request.",
    "Added time is a gateway's time less that of the upstream asked directly in the same round. A time that is far below "
    "its neighbours' spread is noise.",
    "bardo writes its inference log in every request; LiteLLM and TensorZero run without a database, so they log nothing.",
    "A gateway that writes each event by itself and leaves Nagle's algorithm on waits for the client's delayed "
    "acknowledgement, about 40 ms, in a burst.",
    "LiteLLM and TensorZero rebuild every reply: one figure stands in both rows of the chat client. sglang-router forwards.",
)


def measure_rounds(bench: Bench, gateways: Sequence[Gateway]) -> Found:
    """Measure every cell in each round, one contestant after the other, so that all meet the same machine."""
    found: Found = defaultdict(list)
    pace = bench.pace
    for round_number in range(pace.rounds + 1):
        bench.tell(f"gateway: round {round_number} of {pace.rounds}" if round_number else "gateway: warming up")
        seconds = pace.seconds if round_number else pace.warm_up_seconds
        for shape in SHAPES:
            for key, sample in _cells(bench, gateways, shape, seconds):
                if round_number:
                    found[key].append(sample)
    return found


def _cells(bench: Bench, gateways: Sequence[Gateway], shape: Shape, seconds: float) -> Iterator[tuple[Key, Sample]]:
    least = max(1, shape.least // 2) if bench.pace.quick else shape.least
    load = {"concurrency": shape.concurrency, "least": least}
    yield ("", "", shape), bench.measure(None, (CHAT.asked(shape.model),), seconds=seconds, **load)
    for gateway in gateways:
        measured: dict[tuple[str, str], Sample] = {}
        for lane in gateway.contestant.lanes:
            # Two lanes that send the same have the same figure.
            way = (lane.path, lane.model)
            if way not in measured:
                measured[way] = bench.measure(gateway, (lane.asked(shape.model),), seconds=seconds, **load)
            yield (gateway.contestant.name, lane.name, shape), measured[way]


def cell_rows(found: Found, names: Sequence[str]) -> Iterator[Row]:
    """Return the rows of all cells."""
    for lane, label in LANES.items():
        for words, unit, value in _MEASURES:
            yield _row(f"{label}: {words}", unit, value, found, lane, names)


def _row(measure: str, unit: str, value: Value, found: Found, lane: str, names: Sequence[str]) -> Row:
    figures, failed = {}, {}
    for name in names:
        samples = found.get((name, lane, WHOLE_1), ())
        values = [given for place in range(len(samples)) if (given := value(found, name, lane, place)) is not None]
        figure = Figure.of(values)
        if figure is not None:
            figures[name] = figure
        elif samples:
            failed[name] = "its replies were not what they should be"
    return Row(measure=measure, unit=unit, figures=figures, failed=failed)


def _usable(found: Found, name: str, lane: str, shape: Shape, place: int) -> Sample | None:
    sample = found[(name, lane, shape)][place]
    return sample if sample.usable else None


def processor_time(shape: Shape) -> Value:
    """Return what tells the processor time of a request."""

    def value(found: Found, name: str, lane: str, place: int) -> float | None:
        sample = _usable(found, name, lane, shape, place)
        return sample.cpu if sample else None

    return value


def added(shape: Shape, what: str, rank: str) -> Value:
    """Return what tells the time added to `what` (latency or first_byte) at a rank (p50 or p99)."""

    def value(found: Found, name: str, lane: str, place: int) -> float | None:
        sample = _usable(found, name, lane, shape, place)
        direct = found[("", "", shape)][place]
        if sample is None:
            return None
        return float(getattr(getattr(sample.result, what), rank) - getattr(getattr(direct.result, what), rank)) / 1000

    return value


def marginal(found: Found, name: str, lane: str, place: int) -> float | None:
    """Return the processor time of one event more, from streams of 200 and of 2,000."""
    short, long = (_usable(found, name, lane, shape, place) for shape in (BURST_1, LONG_1))
    return (long.cpu - short.cpu) / 1800 if short and long else None


def paced_event(found: Found, name: str, lane: str, place: int) -> float | None:
    """Return the processor time of one event that comes alone, its share of the request included."""
    sample = _usable(found, name, lane, PACED_16, place)
    return sample.cpu / 200 if sample else None


_MEASURES: tuple[tuple[str, str, Value], ...] = (
    ("whole, 1 at a time, processor", "µs", processor_time(WHOLE_1)),
    ("whole, 16 at once, processor", "µs", processor_time(WHOLE_16)),
    ("whole, 1 at a time, added p50", "ms", added(WHOLE_1, "latency", "p50")),
    ("whole, 1 at a time, added p99", "ms", added(WHOLE_1, "latency", "p99")),
    ("whole, 16 at once, added p50", "ms", added(WHOLE_16, "latency", "p50")),
    ("whole, 16 at once, added p99", "ms", added(WHOLE_16, "latency", "p99")),
    ("burst of 200 events, 1 at a time, processor", "µs", processor_time(BURST_1)),
    ("burst of 200 events, 16 at once, processor", "µs", processor_time(BURST_16)),
    ("burst of 200 events, 1 at a time, added p50", "ms", added(BURST_1, "latency", "p50")),
    ("burst of 200 events, 1 at a time, added p99", "ms", added(BURST_1, "latency", "p99")),
    ("burst of 200 events, 16 at once, added p50", "ms", added(BURST_16, "latency", "p50")),
    ("burst of 200 events, 16 at once, added p99", "ms", added(BURST_16, "latency", "p99")),
    ("one event more in a burst, processor", "µs", marginal),
    ("200 events 2.5 ms apart, 16 at once, processor", "µs", processor_time(PACED_16)),
    ("one event of them, processor", "µs", paced_event),
    ("200 events 2.5 ms apart, 16 at once, added p50", "ms", added(PACED_16, "latency", "p50")),
    ("200 events 2.5 ms apart, 16 at once, added p99", "ms", added(PACED_16, "latency", "p99")),
    ("first byte, 1 at a time, added p50", "ms", added(FIRST_1, "first_byte", "p50")),
    ("first byte, 1 at a time, added p99", "ms", added(FIRST_1, "first_byte", "p99")),
)


def targets(table: Table) -> list[Target]:
    """Return how bardo stands to what it aims at."""

    def found(measure: str) -> float | None:
        figure = table.figure(measure, "bardo")
        return figure.median if figure else None

    forwarded, translated = LANES["forwarded"], LANES["translated"]
    whole = f"{forwarded}: whole, 16 at once, processor"
    one = "one event more in a burst, processor"
    first = "first byte, 1 at a time, added p50"
    wanted = (
        (whole, 300, "µs"),
        (f"{forwarded}: whole, 1 at a time, processor", 300, "µs"),
        (f"{translated}: {one}", 4, "µs"),
        (f"{LANES['rebuilt']}: {one}", 4, "µs"),
        (f"{forwarded}: {one}", 1, "µs"),
        (f"{forwarded}: {first}", 1, "ms"),
        (f"{translated}: {first}", 1, "ms"),
        (f"{forwarded}: whole, 1 at a time, added p50", 0.3, "ms"),
        (at_load.SPREAD, 3, "times"),
        ("cold start to the first good answer", 1000, "ms"),
        ("resident memory after the load", 90, "MB"),
        ("import of the package", 120, "ms"),
    )
    limits = [Target(says=says, limit=limit, unit=unit, found=found(says)) for says, limit, unit in wanted]
    against = Target(
        says="LiteLLM's processor time for a whole request over bardo's",
        limit=40,
        unit="×",
        found=table.ratio(whole, LITELLM, "bardo"),
        better="higher",
    )
    return [limits[0], against, *limits[1:], *_ratio_targets(table)]


def _ratio_targets(table: Table) -> Iterator[Target]:
    """Yield how bardo stands to the bare proxy, and to the router that forwards."""
    forwarded, translated = LANES["forwarded"], LANES["translated"]
    whole, burst = "whole, 16 at once, processor", "burst of 200 events, 16 at once, processor"
    paced = "200 events 2.5 ms apart, 16 at once, processor"
    wanted = (
        (f"{forwarded}: {whole}", FLOOR, 1.5),
        (f"{translated}: {whole}", FLOOR, 2.0),
        (f"{forwarded}: {burst}", FLOOR, 1.5),
        (f"{translated}: {burst}", FLOOR, 3.0),
        (f"{forwarded}: {paced}", FLOOR, 1.3),
        (f"{translated}: {paced}", FLOOR, 1.6),
        (f"{forwarded}: {whole}", SGLANG, 1.0),
    )
    for measure, base, limit in wanted:
        found = table.ratio(measure, "bardo", base)
        yield Target(says=f"{measure}, over that of {base}", limit=limit, unit="×", found=found)
