"""Subject `routing`: what it takes to find who answers, among 20 providers with 200 models each."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from bardo.catalog.features import features
from bardo.planning.model_names import ResolvedModel
from bardo.planning.workloads import CallNeeds, needs_of
from bardo.routing.candidates import Candidate, CandidateIndex, Prices
from bardo.routing.decision import decide
from bardo.routing.resolver import resolve
from bardo.routing.scorer import context_of, score
from bardo.routing.workloads import Workloads, builtin_workloads
from bardo.values.blocks import TextBlock
from bardo.values.request import Intent, Message, Request
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

PROVIDERS, MODELS = 20, 200
RESOLVED, NAMED, RELAXED = "resolve by needs", "resolve a named model", "resolve what nobody has (both passes)"
SCORED, FIRST = "score one candidate", "resolve by needs, the first of its kind"
DECIDED, PLAIN = "decide, with reasons and costs for the receipt", "what a request without an intent pays"
LIMITS = {RESOLVED: 15, NAMED: 15, RELAXED: 15, SCORED: 10, PLAIN: 2}
"""In microseconds."""
NEEDS = Intent(require=("visible_thinking",), prefer=("citations",), quality="high", max_latency_ms=2000)
_ENCODE = msgspec.msgpack.Encoder().encode


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time each part."""
    count = 200 if bench.pace.quick else 5000
    rows = [Row(measure=name, unit="µs", figures=_figures(bench, work, count)) for name, work in works().items()]
    rows.append(Row(measure=FIRST, unit="µs", figures=_first(bench)))
    notes = (
        f"{PROVIDERS} providers with {MODELS} models each. A search of a kind that was made before (the same features and bounds) "
        "looks only at candidates that no other beats; the first of its kind looks at all models of the providers that it comes to.",
        "A request without an intent pays for looking for one, and for four more fields in the shape that its plan is kept by.",
    )
    table = Table(subject="routing", title="Routing", columns=("bardo",), rows=tuple(rows), notes=notes)
    found = {name: table.figure(name, "bardo") for name in LIMITS}
    aims = [
        Aim(says=name, limit=limit, unit="µs", found=figure.median if (figure := found[name]) else None)
        for name, limit in LIMITS.items()
    ]
    return [table], aims


def works() -> dict[str, Callable[[], object]]:
    """Return what is timed."""
    index = candidates()
    one, context = next(iter(index)), context_of(NEEDS)
    named = Intent(model="lab/model-7", require=("visible_thinking", "privacy"))
    nobody = Intent(require=("nobody_has_it",), max_latency_ms=1)
    request = Request(model="m", messages=(Message("user", (TextBlock("2+2?"),)),))
    found, workloads = ResolvedModel("m"), builtin_workloads()
    return {
        RESOLVED: lambda: resolve(index, NEEDS),
        NAMED: lambda: resolve(index, named),
        RELAXED: lambda: resolve(index, nobody),
        SCORED: lambda: score(one, context),
        DECIDED: lambda: decide(index, NEEDS),
        PLAIN: lambda: _plain(request, found, workloads),
    }


def candidates() -> CandidateIndex:
    """Return candidates with features, prices, ratings and latencies that are the same in every run."""
    chance = random.Random(7)
    names = features().names
    return CandidateIndex(
        Candidate(
            provider=f"provider-{place}",
            model=f"lab/model-{number}",
            features=frozenset(chance.sample(names, chance.randint(0, 6))),
            prices=Prices(input=chance.uniform(0, 5), output=chance.uniform(0, 25)),
            rating=chance.choice((0.2, 0.4, 0.6, 0.8, 1.0)),
            latency_ms=chance.randint(200, 3000),
        )
        for place in range(PROVIDERS)
        for number in range(MODELS)
    )


def _plain(request: Request, found: ResolvedModel, workloads: Workloads) -> CallNeeds | None:
    options = request.options
    _ENCODE((options.intent, options.intent_fields, options.profile, options.private))
    return needs_of(request, found, workloads)


def _figures(bench: Bench, work: Callable[[], object], count: int) -> dict[str, Figure]:
    work()
    figure = Figure.of([_seconds(work, count) for _ in range(bench.pace.rounds)])
    return {} if figure is None else {"bardo": figure}


def _first(bench: Bench) -> dict[str, Figure]:
    """Time the first search of each of several kinds."""
    index = candidates()
    kinds = [msgspec.structs.replace(NEEDS, max_latency_ms=1000 + place) for place in range(20 * bench.pace.rounds)]
    each = [iter(kinds[place :: bench.pace.rounds]) for place in range(bench.pace.rounds)]
    figure = Figure.of([_seconds(partial(_next, index, kind), 20) for kind in each])
    return {} if figure is None else {"bardo": figure}


def _next(index: CandidateIndex, kinds: Iterator[Intent]) -> object:
    return resolve(index, next(kinds))


def _seconds(work: Callable[[], object], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - begin) * 1e6 / count
