"""A refusal is read once: what it says is taken, nothing more, and the route remembers it."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from bardo.catalog.models import Facts
from bardo.reasoning.control import (
    CannotTurnOff,
    ControlTarget,
    Layer,
    Repair,
    plan_reasoning,
    repair_refusal,
)
from bardo.values.request import ReasoningPolicy

TODAY = datetime.date(2026, 11, 22)
OFF = ReasoningPolicy(mode="off")


def effort(level: str) -> ReasoningPolicy:
    return ReasoningPolicy(mode="effort", effort=level)  # type: ignore[arg-type]


def budget(tokens: int) -> ReasoningPolicy:
    return ReasoningPolicy(mode="budget", budget=tokens)


def chat(provider: str, model: str) -> ControlTarget:
    return ControlTarget(provider, "openai_chat", model)


def repaired(policy: ReasoningPolicy, target: ControlTarget, error: str, **options: Any) -> Repair | None:
    plan = plan_reasoning(policy, target)
    return repair_refusal(plan, error, status=options.pop("status", 400), date=TODAY, **options)


def test_a_repair_still_turns_nothing_on_for_an_effort_alone() -> None:
    alone = ReasoningPolicy(mode="effort", effort="xhigh", enables_thinking=False)
    claude = ControlTarget("anthropic", "anthropic_messages", "claude-opus-4-8")
    error = "output_config.effort: Input should be 'low', 'medium', 'high' or 'max'"
    repair = repaired(alone, claude, error)
    assert repair is not None
    assert repair.plan.fields == {"output_config": {"effort": "high"}}


SAID = [
    (
        "OpenAI lists levels",
        effort("high"),
        chat("openai-chat", "gpt-5.7"),
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model. Supported values are: 'low' and 'medium'.",
        {"reasoning_effort": "medium"},
    ),
    (
        "OpenAI's list has no none",
        OFF,
        chat("openai-chat", "gpt-5.7"),
        "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'medium', and 'high'.",
        {"reasoning_effort": "low"},
    ),
    (
        "Groq lists levels",
        OFF,
        chat("groq", "new-model"),
        "`reasoning_effort` must be one of `low`, `medium`, or `high`",
        {"reasoning_effort": "low"},
    ),
    (
        "Groq lists a switch",
        effort("low"),
        chat("groq", "new-model"),
        "`reasoning_effort` must be one of `none` or `default`",
        {"reasoning_effort": "default"},
    ),
    (
        "DeepSeek lists variants",
        effort("low"),
        chat("deepseek", "deepseek-v4-flash"),
        "Failed to deserialize: unknown variant `low`, expected one of `high`, `max` at line 1",
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
    ),
    (
        "vLLM and Mistral validate",
        effort("xhigh"),
        chat("vllm", "my-model"),
        "1 validation error: {'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\"}",
        {"reasoning_effort": "high"},
    ),
    (
        "OpenRouter insists",
        OFF,
        chat("openrouter", "new/model"),
        "Reasoning is mandatory for this endpoint and cannot be disabled.",
        {"reasoning": {"effort": "minimal"}},
    ),
    (
        "Gemini names a range",
        OFF,
        ControlTarget("gemini", "gemini", "gemini-2.5-flash"),
        "The thinking budget 0 is invalid. Please choose a value between 128 and 20000.",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 128}}},
    ),
    (
        "Qwen names its most",
        budget(60_000),
        chat("qwen", "qwen-plus"),
        "The thinking_budget parameter must be a positive integer and not greater than 38912",
        {"enable_thinking": True, "thinking_budget": 38_912},
    ),
    (
        "Claude names its least",
        budget(512),
        chat("fireworks", "new-model"),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 4096",
        {"thinking": {"type": "enabled", "budget_tokens": 4096}},
    ),
    (
        "Claude names the newer form",
        effort("low"),
        ControlTarget("anthropic", "anthropic_messages", "my-proxy-model"),
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".',
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ),
    (
        "Gemini takes no budget",
        budget(512),
        ControlTarget("gemini", "gemini", "gemini-2.5-flash"),
        "Thinking budget is not supported for this model.",
        {},
    ),
    (
        "Ollama's model does not think",
        effort("low"),
        ControlTarget("ollama", "ollama", "my-model"),
        '"my-model" does not support thinking',
        {},
    ),
    (
        "xAI takes no level",
        effort("low"),
        chat("xai", "grok-new"),
        "Model grok-new does not support parameter reasoningEffort.",
        {},
    ),
]


@pytest.mark.parametrize(
    ("policy", "target", "error", "fields"), [case[1:] for case in SAID], ids=[case[0] for case in SAID]
)
def test_a_refusal_is_repaired_by_its_own_words(
    policy: ReasoningPolicy, target: ControlTarget, error: str, fields: dict[str, Any]
) -> None:
    repair = repaired(policy, target, error)
    assert repair is not None
    assert repair.plan.fields == fields
    assert repair.plan.repaired


def test_what_was_learned_holds_for_the_next_call_and_has_its_date() -> None:
    target = chat("openai-chat", "gpt-5.7")
    repair = repaired(effort("high"), target, "Supported values are: 'low' and 'medium'.")
    assert repair is not None
    assert repair.fact is not None
    assert (repair.fact.target, repair.fact.date, repair.fact.facts.efforts) == (target, TODAY, ("low", "medium"))
    following = plan_reasoning(effort("high"), target, facts=[repair.fact.layer])
    assert (following.emitted, following.layer, following.reason) == ("medium", "L1", "refused on 2026-11-22")


def test_a_plan_is_repaired_once() -> None:
    error = "Supported values are: 'low' and 'medium'."
    repair = repaired(effort("high"), chat("openai-chat", "gpt-5.7"), error)
    assert repair is not None
    assert repair_refusal(repair.plan, "Supported values are: 'low'.", status=400, date=TODAY) is None


def test_nothing_is_widened() -> None:
    error = "Supported values are: 'minimal', 'low', 'xhigh' and 'max'."
    repair = repaired(effort("high"), chat("openai-chat", "o3"), error)
    assert repair is not None
    assert repair.fact is not None
    assert repair.fact.facts.efforts == ("low",)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("Rate limit reached", 429),
        ("Supported values are: 'low'.", 500),
        ("messages: at least one message is required", 400),
        ("Invalid value for temperature: expected a number", 400),
        ("", 400),
    ],
)
def test_other_refusals_are_left_alone(error: str, status: int) -> None:
    assert repaired(effort("high"), chat("openai-chat", "gpt-5.7"), error, status=status) is None


def test_a_refusal_that_says_nothing_new_is_not_tried_again() -> None:
    error = "Supported values are: 'low', 'medium' and 'high'."
    assert repaired(effort("high"), chat("openai-chat", "o3"), error) is None


def test_a_caller_who_will_not_have_the_least_is_told() -> None:
    error = "Reasoning is mandatory for this endpoint and cannot be disabled."
    with pytest.raises(CannotTurnOff):
        repaired(OFF, chat("openrouter", "new/model"), error, on_impossible="fail")


def test_an_operators_override_stands() -> None:
    override = Layer("operator", Facts(control=("effort",), efforts=("high",)))
    target = chat("openai-chat", "gpt-5.7")
    plan = plan_reasoning(effort("high"), target, facts=[override])
    assert repair_refusal(plan, "Supported values are: 'low'.", status=400, date=TODAY, facts=[override]) is None


BELOW = [
    "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation",
    "max_tokens must be larger than the thinking budget",
    "The thinking_budget parameter must be less than max_tokens",
    "thinking.budget_tokens: must be less than max_tokens (4000)",
    "thinking_budget exceeds max_tokens",
    "reasoning.max_tokens budget must not exceed max_completion_tokens",
]
TELLS_BUDGETS: dict[str, tuple[ControlTarget, dict[str, Any]]] = {
    "claude": (
        ControlTarget("fireworks", "openai_chat", "m"),
        {"thinking": {"type": "enabled", "budget_tokens": 2976}},
    ),
    "qwen": (chat("qwen", "qwen-plus"), {"enable_thinking": True, "thinking_budget": 2976}),
}


@pytest.mark.parametrize("error", BELOW)
@pytest.mark.parametrize(("target", "fields"), TELLS_BUDGETS.values(), ids=TELLS_BUDGETS)
def test_a_budget_goes_below_the_output_limit_for_the_request_that_was_refused_and_teaches_nothing(
    target: ControlTarget, fields: dict[str, Any], error: str
) -> None:
    plan = plan_reasoning(budget(4000), target, max_output_tokens=9000)
    repair = repair_refusal(plan, error, status=400, date=TODAY, max_output_tokens=4000)
    assert repair is not None
    assert repair.fact is None
    assert (repair.plan.fields, repair.plan.emitted, repair.plan.thinks) == (fields, "budget:2976", True)
    assert [(one.what, one.asked, one.sent) for one in repair.plan.degraded] == [("reasoning_budget", 4000, 2976)]


def test_a_budget_that_no_limit_leaves_room_for_is_left_out_of_that_request_alone() -> None:
    target = ControlTarget("fireworks", "openai_chat", "m")
    plan = plan_reasoning(budget(4000), target, max_output_tokens=9000)
    repair = repair_refusal(plan, BELOW[0], status=400, date=TODAY, max_output_tokens=1)
    assert repair is not None
    assert repair.fact is None
    assert "budget_tokens" not in str(repair.plan.fields)


def test_words_that_are_the_callers_repair_nothing() -> None:
    target, error = chat("openai-chat", "gpt-5.7"), "Supported values are: 'low' and 'medium'."
    plan = plan_reasoning(effort("high"), target)
    for quoted in (True, False):
        repair = repair_refusal(plan, error, status=400, date=TODAY, is_quoted=lambda words, quoted=quoted: quoted)  # type: ignore[misc]
        assert (repair is None) is quoted
