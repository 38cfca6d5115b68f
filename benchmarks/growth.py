"""Subject `growth`: whether the cost of an event grows with its stream, of a request with its prompt and its history, and what more workers
give."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.route import Provider
from bardo.planning.route import Target as Provided
from bardo.planning.typed_answer import AnswerPlan, answer_plan
from bardo.reasoning.control import ControlPlan
from bardo.structured import StructuredSettings
from bardo.values.request import Request
from bardo.values.wire import Arrival
from benchmarks.agent_turns import agent_turn
from benchmarks.bench import Bench, Sample
from benchmarks.canned import events_of
from benchmarks.contestants import FLOOR, Gateway, Lane, bardo
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.gateway import LANES
from benchmarks.load import Asked
from benchmarks.processes import Cores

STREAMS = {"200 events": "burst-200", "2,000 events": "burst-2000", "20,000 events": "burst-20000"}
PROMPTS = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000}
HISTORIES = {"3 calls": 3, "30 calls": 30, "120 calls": 120}
_SAME_TURN = (
    "A system prompt of 4 KB, twelve tools, calls with thinking, results of 800 bytes. The same turn is asked again and again, so that "
    "nothing in it is new; a turn of a real agent brings two new messages."
)
_NOTE = "In brackets: times the first column."

_SETTINGS = StructuredSettings()

Cell = tuple[str, str]
Cells = Mapping[Cell, tuple[Gateway, Asked]]


PLAN = "plan of a typed answer, 1,000 properties, warm"
_ROUTER = "sglang-router"


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure bardo as streams, prompts, schemas and workers grow, and the peers as prompts grow."""
    (prompts, turns), plans = _requests(bench), schema_plans(bench)
    tables = [_events(bench), prompts, turns, plans, measure_workers(bench)]
    return tables, [*_router_targets(prompts), _plan_target(plans)]


def _router_targets(prompts: Table) -> Iterator[Target]:
    """Yield what a request of 1 MB costs over what the router that forwards takes for it."""
    own, other = (
        next((row.figures.get("1 MB") for row in prompts.rows if row.measure.startswith(f"{name}, chat client")), None)
        for name in ("bardo", _ROUTER)
    )
    found = None if own is None or other is None else own.median / other.median
    yield Target(says=f"a request of 1 MB, processor, over that of {_ROUTER}", limit=1, unit="×", found=found)


def _plan_target(plans: Table) -> Target:
    figure = plans.figure(PLAN, "bardo")
    return Target(says=PLAN, limit=5, unit="µs", found=figure.median if figure else None)


def schema_plans(bench: Bench) -> Table:
    """Time how a schema is asked for that was asked for before: by the plan alone, in process."""
    rows = []
    for count in (10, 100, 1_000):
        request, target = _typed_request(count), _typed_target()
        control = plan(request, target).control
        assert control is not None
        work = partial(_plan, request, target, control)
        times = 200 if bench.pace.quick else 2000
        figure = Figure.of([_microseconds(work, times) for _ in range(bench.pace.rounds + 1)][1:])
        measure = PLAN.replace("1,000", f"{count:,}")
        rows.append(Row(measure=measure, unit="µs", figures={"bardo": figure} if figure else {}))
    return Table(subject="growth", title="growth: size of a schema", columns=("bardo",), rows=tuple(rows))


def _plan(request: Request, target: Provided, control: ControlPlan) -> AnswerPlan | None:
    assert request.output_format is not None
    return answer_plan(request, request.output_format, target, control, settings=_SETTINGS)


