"""Subject `context`: what each layer that shortens prompts saves, how long it takes, and what a whole conversation costs with a cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bardo.context.effects import LoadForSession, StoreForSession
from bardo.context.layer import Effect, Layer, LayerFacts, Passed, TargetFacts
from bardo.context.steps.compress import Compress
from bardo.context.steps.order import Constraints, Reorder
from bardo.context.steps.prompt_parts import message_tokens
from bardo.context.steps.settings import (
    CompressSettings,
    ConstraintsSettings,
    DedupSettings,
    FormatSettings,
    RelevanceSettings,
    ReorderSettings,
)
from bardo.context.steps.shortening import dedup, format_results, relevance
from bardo.values.request import Request
from benchmarks.bench import Bench
from benchmarks.context_histories import agent_request, shared_beginning, turns_of
from benchmarks.figures import Figure, Row, Table, Target

CALLS = {"20 calls": 20, "100 calls": 100, "500 calls": 500}
LAYERS: dict[str, Callable[[], Layer]] = {
    "reorder": lambda: Reorder(ReorderSettings()),
    "compress": lambda: Compress(CompressSettings()),
    "compress, compact by rules": lambda: Compress(CompressSettings(compact=("rules",))),
    "dedup": lambda: dedup(DedupSettings()),
    "relevance": lambda: relevance(RelevanceSettings(longest=500, keep=250)),
    "constraints": lambda: Constraints(ConstraintsSettings(must=("Be brief.",))),
    "format": lambda: format_results(FormatSettings()),
}
TOGETHER = ("compress", "dedup", "format")
NOTHING, ALWAYS, BARDO, COMPACT = "as it is", "shortened whenever it is old", "bardo", "bardo, compacted too"
_READ_SHARE = 0.1
_TARGET = TargetFacts(
    provider="p", model="m", dialect="openai_chat", window=1_000_000, input_nanos=10**9, cache_read_nanos=10**8
)

Memory = dict[tuple[str, str], bytes]


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure each layer on three conversations, and one conversation from its first turn to its last."""
    sizes = dict(list(CALLS.items())[:2]) if bench.pace.quick else CALLS
    layers = _layers(bench, sizes)
    costs = _costs(60 if bench.pace.quick else 150)
    times = [layers.figure(f"{name}: time", list(sizes)[-1]) for name in TOGETHER]
    taken = sum(figure.median for figure in times if figure is not None)
    tokens = count(agent_request(sizes[list(sizes)[-1]]))
    return [layers, costs], [
        Target(
            says="compress, dedup and format together, per 1,000 tokens",
            limit=0.3,
            unit="ms",
            found=taken / tokens * 1_000,
        ),
        Target(
            says="cost of a conversation over that of sending it as it is", limit=0.8, unit="×", found=_ratio(costs)
        ),
    ]


def count(request: Request, target: TargetFacts | None = None) -> int:
    """Estimate the tokens of a prompt."""
    return sum(map(message_tokens, request.messages))


def run_layer(layer: Layer, request: Request, memory: Memory, now: float = 0.0) -> Request:
    """Return what a layer passes on, with a dictionary for what it keeps."""
    facts = LayerFacts(tenant="", session="s", now=now, profile="", count_tokens=count, targets=(_TARGET,))
    steps, result = layer.steps(request, facts), None
    while True:
        try:
            result = _perform(steps.send(result), memory)
        except StopIteration as stop:
            passed: Passed = stop.value
            return passed.request


def _perform(effect: Effect, memory: Memory) -> Any:
    match effect:
        case LoadForSession(layer=name, session=session):
            return memory.get((name, session))
        case StoreForSession(layer=name, session=session, value=value):
            memory[name, session] = value
    return None


def _layers(bench: Bench, sizes: Mapping[str, int]) -> Table:
    rows: list[Row] = []
    for name, layer in LAYERS.items():
        bench.tell(f"context: {name}")
        times: dict[str, Figure] = {}
        saved: dict[str, Figure] = {}
        for column, calls in sizes.items():
            request = agent_request(calls)
            work = partial(run_layer, layer(), request)
            times |= _named(column, [_milliseconds(work) for _ in range(bench.pace.rounds)])
            saved |= _named(column, [100 - 100 * count(work({})) / count(request)])
        rows += [
            Row(measure=f"{name}: time", unit="ms", figures=times),
            Row(measure=f"{name}: saved", unit="%", figures=saved),
        ]
    lengths = ", ".join(f"{name} {count(agent_request(calls)):,} tokens" for name, calls in sizes.items())
    notes = (
        f"Each layer alone, as if the session began here. Conversations: {lengths}. In brackets: times the first column.",
    )
    return Table(
        subject="context", title="context: each layer alone", columns=tuple(sizes), rows=tuple(rows), notes=notes
    )


def _costs(calls: int) -> Table:
    """Return what all turns of a conversation cost, in thousands of tokens at the price of input."""
    ways: dict[str, tuple[Sequence[Layer], bool]] = {
        BARDO: ([LAYERS[name]() for name in TOGETHER], True),
        COMPACT: (
            [Compress(CompressSettings(compact=("rules",), compact_above_tokens=60_000)), LAYERS["dedup"]()],
            True,
        ),
        NOTHING: ([], True),
        ALWAYS: ([LAYERS[name]() for name in TOGETHER], False),
    }
    found = {name: _session(calls, layers, knows_cache=knows) for name, (layers, knows) in ways.items()}
    kinds = ("all turns", "read from the cache", "read anew", "tokens of the last prompt")
    rows = [
        Row(
            measure=kind,
            unit="thousand tokens",
            figures={
                name: Figure(median=values[place], low=values[place], high=values[place], rounds=1)
                for name, values in found.items()
            },
        )
        for place, kind in enumerate(kinds)
    ]
    notes = (
        f"A conversation of {calls} calls, a turn every 20 s. What is sent as in the turn before is read from the cache for a tenth; `all "
        "turns` is the cost at the price of input. The last column decides as if nothing were ever cached.",
    )
    return Table(
        subject="context", title="context: a whole conversation", columns=tuple(ways), rows=tuple(rows), notes=notes
    )


def _session(calls: int, layers: Sequence[Layer], *, knows_cache: bool) -> tuple[float, float, float, float]:
    memory: Memory = {}
    cached = anew = 0
    before = Request(model="bench", messages=())
    for number, turn in enumerate(turns_of(agent_request(calls))):
        now = turn
        for layer in layers:
            # A turn every 20 s is within what the cache holds; one every hour is not.
            now = run_layer(layer, now, memory, number * (20.0 if knows_cache else 3_600.0))
        shared = sum(map(message_tokens, now.messages[: shared_beginning(before.messages, now.messages)]))
        cached, anew, before = cached + shared, anew + count(now) - shared, now
    return ((cached * _READ_SHARE + anew) / 1_000, cached / 1_000, anew / 1_000, count(before) / 1_000)


def _ratio(costs: Table) -> float | None:
    return costs.ratio("all turns", BARDO, NOTHING)


def _named(column: str, values: Sequence[float]) -> dict[str, Figure]:
    figure = Figure.of(values)
    return {} if figure is None else {column: figure}


def _milliseconds(work: Callable[[Memory], object]) -> float:
    begin = time.process_time()
    work({})
    return (time.process_time() - begin) * 1_000
