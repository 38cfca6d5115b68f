"""How each target is asked for an answer in a schema, what is learned of refusals, and what stays untouched."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.adapters.config.settings import ProviderEntry, provider_of
from bardo.catalog.replay import Binding
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import attempts
from bardo.planning.knowledge import BUILTIN, Knowledge, RefusedForm
from bardo.planning.planner import asked_again, plan
from bardo.planning.route import Target
from bardo.services.facts.model_facts import ModelFacts
from bardo.structured import StructuredSettings
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest, Unreachable, UpstreamRefused
from bardo.values.request import BardoOptions, Message, OutputFormat, Request, StructuredOptions, Tool, ToolChoice
from bardo.values.wire import Arrival
from support import exchanges
from support.typed import PLACE, shape_for

ASKED = (Message("user", (TextBlock("Where?"),)),)
SHAPE = OutputFormat(mode="json_schema", name="place", schema=PLACE, strict=True)
REQUEST = Request(model="m", messages=ASKED, output_format=SHAPE)


def target(preset: str, model: str) -> Target:
    provider = provider_of(ProviderEntry(id=preset, preset=preset, base_url="http://127.0.0.1:1/v1"))
    return Target(provider=provider, model=model)


GPT = target("openai", "gpt-5")
SONNET = target("anthropic", "claude-sonnet-4-5")
DEEPSEEK = target("deepseek", "deepseek-chat")


def asked(attempt: Attempt) -> Any:
    return msgspec.json.decode(attempt.wire.body)


def arrived(client: str, model: str, **fields: Any) -> Request:
    """Return a request as a client of a dialect sends it."""
    body: dict[str, Any] = {"model": model, "max_tokens": 4096, "messages": [{"role": "user", "content": "Where?"}]}
    return dialect(client).decode_request(msgspec.json.encode({**body, **fields}), Arrival())


FORMS = {
    "OpenAI": (GPT, "json_schema", False),
    "Claude": (SONNET, "json_schema", False),
    "an older Claude": (target("anthropic", "claude-3-5-haiku-latest"), "tool", True),
    "Gemini": (target("gemini", "gemini-2.5-flash"), "json_schema", False),
    "DeepSeek": (DEEPSEEK, "json_object", True),
    "DeepSeek thinking": (target("deepseek", "deepseek-reasoner"), "json_object", True),
    "MiniMax": (target("minimax", "MiniMax-M2"), "tool_auto", True),
    "vLLM": (target("vllm", "qwen3"), "json_schema", False),
    "watsonx": (target("watsonx", "granite"), "prompt", True),
    "somebody": (target("openai-compatible", "x"), "json_schema", False),
}


@pytest.mark.parametrize(("to", "form", "held"), FORMS.values(), ids=FORMS)
def test_each_target_is_asked_as_it_can_be(to: Target, form: str, held: bool) -> None:
    answer = plan(REQUEST, to).answer
    assert answer is not None
    assert (answer.plan.form, answer.held) == (form, held)


def test_a_request_without_a_schema_has_no_plan() -> None:
    assert plan(Request(model="m", messages=ASKED), GPT).answer is None


def test_every_weaker_mode_is_told() -> None:
    told = [one for one in plan(REQUEST, DEEPSEEK).degraded if one.what == "response_format"]
    assert [(one.asked, one.sent) for one in told] == [("schema_enforced", "json_object")]
    assert [one for one in plan(REQUEST, GPT).degraded if one.what == "response_format"] == []


def test_a_tool_is_never_forced_on_a_model_that_thinks() -> None:
    old = target("anthropic", "claude-sonnet-4-20250514")
    thinking = arrived("anthropic_messages", "m", thinking={"type": "enabled", "budget_tokens": 2048})
    for request, form in ((REQUEST, "tool"), (msgspec.structs.replace(thinking, output_format=SHAPE), "tool_auto")):
        attempt = plan(request, old)
        assert attempt.answer is not None
        assert attempt.answer.plan.form == form
    assert asked(attempt)["thinking"]["type"] == "enabled"
    assert asked(attempt)["tools"][0]["name"] == "respond_place"


SPOKEN = {
    "strict and conforming": ("anthropic_messages", SONNET, shape_for("anthropic_messages", PLACE)),
    "not strict, as it came": (
        "openai_chat",
        target("openai-compatible", "x"),
        {"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": {"type": "object"}}}},
    ),
}


@pytest.mark.parametrize(("client", "to", "fields"), SPOKEN.values(), ids=SPOKEN)
def test_who_speaks_the_targets_language_is_sent_on_as_it_came(client: str, to: Target, fields: dict[str, Any]) -> None:
    request = arrived(client, to.model, **fields)
    attempt = plan(request, to)
    assert attempt.answer is not None
    assert attempt.answer.as_asked
    assert asked(attempt).items() >= fields.items()


def test_what_the_target_would_refuse_is_rewritten_for_those_too() -> None:
    numbers = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    attempt = plan(arrived("anthropic_messages", "m", **shape_for("anthropic_messages", numbers)), SONNET)
    assert attempt.answer is not None
    assert not attempt.answer.as_asked
    sent = asked(attempt)["output_config"]["format"]["schema"]
    assert sent["properties"]["n"] != numbers["properties"]["n"]  # type: ignore[index]
    assert not attempt.answer.judge.accepts({"n": 2})


def test_any_object_in_the_targets_own_language_is_nobodys_business() -> None:
    wanted = {"response_format": {"type": "json_object"}}
    assert plan(arrived("openai_chat", "m", **wanted), DEEPSEEK).answer is None
    across = plan(arrived("openai_chat", "m", **wanted), SONNET).answer
    assert across is not None
    assert across.plan.mode == "prompt_guided"
    assert "JSON" in str(across.request.messages[0])


def test_a_turn_that_must_call_the_callers_tool_has_no_answer_to_judge() -> None:
    weather = Tool(name="weather", schema={"type": "object"})
    request = msgspec.structs.replace(REQUEST, tools=(weather,), tool_choice=ToolChoice(mode="required"))
    attempt = plan(request, target("anthropic", "claude-3-5-haiku-latest"))
    assert attempt.answer is not None
    assert not attempt.answer.judged
    assert [tool["name"] for tool in asked(attempt)["tools"]] == ["weather"]


def with_options(**options: Any) -> Request:
    return msgspec.structs.replace(REQUEST, options=BardoOptions(structured=StructuredOptions(**options)))


def test_one_call_may_allow_less_than_the_target_can() -> None:
    attempt = plan(with_options(mode="tool_use_workaround", retries=3), GPT)
    assert attempt.answer is not None
    assert (attempt.answer.plan.mode, attempt.answer.retries) == ("tool_use_workaround", 3)


SETTINGS: dict[str, tuple[StructuredSettings, str, int]] = {
    "as it comes": (StructuredSettings(), "schema_enforced", 1),
    "tools preferred": (StructuredSettings(prefer_schema_enforcement=False), "tool_use_workaround", 1),
    "no second try": (StructuredSettings(retry_on_validation_failure=False), "schema_enforced", 0),
    "off": (StructuredSettings(enabled=False), "none", 0),
}


@pytest.mark.parametrize(("settings", "mode", "retries"), SETTINGS.values(), ids=SETTINGS)
def test_the_configuration_decides(settings: StructuredSettings, mode: str, retries: int) -> None:
    answer = plan(REQUEST, GPT, knowledge=Knowledge(structured=settings)).answer
    assert answer is not None
    assert (answer.plan.mode, answer.retries) == (mode, retries)


def test_without_validation_any_value_will_do() -> None:
    answer = plan(REQUEST, GPT, knowledge=Knowledge(structured=StructuredSettings(validation=False))).answer
    assert answer is not None
    assert answer.judge.accepts({"anything": 1})


def test_what_is_no_schema_is_the_callers_mistake() -> None:
    wrong = msgspec.structs.replace(REQUEST, output_format=msgspec.structs.replace(SHAPE, schema={"type": "nonsense"}))
    with pytest.raises(InvalidRequest) as caught:
        plan(wrong, DEEPSEEK)
    assert caught.value.param == "schema"


def test_the_next_provider_is_asked_by_a_plan_of_its_own() -> None:
    course = attempts(REQUEST, [GPT, DEEPSEEK])
    first = exchanges.begin(course)
    second, _ = exchanges.answer(course, Unreachable("no connection", provider="openai"))
    assert first.answer is not None
    assert second.answer is not None
    assert (first.answer.plan.form, second.answer.plan.form) == ("json_schema", "json_object")


def refused(message: str, status: int = 400) -> UpstreamRefused:
    return UpstreamRefused(message, provider="x", status=status)


UNKNOWN = "This response_format type is unavailable now"


def test_a_refusal_of_the_mode_is_tried_once_in_a_weaker_one_and_remembered() -> None:
    facts, vllm = ModelFacts(), target("vllm", "qwen3")
    course = attempts(REQUEST, [vllm], knowledge=facts.knowledge([vllm]))
    exchanges.begin(course)
    again, lessons = exchanges.answer(course, refused(UNKNOWN))
    assert again.answer is not None
    assert again.answer.plan.form == "json_object"
    with pytest.raises(StopIteration):
        course.send(refused(UNKNOWN))
    for lesson in lessons:
        exchanges.learn(facts, lesson, REQUEST)
    other = target("vllm", "other")
    later = plan(REQUEST, vllm, knowledge=facts.knowledge([vllm], request=REQUEST)).answer
    elsewhere = plan(REQUEST, other, knowledge=facts.knowledge([other], request=REQUEST)).answer
    assert later is not None
    assert elsewhere is not None
    assert (later.plan.form, elsewhere.plan.form) == ("json_object", "json_schema")


def test_a_refusal_of_one_schema_is_not_held_against_the_next() -> None:
    course = attempts(REQUEST, [GPT])
    exchanges.begin(course)
    again, lessons = exchanges.answer(course, refused("Invalid schema for response_format 'place'"))
    assert again.answer is not None
    assert again.answer.plan.form == "json_object"
    assert lessons == []


OTHERS = {"another field": refused("temperature is out of range"), "a limit": refused(UNKNOWN, 429)}


@pytest.mark.parametrize("failure", OTHERS.values(), ids=OTHERS)
def test_a_refusal_of_something_else_changes_nothing(failure: UpstreamRefused) -> None:
    course = attempts(REQUEST, [GPT])
    next(course)
    with pytest.raises(StopIteration):
        course.send(failure)


def test_the_memory_of_refusals_is_bounded() -> None:
    facts = ModelFacts()
    for number in range(5000):
        exchanges.learn(facts, RefusedForm(target_of(number), "json_schema"), REQUEST)
    first, last = ([target_of(number)] for number in (0, 4999))
    assert facts.knowledge(first, request=REQUEST).of(first[0]).refused_forms == frozenset()
    assert facts.knowledge(last, request=REQUEST).of(last[0]).refused_forms == {"json_schema"}
    assert len(facts.lessons.all()) == 4096


def target_of(number: int) -> Target:
    return msgspec.structs.replace(GPT, model=f"m{number}")


def test_asking_again_keeps_the_mode_and_adds_the_turns() -> None:
    first = plan(REQUEST, DEEPSEEK)
    turns = (Message("assistant", (TextBlock("{}"),)), Message("user", (TextBlock("Answer again."),)))
    again = asked_again(first, turns, BUILTIN)
    before, after = asked(first), asked(again)
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert [one["content"] for one in after["messages"][-2:]] == ["{}", "Answer again."]
    assert after["response_format"] == before["response_format"]
    assert not again.forward


def test_asking_again_still_asks_to_leave_out_thinking_that_does_not_hold() -> None:
    binding = Binding(
        format="f", platforms=("deepseek",), models=("*",), ask={"leave_out": True}, headers={"x-beta": "b"}
    )
    first = msgspec.structs.replace(plan(REQUEST, DEEPSEEK), ask=binding)
    again = asked_again(first, (Message("user", (TextBlock("Answer again."),)),), BUILTIN)
    assert asked(again)["leave_out"] is True
    assert again.wire.headers["x-beta"] == "b"