def _typed_request(properties: int) -> Request:
    names = [f"p{number}" for number in range(properties)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    shape = {"format": {"type": "json_schema", "schema": schema}}
    messages = [{"role": "user", "content": "Answer."}]
    body = {"model": "bench", "max_tokens": 1024, "messages": messages, "output_config": shape}
    return dialect("anthropic_messages").decode_request(msgspec.json.encode(body), Arrival())


def _typed_target() -> Provided:
    row = builtin().provider("openai")
    assert row is not None
    return Provided(provider=Provider(id=row.id, row=row, base_url=row.base_url), model="gpt-5")


def _microseconds(work: Callable[[], object], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - begin) * 1e6 / count


def _events(bench: Bench) -> Table:
    gateway = bench.start(bardo())
    assert gateway is not None
    lanes = {LANES[lane.name]: lane for lane in gateway.contestant.lanes}
    cells = {
        (label, size): (gateway, lane.asked(model)) for label, lane in lanes.items() for size, model in STREAMS.items()
    }
    found = _rounds(bench, cells, "events", concurrency=1, least=1)
    gateway.stop()

    def event(cell: Cell, sample: Sample) -> float:
        return sample.cpu / events_of(STREAMS[cell[1]])

    rows = [_row(f"{label}: processor for each event, request included", "µs", found, label, event) for label in lanes]
    title = "growth: events in one burst"
    return Table(subject="growth", title=title, columns=tuple(STREAMS), rows=tuple(rows), notes=(_NOTE,))


def _requests(bench: Bench) -> tuple[Table, Table]:
    """Measure all gateways as a prompt and as an agent's history grows."""
    started = [bench.start(contestant) for contestant in bench.contestants() if not contestant.variant]
    gateways = [gateway for gateway in started if gateway is not None]
    prompts = {size: partial(_prompt, length=length) for size, length in PROMPTS.items()}
    turns = {size: partial(agent_turn, model="whole", calls=calls) for size, calls in HISTORIES.items()}
    tables = (
        _sizes(bench, gateways, "size of the prompt", prompts, ()),
        _sizes(bench, gateways, "an agent's turn with so many tool calls behind it", turns, (_SAME_TURN,)),
    )
    for gateway in gateways:
        gateway.stop()
    return tables


def _prompt(lane: Lane, *, length: int) -> Asked:
    return lane.asked("whole", length)


def _sizes(
    bench: Bench,
    gateways: Sequence[Gateway],
    what: str,
    asked: Mapping[str, Callable[[Lane], Asked]],
    notes: tuple[str, ...],
) -> Table:
    cells: dict[Cell, tuple[Gateway, Asked]] = {}
    for gateway in gateways:
        for lane in gateway.contestant.lanes:
            if lane.name != "forwarded" and gateway.contestant.name == FLOOR:
                continue  # It does the same for every lane.
            if lane.name == "rebuilt" and gateway.contestant.packages:
                continue  # What the peers do is the same as for `forwarded`.
            label = f"{gateway.contestant.name}, {_client(gateway, lane)}"
            cells |= {(label, size): (gateway, make(lane)) for size, make in asked.items()}
    found = _rounds(bench, cells, what, concurrency=1, least=3)
    labels = dict.fromkeys(label for label, _ in cells)
    rows = [_row(f"{label}: processor for each request", "µs", found, label, _processor) for label in labels]
    return Table(
        subject="growth", title=f"growth: {what}", columns=tuple(asked), rows=tuple(rows), notes=(_NOTE, *notes)
    )


def _client(gateway: Gateway, lane: Lane) -> str:
    """Say how a lane is asked; only bardo has more than one way to treat a chat client."""
    if not gateway.contestant.packages:
        return LANES[lane.name]
    return "Anthropic client" if lane.dialect == "anthropic_messages" else "chat client"


def measure_workers(bench: Bench) -> Table:
    """Measure what a second worker gives: calls a second, what one takes of the processor, and memory."""
    # All cores, for one core has no use for two workers; the load generator takes its share of them.
    cores = Cores(bench.cores.all, bench.cores.all)
    counts = {"1 worker": 1, "2 workers": 2}
    gateways = {label: bench.start(bardo(workers), cores) for label, workers in counts.items()}
    cells: dict[Cell, tuple[Gateway, Asked]] = {}
    for label, gateway in gateways.items():
        assert gateway is not None
        for lane in gateway.contestant.lanes:
            cells[(LANES[lane.name], label)] = (gateway, lane.asked("whole"))
    found = _rounds(bench, cells, "workers", concurrency=32, least=32)
    memory = {
        label: figure
        for label, gateway in gateways.items()
        if gateway is not None and (figure := Figure.of([gateway.started.resident_bytes() / 1e6])) is not None
    }
    for gateway in gateways.values():
        assert gateway is not None
        gateway.stop()
    rows = [Row(measure="resident memory after the load", unit="MB", figures=memory)]
    for lane_name in LANES.values():
        rows.append(_row(f"{lane_name}: whole, 32 at once", "requests/s", found, lane_name, _rate))
        rows.append(_row(f"{lane_name}: whole, 32 at once, processor", "µs", found, lane_name, _processor))
    notes = (
        _NOTE,
        "Load generator and upstream run on the same cores here, so the rate is less than the gateway's own.",
    )
    return Table(subject="growth", title="growth: workers", columns=tuple(counts), rows=tuple(rows), notes=notes)


def _processor(cell: Cell, sample: Sample) -> float:
    return sample.cpu


def _rate(cell: Cell, sample: Sample) -> float:
    return sample.result.requests / sample.result.seconds


def _rounds(bench: Bench, cells: Cells, what: str, *, concurrency: int, least: int) -> dict[Cell, list[Sample]]:
    found: dict[Cell, list[Sample]] = defaultdict(list)
    bench.tell(f"growth: {what}")
    for round_number in range(_round_count(bench) + 1):
        for cell, sample in _one_round(bench, cells, concurrency, least, warm=round_number == 0):
            if round_number:
                found[cell].append(sample)
    return found


def _round_count(bench: Bench) -> int:
    # Fewer than for the gateways: what is looked for here is not a few percent.
    return min(3, bench.pace.rounds)


def _one_round(
    bench: Bench, cells: Cells, concurrency: int, least: int, *, warm: bool
) -> Iterator[tuple[Cell, Sample]]:
    seconds = bench.pace.warm_up_seconds if warm else bench.pace.seconds
    for cell, (gateway, asked) in cells.items():
        yield cell, bench.measure(gateway, (asked,), concurrency=concurrency, seconds=seconds, least=least)


def _row(
    measure: str, unit: str, found: Mapping[Cell, Sequence[Sample]], label: str, value: Callable[[Cell, Sample], float]
) -> Row:
    figures, failed = {}, {}
    for cell, samples in found.items():
        if cell[0] != label:
            continue
        figure = Figure.of([value(cell, sample) for sample in samples if sample.usable])
        if figure is not None:
            figures[cell[1]] = figure
        else:
            failed[cell[1]] = "its replies were not what they should be"
    return Row(measure=measure, unit=unit, figures=figures, failed=failed)
