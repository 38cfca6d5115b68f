"""How a plan comes about: layers, limits, off as a contract, and what makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.catalog.models import BudgetRange, Facts, builtin_models
from bardo.reasoning.control import (
    CannotTurnOff,
    ControlTarget,
    Layer,
    PortableBudgets,
    know,
    nearest_level,
    plan_reasoning,
)
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.request import ReasoningPolicy

LOW = ReasoningPolicy(mode="effort", effort="low")
OFF = ReasoningPolicy(mode="off")
DS4 = ControlTarget("ds4", "openai_chat", "deepseek-v4-flash")
CLAUDE = ControlTarget("anthropic", "anthropic_messages", "claude-sonnet-4-5")
MANDATORY = ControlTarget("openrouter", "openai_chat", "x-ai/grok-4.5")
QWEN = ControlTarget("openrouter", "openai_chat", "qwen/qwen3.6-27b")
ALIASES = Layer("L1", Facts(efforts=("high", "max"), aliases={"low": "high"}), "ds4 alias map")


def budget(tokens: int) -> ReasoningPolicy:
    return ReasoningPolicy(mode="budget", budget=tokens)


def test_live_facts_go_before_the_catalog() -> None:
    plan = plan_reasoning(LOW, DS4, facts=[ALIASES])
    assert plan.fields == {"reasoning_effort": "high"}
    assert (plan.intent, plan.emitted, plan.layer, plan.reason) == ("low", "high", "L1", "ds4 alias map")
    assert plan.degraded[0].asked == "low"


def test_an_operator_goes_before_live_facts() -> None:
    override = Layer("operator", Facts(efforts=("low", "high"), aliases={}), "lab override")
    plan = plan_reasoning(LOW, DS4, facts=[ALIASES, override])
    assert (plan.emitted, plan.layer, plan.reason, plan.degraded) == ("low", "operator", "lab override", ())


def test_a_live_layer_that_is_silent_leaves_the_catalog_to_decide() -> None:
    """OpenRouter says that reasoning is taken, not that only tokens move it: the catalog knows."""
    live = Layer("L1", Facts(efforts=("low", "medium", "high"), off=True), "supported_efforts")
    plan = plan_reasoning(LOW, QWEN, facts=[live])
    assert (plan.fields, plan.layer) == ({"reasoning": {"max_tokens": 2048}}, "L2")


def test_an_operators_levels_are_not_read_by_a_servers_aliases() -> None:
    override = Layer("operator", Facts(efforts=("low", "high")))
    live = Layer("L1", Facts(control=("effort",), efforts=("high",), aliases={"low": "high"}, default_effort="high"))
    found = know(ControlTarget("ds4", "openai_chat", "m"), [override, live])
    # Nor by those of the catalog: they are about other levels.
    assert (found.facts.efforts, found.facts.aliases) == (("low", "high"), None)
    assert found.layers["control"] == "L1"
    assert found.layers.get("default_effort") != "L1"
    assert plan_reasoning(LOW, DS4, facts=[override, live]).fields == {"reasoning_effort": "low"}


def test_an_operators_control_stands_without_what_a_server_says_of_another() -> None:
    override = Layer("operator", Facts(control=("budget",)))
    live = Layer(
        "L1", Facts(control=("effort",), efforts=("high",), aliases={"low": "high"}, form="effort-only", omit="on")
    )
    found = know(ControlTarget("ds4", "openai_chat", "m"), [override, live])
    assert found.facts.control == ("budget",)
    assert {found.layers.get(name) for name in ("efforts", "aliases", "form")}.isdisjoint({"L1"})
    # What is no part of the control is still the server's word.
    assert (found.facts.omit, found.layers["omit"]) == ("on", "L1")


def test_what_an_operator_says_beside_the_control_leaves_the_servers_word() -> None:
    override = Layer("operator", Facts(output_limit=100))
    live = Layer("L1", Facts(control=("effort",), efforts=("high",), aliases={"low": "high"}))
    facts = know(ControlTarget("ds4", "openai_chat", "m"), [override, live]).facts
    assert (facts.efforts, facts.aliases, facts.output_limit) == (("high",), {"low": "high"}, 100)


def test_an_operator_may_name_the_form() -> None:
    target = ControlTarget("moonshot", "openai_chat", "kimi-k9")
    override = Layer("operator", Facts(control=("effort",), efforts=("low",), form="effort-only"))
    plan = plan_reasoning(LOW, target, facts=[override])
    assert (plan.fields, plan.layer) == ({"reasoning_effort": "low"}, "operator")


def test_live_facts_make_an_unknown_model_known() -> None:
    target = ControlTarget("openrouter", "openai_chat", "new/model")
    assert plan_reasoning(LOW, target).unclassified
    assert not plan_reasoning(LOW, target, facts=[Layer("L1", Facts(efforts=("low",)))]).unclassified


def test_an_operators_row_decides_as_the_catalog_does() -> None:
    rows = [{"provider": "openrouter", "match": ["new-model"], "control": ["budget"], "budget": {"min": 10, "max": 20}}]
    target = ControlTarget("openrouter", "openai_chat", "lab/new-model")
    plan = plan_reasoning(LOW, target, models=builtin_models().over(rows))
    assert (plan.fields, plan.layer) == ({"reasoning": {"max_tokens": 20}}, "L2")


@pytest.mark.parametrize(
    ("limit", "asked", "sent"),
    [(4096, 8192, 3072), (4096, 2000, 2000), (1500, 8192, 1024), (3000, 2500, 1976)],
)
def test_a_budget_leaves_the_answer_its_headroom(limit: int, asked: int, sent: int) -> None:
    plan = plan_reasoning(budget(asked), CLAUDE, max_output_tokens=limit)
    assert (plan.budget, plan.max_output_tokens, plan.clamped) == (sent, limit, sent != asked)
    assert [lost.sent for lost in plan.degraded] == ([sent] if sent != asked else [])


def test_the_least_budget_that_leaves_the_answer_little_is_told() -> None:
    plan = plan_reasoning(budget(1024), CLAUDE, max_output_tokens=1500)
    assert (plan.budget, plan.clamped) == (1024, True)
    assert [(lost.what, lost.sent) for lost in plan.degraded] == [("max_output_tokens", 1500)]


def test_the_least_budget_is_sent_where_thinking_cannot_be_off() -> None:
    pro = ControlTarget("gemini", "gemini", "gemini-2.5-pro")
    plan = plan_reasoning(LOW, pro, max_output_tokens=150)
    assert (plan.budget, plan.clamped, plan.degraded[0].sent) == (128, True, 128)


def test_budget_and_limit_in_the_providers_own_words_go_as_they_came() -> None:
    said = {"thinking": {"type": "enabled", "budget_tokens": 31_999}}
    own = ReasoningPolicy(mode="budget", budget=31_999, raw_fields=said)
    plan = plan_reasoning(own, CLAUDE, max_output_tokens=32_000)
    assert (plan.budget, plan.degraded) == (31_999, ())
    other = ReasoningPolicy(mode="budget", budget=31_999, raw_fields={"reasoning": {"max_tokens": 31_999}})
    assert plan_reasoning(other, CLAUDE, max_output_tokens=32_000).budget == 32_000 - 1024


def test_more_headroom_leaves_less_to_thinking() -> None:
    plan = plan_reasoning(budget(8192), CLAUDE, max_output_tokens=10_000, answer_headroom=5000)
    assert plan.budget == 5000


def test_a_limit_without_room_for_the_least_thinking_turns_it_off() -> None:
    plan = plan_reasoning(LOW, CLAUDE, max_output_tokens=1000)
    assert plan.fields == {"thinking": {"type": "disabled"}}
    assert (plan.emitted, plan.thinks, plan.degraded[0].sent) == ("off", False, "off")


def test_a_limit_without_room_where_off_is_impossible_sends_nothing() -> None:
    plan = plan_reasoning(LOW, ControlTarget("gemini", "gemini", "gemini-2.5-pro"), max_output_tokens=100)
    assert (plan.fields, plan.degraded[0].sent) == ({}, None)


def test_a_limit_is_added_where_one_must_be_sent() -> None:
    assert plan_reasoning(LOW, CLAUDE).max_output_tokens == 8192 + 2048
    assert plan_reasoning(None, CLAUDE).max_output_tokens == 8192
    assert plan_reasoning(LOW, QWEN).max_output_tokens is None
    older = ControlTarget("anthropic", "anthropic_messages", "claude-opus-4-1")
    assert plan_reasoning(ReasoningPolicy(mode="effort", effort="max"), older).max_output_tokens == 32_000


def test_the_table_of_budgets_can_be_another() -> None:
    table = PortableBudgets(low=4000)
    assert plan_reasoning(LOW, QWEN, budgets=table).budget == 4000
    responses = ControlTarget("openai", "openai_responses", "gpt-5.2")
    assert plan_reasoning(budget(5900), responses, budgets=table).level == "low"
    assert plan_reasoning(budget(5900), responses).level == "medium"


@pytest.mark.parametrize(
    ("tokens", "level"), [(1, "minimal"), (1536, "low"), (5120, "medium"), (20_480, "high"), (10**9, "max")]
)
def test_a_budget_is_the_nearest_level_and_the_higher_of_two(tokens: int, level: str) -> None:
    assert PortableBudgets().level(tokens) == level


def test_a_level_is_the_closest_not_above_or_the_lowest() -> None:
    assert nearest_level("medium", ("high", "low")) == "low"
    assert nearest_level("minimal", ("medium", "high")) == "medium"


def test_off_where_it_is_impossible_is_the_callers_choice() -> None:
    plan = plan_reasoning(OFF, MANDATORY)
    assert (plan.fields, plan.floored, plan.thinks) == ({"reasoning": {"effort": "low"}}, True, True)
    why = "this model always thinks; this is the least there is"
    assert plan.degraded == (Degradation("reasoning", asked="off", sent="low", why=why),)
    with pytest.raises(CannotTurnOff, match=r"x-ai/grok-4\.5 always thinks") as failed:
        plan_reasoning(OFF, MANDATORY, on_impossible="fail")
    assert not failed.value.reroute
    with pytest.raises(CannotTurnOff) as rerouted:
        plan_reasoning(OFF, MANDATORY, on_impossible="reroute")
    assert rerouted.value.reroute


def test_off_that_is_possible_never_fails() -> None:
    assert plan_reasoning(OFF, QWEN, on_impossible="fail").emitted == "off"
    assert plan_reasoning(OFF, ControlTarget("openai-chat", "openai_chat", "gpt-4o"), on_impossible="fail").fields == {}


def test_an_effort_beside_off_goes_as_far_as_the_model_takes_it() -> None:
    target = ControlTarget("anthropic", "anthropic_messages", "claude-opus-5")
    plan = plan_reasoning(ReasoningPolicy(mode="off", effort="max"), target)
    assert plan.fields == {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}
    assert plan.degraded[0].why == "thinking is off only up to this effort"


def test_effort_and_budget_together_are_said_or_reported() -> None:
    both = ReasoningPolicy(mode="budget", budget=4000, effort="low")
    opus = ControlTarget("anthropic", "anthropic_messages", "claude-opus-4-5")
    assert plan_reasoning(both, opus).fields["output_config"] == {"effort": "low"}
    assert plan_reasoning(both, opus).degraded == ()
    assert [lost.what for lost in plan_reasoning(both, CLAUDE).degraded] == ["reasoning_effort"]
    other = ReasoningPolicy(mode="effort", budget=4000, effort="low")
    assert [lost.what for lost in plan_reasoning(other, CLAUDE).degraded] == ["reasoning_budget"]


@pytest.mark.parametrize(
    "policy",
    [
        ReasoningPolicy(mode="effort", effort="huge"),  # type: ignore[arg-type]
        ReasoningPolicy(mode="effort"),
        ReasoningPolicy(mode="budget"),
        ReasoningPolicy(mode="budget", budget=-1),
    ],
    ids=["unknown level", "no level", "no budget", "negative budget"],
)
def test_a_policy_that_makes_no_sense_is_refused_with_a_hint(policy: ReasoningPolicy) -> None:
    with pytest.raises(InvalidRequest) as refused:
        plan_reasoning(policy, QWEN)
    assert refused.value.hint
    assert refused.value.param


SEEN = ReasoningPolicy(mode="auto", visible=True, enables_thinking=False)


@pytest.mark.parametrize(
    ("show", "fields"),
    [(False, {}), (True, {"thinking": {"type": "adaptive", "display": "summarized"}})],
    ids=["in the target's own language", "in another language"],
)
def test_a_wish_to_see_thinking_wakes_only_who_is_asked_in_another_language(
    show: bool, fields: dict[str, object]
) -> None:
    target = ControlTarget("anthropic", "anthropic_messages", "claude-opus-4-8")
    assert plan_reasoning(SEEN, target, show=show).fields == fields


def test_thinking_that_was_told_to_a_model_without_any_is_reported() -> None:
    told = ReasoningPolicy(mode="auto", raw_fields={"think": True})
    target = ControlTarget("ollama", "ollama", "llama3.1")
    assert [lost.asked for lost in plan_reasoning(told, target).degraded] == ["auto"]
    assert plan_reasoning(told, target, show=True).degraded == ()
    assert plan_reasoning(SEEN, target).degraded == ()


def test_a_budget_above_the_models_range_is_clamped_and_reported() -> None:
    target = ControlTarget("qwen", "openai_chat", "qwen3.8-max")
    plan = plan_reasoning(budget(10**6), target)
    assert (plan.budget, plan.clamped) == (262_144, True)
    assert plan.degraded[0].why == "this model takes at most 262144 tokens"


def test_a_range_from_live_facts_is_the_layer_that_decides() -> None:
    live = Layer("L1", Facts(budget=BudgetRange(min=1, max=500)), "endpoints")
    plan = plan_reasoning(LOW, QWEN, facts=[live])
    assert (plan.budget, plan.layer) == (500, "L1")


def test_what_is_known_may_stand_for_the_target() -> None:
    known = know(DS4, [ALIASES])
    assert plan_reasoning(LOW, known) == plan_reasoning(LOW, DS4, facts=[ALIASES])


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("claude-opus-4-8", {"output_config": {"effort": "low"}}),
        ("claude-opus-4-5", {"output_config": {"effort": "low"}}),
        ("claude-sonnet-4-5", {}),
    ],
)
def test_an_effort_alone_turns_nothing_on_where_the_two_are_said_apart(model: str, fields: dict[str, object]) -> None:
    alone = ReasoningPolicy(mode="effort", effort="low", enables_thinking=False)
    plan = plan_reasoning(alone, ControlTarget("anthropic", "anthropic_messages", model))
    assert (plan.fields, plan.thinks) == (fields, False)
    assert bool(plan.degraded) == (not fields)
    assert plan_reasoning(alone, QWEN).fields == plan_reasoning(LOW, QWEN).fields


@pytest.mark.parametrize(
    ("model", "effort", "fields", "lost"),
    [
        ("claude-sonnet-5-5", None, {"thinking": {"type": "between_tools"}}, []),
        ("claude-sonnet-5-5", "low", {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}}, []),
        ("claude-opus-4-8", None, {"thinking": {"type": "adaptive"}}, [("between_tools", "auto")]),
        ("claude-3-5-haiku", None, {}, [("between_tools", "nothing")]),
    ],
    ids=["as told", "with an effort", "throughout", "not at all"],
)
def test_thinking_between_tools_is_for_models_that_have_it(
    model: str, effort: Any, fields: dict[str, object], lost: list[tuple[str, str]]
) -> None:
    policy = ReasoningPolicy(mode="effort" if effort else "auto", effort=effort, between_tools=True)
    plan = plan_reasoning(policy, ControlTarget("anthropic", "anthropic_messages", model))
    assert plan.fields == fields
    assert [(one.asked, one.sent) for one in plan.degraded] == lost


@pytest.mark.parametrize("model", ["glm-4.6", "gpt-5.2", "MiniMax-M3"])
def test_a_provider_that_has_only_budgets_gets_one(model: str) -> None:
    plan = plan_reasoning(LOW, ControlTarget("lab", "anthropic_messages", model))
    assert plan.fields == {"thinking": {"type": "enabled", "budget_tokens": 2048}}


def test_a_template_that_prints_the_level_as_it_is_takes_one() -> None:
    live = Layer("L1", Facts(control=("effort",)))
    for effort, sent in (("low", "low"), ("high", "high"), ("max", "high"), ("minimal", "low")):
        policy = ReasoningPolicy(mode="effort", effort=effort)  # type: ignore[arg-type]
        plan = plan_reasoning(policy, ControlTarget("llama-server", "openai_chat", "my-model"), facts=[live])
        assert plan.fields == {"reasoning_effort": sent}
        assert plan.clamped == (sent != effort)
