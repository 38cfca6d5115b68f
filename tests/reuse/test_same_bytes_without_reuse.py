"""What is sent is the same whether anything is kept of earlier requests or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bardo import reuse
from bardo.catalog.request_shapes import shape_at
from bardo.dialects import dialect
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import plan
from bardo.planning.route import Target
from bardo.planning.tools import written_tool_schemas
from bardo.structured import StructuredPlan, checker
from bardo.structured import plan as answer_plan
from bardo.structured.modes import SchemaTarget
from bardo.values.errors import BardoError
from bardo.values.request import Request, Tool
from bardo.values.wire import Arrival
from planning.test_plan_cache import PRESETS, _request_of, target
from recordings import folders, rows, sampled

TOOLS: tuple[dict[str, Any], ...] = (
    {"type": "object", "properties": {"a b": {"type": "string"}}, "required": ["a b"]},
    {"type": "object", "properties": {"n": {"const": 1}}},
    {"type": "object", "properties": {"n": {"const": 1.0}}},
    {"type": "object", "properties": {"n": {"const": True}}},
    {"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "integer", "minimum": 0}}]},
    {"type": "object", "properties": {"deep": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"type": ["string", "null"]}}},
)


pytestmark = pytest.mark.usefixtures("reused")


def _sent(request: Request, at: Target, knowledge: Knowledge) -> tuple[Any, ...]:
    try:
        attempt = plan(request, at, knowledge=knowledge)
    except BardoError as problem:
        return type(problem), problem.message
    return attempt.wire, attempt.degraded, attempt.forward, attempt.control, attempt.formats, attempt.tool_names


def _asked() -> Iterator[Request]:
    for recording in sampled([one for name in folders() for one in rows(name)], 0.1, law="same bytes without reuse"):
        request = _request_of(recording)
        if request is not None:
            yield request
    for schema in TOOLS:
        for extra in ({}, {"strict": True}):
            function = {"name": "f", "parameters": schema, **extra}
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": "Hello."}],
                "tools": [{"type": "function", "function": function}],
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
            }
            yield dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival())


def test_each_request_is_sent_as_if_nothing_were_kept() -> None:
    asked, knowledge = [*_asked()], Knowledge()
    targets = [target(preset, "m") for preset in PRESETS]
    # The second time each finds what was kept the first time.
    kept = [[[_sent(one, at, knowledge) for at in targets] for one in asked] for _ in range(2)]
    reuse.turn(False)
    anew = [[_sent(one, at, knowledge) for at in targets] for one in asked]
    assert kept == [anew, anew]


def test_the_tools_of_one_caller_are_no_others_though_their_schemas_are_equal_in_python() -> None:
    shape = shape_at(target("anthropic", "claude-sonnet-4-5").provider.row, "claude-sonnet-4-5")
    for constant in (1, 1.0, True, 1):
        schema = {"type": "object", "properties": {"a b": {"const": constant}}}
        found = written_tool_schemas((Tool(name="f", schema=schema),), shape)
        assert found is not None
        reuse.turn(False)
        assert msgspec.json.encode(found) == msgspec.json.encode(
            written_tool_schemas((Tool(name="f", schema=schema),), shape)
        )
        reuse.turn(True)


def test_a_schema_that_its_caller_changes_later_does_not_change_what_is_kept() -> None:
    shape = shape_at(target("anthropic", "claude-sonnet-4-5").provider.row, "claude-sonnet-4-5")

    def schema() -> dict[str, Any]:
        return {"type": "object", "properties": {"a b": {"const": 1}, "b": {"type": "string"}}}

    own = schema()
    first = msgspec.json.encode(written_tool_schemas((Tool(name="f", schema=own),), shape))
    own["properties"]["b"]["type"] = "integer"
    assert msgspec.json.encode(written_tool_schemas((Tool(name="f", schema=schema()),), shape)) == first
    assert msgspec.json.encode(written_tool_schemas((Tool(name="f", schema=own),), shape)) != first


def test_an_answer_is_asked_for_in_the_same_way_without_reuse() -> None:
    asked_of = SchemaTarget(provider="openai", dialect="openai_chat", model="gpt-5")

    def made() -> StructuredPlan:
        return answer_plan({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}, asked_of)

    kept = made()
    assert made() is kept
    assert checker({"type": "object"}) is checker({"type": "object"})
    reuse.turn(False)
    anew = made()
    assert anew is not kept
    assert (anew.schema, anew.mode, anew.rewrites) == (kept.schema, kept.mode, kept.rewrites)
    assert checker({"type": "object"}) is not checker({"type": "object"})
