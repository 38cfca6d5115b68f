"""Subject `control`: what a call pays for the plan of its thinking, for its upstream request, and for its receipt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bardo.catalog.load import builtin
from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import BUILTIN
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import observation, observe, plan_reasoning, receipt_header
from bardo.replies.receipt import early_headers, late_headers, receipt
from bardo.values.blocks import TextBlock
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility
from bardo.values.request import Message, ReasoningPolicy, Request
from bardo.values.response import Response
from bardo.values.usage import UNKNOWN_COST
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

PLANNED, WRITTEN = "plan how a call thinks", "plan and write an upstream request"
RECEIPT, TOLD = "receipt: verdict and header", "all headers and the receipt's object"
LIMIT = 15
_MODELS = {"anthropic": "claude-opus-4-8", "openai": "gpt-5", "gemini": "gemini-2.5-flash", "vllm": "Qwen/Qwen3-32B"}
_POLICY = ReasoningPolicy(mode="effort", effort="low")
_REQUEST = Request(
    model="bench",
    messages=(Message("user", (TextBlock("What is 27 * 43?"),)),),
    reasoning=_POLICY,
    max_output_tokens=8192,
)
_RESPONSE = Response(
    blocks=(TextBlock("1161"),),
    reasoning=ReasoningChain(
        content="27 * 40 = 1080.", reasoning_tokens=30, reported=True, visibility=ReasoningVisibility.VISIBLE
    ),
)


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time each part, over one model of each of four dialects."""
    count = 500 if bench.pace.quick else 5000
    rows = [Row(measure=name, unit="µs", figures=_figures(bench, work, count)) for name, work in works().items()]
    notes = ("The mean of four models in four dialects. Facts are worked out once for each model, before.",)
    table = Table(subject="control", title="Reasoning control", columns=("bardo",), rows=tuple(rows), notes=notes)
    figure = table.figure(RECEIPT, "bardo")
    return [table], [Aim(says=RECEIPT, limit=LIMIT, unit="µs", found=figure.median if figure else None)]


def works() -> dict[str, Callable[[], object]]:
    """Return what is timed: each does its part for every model once."""
    targets = [_target(provider, model) for provider, model in _MODELS.items()]
    known = [BUILTIN.of(target).known for target in targets]
    made = [plan(_REQUEST, target) for target in targets]
    return {
        PLANNED: lambda: [plan_reasoning(_POLICY, one, max_output_tokens=8192) for one in known],
        WRITTEN: lambda: [plan(_REQUEST, target) for target in targets],
        RECEIPT: lambda: _verdicts(made),
        TOLD: lambda: [
            (
                early_headers("req_1", one, _RESPONSE),
                late_headers(_RESPONSE, one, UNKNOWN_COST),
                receipt(_RESPONSE, one, forwarded=False),
            )
            for one in made
        ],
    }


def _verdicts(made: Sequence[Attempt]) -> list[str]:
    plans = [one.control for one in made if one.control is not None]
    return [receipt_header(one, observe(one, observation(_RESPONSE.reasoning))) for one in plans]


def _target(provider: str, model: str) -> Target:
    row = builtin().provider(provider)
    assert row is not None
    return Target(provider=Provider(id=row.id, row=row, base_url=row.base_url), model=model)


def _figures(bench: Bench, work: Callable[[], object], count: int) -> dict[str, Figure]:
    figure = Figure.of([_microseconds(work, count) for _ in range(bench.pace.rounds + 1)][1:])
    return {"bardo": figure} if figure else {}


def _microseconds(work: Callable[[], object], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - begin) * 1e6 / count / len(_MODELS)
