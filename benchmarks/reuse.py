"""Subject `reuse`: what each memory of earlier requests saves, in process, on conversations that grow, sixty of them interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from bardo import reuse
from bardo.catalog.load import builtin
from bardo.catalog.request_shapes import shape_at
from bardo.dialects import dialect
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import plan
from bardo.planning.request_shapes import bare, plan_shape
from bardo.planning.route import Provider, Target
from bardo.planning.tools import written_tool_schemas
from bardo.structured import checker
from bardo.structured import plan as plan_answer
from bardo.structured.modes import SchemaTarget
from bardo.values.request import Request
from bardo.values.wire import Arrival
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

WHOLE = "read and plan a turn of an agent, all memories"
PLANS = "plans by the shape of a request: plan how a turn thinks"
TOOLS = "tools in a target's keywords: write twelve schemas of tools"
CHECKERS = "compiled schemas of answers: compile one"
ANSWERS = "plans of answers in a schema: plan one for a compiled schema"
KEPT, ANEW = "kept", "made anew"
_CONVERSATIONS, _LEAST = 60, 15
_SCHEMA = {
    "type": "object",
    "properties": {f"field_{place}": {"type": "integer", "minimum": place} for place in range(12)},
    "required": ["field_0"],
}


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time each step with what is kept of earlier requests, and without."""
    turns = 2 if bench.pace.quick else 6
    rows = [_row(bench, name, each) for name, each in works(turns).items()]
    notes = (
        f"{_CONVERSATIONS} conversations with twelve tools take {turns} turns each, one conversation after the other in each turn.",
        f"A memory that saves less than {_LEAST} % of its step is deleted. BARDO_REUSE=off makes all anew.",
    )
    return [
        Table(
            subject="reuse", title="Memories of earlier requests", columns=(KEPT, ANEW), rows=tuple(rows), notes=notes
        )
    ], []


def works(turns: int) -> dict[str, list[Callable[[], object]]]:
    """Return what is timed, by its name: one piece of work for each turn of a conversation."""
    target, knowledge = _target("anthropic", "claude-sonnet-4-5"), Knowledge()
    bodies = [*_bodies(turns)]
    requests = [_read(body) for body in bodies]
    facts, shape = knowledge.of(target), shape_at(target.provider.row, target.model)
    asked = SchemaTarget(provider="openai", dialect="openai_chat", model="gpt-5")
    judge = checker(_SCHEMA)
    return {
        WHOLE: [partial(_planned, body, target, knowledge) for body in bodies],
        PLANS: [partial(plan_shape, bare(one), target, facts, knowledge) for one in requests],
        TOOLS: [partial(written_tool_schemas, one.tools, shape) for one in requests],
        CHECKERS: [partial(checker, _SCHEMA) for _ in requests],
        ANSWERS: [partial(plan_answer, judge, asked) for _ in requests],
    }


def _row(bench: Bench, name: str, works: list[Callable[[], object]]) -> Row:
    figures = {}
    before = reuse.is_on()
    try:
        for column, on in ((KEPT, True), (ANEW, False)):
            reuse.turn(on)
            rounds = [_microseconds(works) for _ in range(bench.pace.rounds + 1)][1:]
            figure = Figure.of(rounds)
            if figure is not None:
                figures[column] = figure
    finally:
        reuse.turn(before)
    return Row(measure=name, unit="µs", figures=figures)


def _microseconds(works: list[Callable[[], object]]) -> float:
    begin = time.process_time()
    for work in works:
        work()
    return (time.process_time() - begin) * 1e6 / len(works)


def _read(body: bytes) -> Request:
    return dialect("anthropic_messages").decode_request(body, Arrival())


def _planned(body: bytes, target: Target, knowledge: Knowledge) -> object:
    return plan(_read(body), target, knowledge=knowledge)


def _bodies(turns: int) -> Iterator[bytes]:
    path = {"type": "object", "properties": {"a path": {"type": "string"}}, "required": ["a path"]}
    tools = [
        {"name": f"tool_{place}", "description": "Does one thing. " * 20, "input_schema": path} for place in range(12)
    ]
    for turn in range(turns):
        for number in range(_CONVERSATIONS):
            messages: list[dict[str, Any]] = [{"role": "user", "content": f"Mend program {number}."}]
            for place in range(20 + turn):
                call = {
                    "type": "tool_use",
                    "id": f"toolu_{number}_{place}",
                    "name": "tool_1",
                    "input": {"a path": f"{place}"},
                }
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{number} {place} " * 60}
                messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
            body = {"model": "m", "max_tokens": 4096, "stream": True, "tools": tools, "messages": messages}
            yield msgspec.json.encode(body)


def _target(provider: str, model: str) -> Target:
    row = builtin().provider(provider)
    assert row is not None
    return Target(provider=Provider(id=row.id, row=row, base_url=row.base_url), model=model)
