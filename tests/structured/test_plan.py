"""Plans: the mode with its reasons, and the request they make."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bardo import reuse
from bardo.reuse import ANSWER_PLANS
from bardo.structured.apply import apply
from bardo.structured.extraction import Provenance
from bardo.structured.modes import SchemaTarget, StructuredSettings
from bardo.structured.plan import plan
from bardo.structured.types import schema_of
from bardo.structured.validation import checker
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, OutputFormat, Request, Tool, ToolChoice
from structured import shapes

pytestmark = pytest.mark.each_python

SCHEMA: dict[str, Any] = {
    "title": "A decision",
    "type": "object",
    "properties": {
        "action": {"enum": ["wait", "act"]},
        "score": {"type": "number", "minimum": 0},
        "note": {"type": "string"},
    },
    "required": ["action", "score"],
    "additionalProperties": False,
}
FREE = {"type": "object", "properties": {"any": {"type": "object"}}}
OPENAI = SchemaTarget(provider="openai", model="gpt-5")
CLAUDE = SchemaTarget(provider="anthropic", model="claude-opus-4-8")
OLD_CLAUDE = SchemaTarget(provider="anthropic", model="claude-opus-4-20250514")
DEEPSEEK = SchemaTarget(provider="deepseek", model="deepseek-chat")
NOWHERE = SchemaTarget(provider="watsonx", model="granite")
REQUEST = Request(
    model="m",
    messages=(Message("system", (TextBlock("Be short."),)), Message("user", (TextBlock("Go."),))),
    output_format=OutputFormat(mode="json_schema", name="decision", schema=SCHEMA, description="What to do."),
)
OWN = Tool(name="look", schema={"type": "object"})


def test_a_schema_that_fits_is_enforced_and_restored() -> None:
    made = plan(SCHEMA, OPENAI)
    assert (made.mode, made.form, made.strict, made.name) == ("schema_enforced", "json_schema", True, "A_decision")
    assert made.exact
    assert not made.losses
    assert not made.downgraded
    assert made.restore({"action": "act", "score": 1, "note": None}) == {"action": "act", "score": 1}


def test_a_widening_is_a_loss_and_a_degradation() -> None:
    made = plan(SCHEMA, CLAUDE)
    assert [(one.kind, one.path) for one in made.losses] == [("minimum_dropped", "/properties/score")]
    assert not made.exact
    (told,) = apply(made, REQUEST).degraded
    assert (told.what, told.asked, told.sent) == ("response_format.schema/properties/score", "minimum", "widening")


def test_what_cannot_be_said_goes_one_mode_down_with_the_reason() -> None:
    made = plan(FREE, CLAUDE)
    assert (made.mode, made.form, made.downgraded) == ("tool_use_workaround", "tool", True)
    assert "/properties/any" in made.skipped[0].reason
    assert made.schema == FREE


def test_each_wanted_mode_is_taken_or_a_weaker_one() -> None:
    assert plan(SCHEMA, OPENAI, mode="tool_use_workaround").form == "tool"
    assert plan(SCHEMA, OPENAI, mode="prompt_guided").form == "json_object"
    assert plan(SCHEMA, OPENAI, mode="none").form == "none"
    assert plan(SCHEMA, OPENAI, prefer_schema_enforcement=False).form == "tool"
    below = plan(SCHEMA, NOWHERE, mode="tool_use_workaround")
    assert (below.form, below.downgraded) == ("prompt", True)


def test_what_is_known_of_the_model_counts() -> None:
    assert plan(SCHEMA, replace(OPENAI, json_schema=False)).form == "json_object"
    assert plan(SCHEMA, replace(OPENAI, json_schema=False, json_object=False, tools=False)).form == "prompt"
    assert plan(SCHEMA, replace(OPENAI, json_schema=False, json_object=False, forced_tools=False)).form == "tool_auto"
    venice = SchemaTarget(provider="venice", model="some-new-model")
    assert plan(SCHEMA, venice).form == "tool"
    assert plan(SCHEMA, replace(venice, json_schema=True)).form == "json_schema"


@pytest.mark.usefixtures("reused")
def test_the_same_plan_is_remembered_and_a_changed_schema_is_another() -> None:
    schema = {**SCHEMA, "title": "Remembered"}
    first = plan(schema, OPENAI)
    assert plan(schema, OPENAI) is first
    schema["title"] = "Other"
    assert plan(schema, OPENAI).name == "Other"


def test_the_order_of_properties_stays_the_callers() -> None:
    turned = {**SCHEMA, "properties": dict(reversed(SCHEMA["properties"].items()))}
    for schema in (SCHEMA, turned):
        made = plan(schema, SchemaTarget(provider="gemini", model="gemini-3-pro"))
        assert made.schema is not None
        assert made.schema["propertyOrdering"] == list(schema["properties"])


def _circle() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


def _deep() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"type": "array", "items": schema}
    return schema


BAD = {
    "no schema": {"type": "strin"},
    "a list": [],
    "another document": {"$ref": "http://elsewhere.invalid/x"},
    "nothing there": {"$ref": "#/$defs/none"},
    "only itself": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "a circle": _circle(),
    "too deep": _deep(),
    "too large": {"type": "string", "description": "x" * (1 << 20)},
    "not JSON": {"type": "string", "default": object()},
}


@pytest.mark.parametrize("target", [OPENAI, CLAUDE, OLD_CLAUDE], ids=lambda target: target.model)
@pytest.mark.parametrize("case", BAD)
def test_what_is_no_schema_is_refused_clearly(case: str, target: SchemaTarget) -> None:
    with pytest.raises(InvalidRequest) as refused:
        plan(BAD[case], target)  # type: ignore[arg-type]
    assert refused.value.param == "schema"
    assert refused.value.message


@pytest.mark.parametrize("target", [OPENAI, CLAUDE, DEEPSEEK, NOWHERE], ids=lambda target: target.provider)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_any_schema_has_a_plan_or_is_refused(target: SchemaTarget, seed: int) -> None:
    schema = shapes.schema(Random(seed))
    try:
        made = plan(schema, target)
    except InvalidRequest:
        return
    assert made.schema is not None
    assert made.form == "json_schema" or made.skipped or target in (DEEPSEEK, NOWHERE)
    assert made.restore("another shape") == "another shape"


def test_an_enforced_schema_stands_in_the_output_format() -> None:
    made = plan(SCHEMA, OPENAI, name="decision")
    request = apply(made, REQUEST).request
    assert request.output_format == OutputFormat(
        mode="json_schema", name="decision", schema=made.schema, strict=True, description="What to do."
    )
    assert request.messages == REQUEST.messages


def test_a_forced_tool_carries_the_answer() -> None:
    request = apply(plan(SCHEMA, OLD_CLAUDE, name="decision"), REQUEST).request
    assert request.output_format is None
    assert request.tool_choice == ToolChoice(mode="named", name="respond_decision")
    assert [(tool.name, tool.schema) for tool in request.tools] == [("respond_decision", SCHEMA)]


def test_beside_other_tools_any_of_them_may_be_called() -> None:
    asked = replace(REQUEST, tools=(OWN,))
    request = apply(plan(SCHEMA, OLD_CLAUDE, tools=True), asked).request
    assert [tool.name for tool in request.tools] == ["look", "respond_A_decision"]
    assert request.tool_choice is not None
    assert request.tool_choice.mode == "required"


def test_a_tool_that_cannot_be_forced_is_asked_for_in_words() -> None:
    made = plan(SCHEMA, OLD_CLAUDE, thinking=True, name="decision")
    request = apply(made, REQUEST).request
    assert made.form == "tool_auto"
    assert request.tool_choice == ToolChoice(mode="auto")
    assert "`respond_decision`" in request.messages[0].text


def test_a_demanded_call_of_an_own_tool_leaves_no_answer_to_shape() -> None:
    asked = replace(REQUEST, tools=(OWN,), tool_choice=ToolChoice(mode="named", name="look"))
    applied = apply(plan(SCHEMA, OLD_CLAUDE, tools=True), asked)
    assert applied.request.tools == (OWN,)
    assert applied.request.tool_choice == asked.tool_choice
    assert [one.what for one in applied.degraded] == ["response_format"]


def test_tools_that_may_not_be_called_make_room_for_the_answer() -> None:
    asked = replace(REQUEST, tools=(OWN,), tool_choice=ToolChoice(mode="none"))
    applied = apply(plan(SCHEMA, OLD_CLAUDE), asked)
    assert [tool.name for tool in applied.request.tools] == ["respond_A_decision"]
    assert "tools" in {one.what for one in applied.degraded}


def test_json_mode_says_json_shows_an_example_and_is_told() -> None:
    applied = apply(plan(SCHEMA, DEEPSEEK), REQUEST)
    system = applied.request.messages[0].text
    assert system.startswith("Be short.\n\n")
    assert "JSON" in system
    assert '{"action": "wait", "score": 1.5, "note": "text"}' in system
    assert applied.request.output_format == OutputFormat(mode="json_object", name="A_decision")
    assert ("response_format", "schema_enforced", "json_object") in {
        (one.what, one.asked, one.sent) for one in applied.degraded
    }


def test_an_example_without_a_form_is_left_out() -> None:
    assert "example" not in plan({"type": "object"}, DEEPSEEK).guidance


def test_guidance_alone_makes_a_system_prompt_where_there_is_none() -> None:
    asked = replace(REQUEST, messages=REQUEST.messages[1:])
    request = apply(plan(SCHEMA, NOWHERE), asked).request
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.output_format is None


def test_the_callers_own_guidance_is_used_where_it_shows_what_is_asked() -> None:
    assert plan(SCHEMA, NOWHERE, guidance="Mine.").guidance == "Mine."
    assert "value" in plan({"type": "string"}, DEEPSEEK, guidance="Mine, in JSON.").guidance


def test_no_mode_takes_the_format_away() -> None:
    applied = apply(plan(SCHEMA, OPENAI, mode="none"), REQUEST)
    assert applied.request == replace(REQUEST, output_format=None)


def test_settings_and_provenance_have_the_documents_defaults() -> None:
    settings = StructuredSettings()
    assert (settings.enabled, settings.prefer_schema_enforcement, settings.validation) == (True, True, True)
    assert (settings.retry_on_validation_failure, settings.max_retries) == (True, 1)
    assert Provenance(mode="none").error is None


@pytest.mark.parametrize("dialect", ["anthropic_messages", "openai_responses"])
def test_llama_server_enforces_a_schema_only_where_it_builds_a_grammar(dialect: str) -> None:
    def mode(spoken: str) -> str:
        target = SchemaTarget(provider="llama-server", model="qwen3", dialect=spoken)
        return plan({"type": "object"}, target).mode

    assert mode("openai_chat") == "schema_enforced"
    assert mode(dialect) == "tool_use_workaround"


@pytest.mark.parametrize("provider", ["vllm", "sglang", "ollama", "lmstudio"])
def test_the_messages_route_of_a_server_of_ones_own_is_not_trusted_to_enforce(provider: str) -> None:
    target = SchemaTarget(provider=provider, model="m", dialect="anthropic_messages")
    assert plan({"type": "object"}, target).mode != "schema_enforced"


@pytest.mark.usefixtures("reused")
def test_a_schema_that_its_owner_changes_is_planned_anew() -> None:
    mine: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    kept = checker(mine)
    first = plan(mine, NOWHERE)
    mine["properties"]["b"] = {"type": "integer"}
    second = plan(mine, NOWHERE)
    assert "'b'" not in str(first.schema)
    assert second.schema == mine
    assert plan(kept, NOWHERE) is plan(kept.schema, NOWHERE) is first


@pytest.mark.usefixtures("reused")
def test_one_schema_at_one_target_has_one_plan() -> None:
    schema = schema_of(dict[str, int]).schema
    assert plan(schema, NOWHERE) is plan(schema, NOWHERE)
    assert plan(schema, NOWHERE) is not plan(schema, NOWHERE, streaming=True)


@pytest.mark.usefixtures("reused")
def test_what_is_kept_of_many_schemas_is_bounded_and_dropped_whole() -> None:
    reuse.limit(200_000)
    first = checker({"const": "first"})
    for number in range(300):
        checker({"const": number})
    again = checker({"const": "first"})
    assert again is not first
    assert checker(again.schema) is again
    assert checker(first.schema) is again
    for number in range(2_000):
        plan(again, NOWHERE, name=f"n{number}")
    assert len(ANSWER_PLANS) <= 1_024
