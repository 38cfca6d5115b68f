"""What a caller's words say beside the amount: how thinking is shown, what does not go with off, which switch a template has."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.reasoning.control import ControlTarget, plan_reasoning
from bardo.values.request import ReasoningPolicy


def chat(provider: str, model: str) -> ControlTarget:
    return ControlTarget(provider, "openai_chat", model)


@pytest.mark.parametrize(
    ("target", "visible", "fields"),
    [
        (chat("openai-chat", "gpt-5.2"), True, {}),
        (chat("qwen", "qwen-plus"), True, {}),
        (ControlTarget("gemini", "gemini", "gemini-2.5-flash-lite"), True, {}),
        (chat("openrouter", "openai/gpt-5"), False, {"reasoning": {"exclude": True}}),
        (chat("vllm", "my-model"), False, {"include_reasoning": False}),
    ],
    ids=["OpenAI", "Qwen", "Gemini", "hidden by OpenRouter", "hidden by vLLM"],
)
def test_to_say_how_thinking_is_shown_turns_nothing_on(
    target: ControlTarget, visible: bool, fields: dict[str, Any]
) -> None:
    plan = plan_reasoning(ReasoningPolicy(mode="auto", visible=visible, enables_thinking=False), target)
    assert (plan.fields, plan.degraded) == (fields, ())


@pytest.mark.parametrize(
    ("model", "policy", "fields"),
    [
        ("gpt-5", ReasoningPolicy(mode="auto", visible=True), {"reasoning": {"summary": "auto"}}),
        (
            "gpt-5",
            ReasoningPolicy(mode="auto", visible=True, enables_thinking=False),
            {"reasoning": {"summary": "auto"}},
        ),
        ("gpt-5", ReasoningPolicy(mode="auto", visible=False), {}),
        ("gpt-5", None, {}),
        ("gpt-4o", ReasoningPolicy(mode="auto", visible=True), {}),
    ],
    ids=["as it thinks", "only shown", "hidden", "not asked", "no thinking"],
)
def test_a_summary_is_asked_for_by_who_asks_to_read(
    model: str, policy: ReasoningPolicy | None, fields: dict[str, Any]
) -> None:
    assert plan_reasoning(policy, ControlTarget("openai", "openai_responses", model), show=True).fields == fields


def test_a_budget_beside_off_is_reported() -> None:
    plan = plan_reasoning(ReasoningPolicy(mode="off", budget=500), chat("qwen", "qwen-plus"))
    assert plan.fields == {"enable_thinking": False}
    assert [(lost.what, lost.asked) for lost in plan.degraded] == [("reasoning_budget", 500)]


@pytest.mark.parametrize(
    ("model", "told", "sent"),
    [
        ("my-model", {}, {"enable_thinking": False}),
        ("my-model", {"thinking": False}, {"thinking": False}),
        ("my-model", {"thinking": False, "enable_thinking": False}, {"thinking": False, "enable_thinking": False}),
        ("my-model", {"thinking_budget": 0}, {"enable_thinking": False}),
        ("Qwen/Qwen3-8B", {"thinking": False}, {"enable_thinking": False}),
        ("deepseek-ai/DeepSeek-V3.1", {"enable_thinking": False}, {"thinking": False}),
    ],
    ids=["the usual", "the caller's", "both of the caller's", "no switch", "the row's usual", "the row's own"],
)
def test_a_template_nobody_knows_has_the_switch_the_caller_turned(
    model: str, told: dict[str, Any], sent: dict[str, Any]
) -> None:
    policy = ReasoningPolicy(mode="off", raw_fields={"chat_template_kwargs": told})
    assert plan_reasoning(policy, chat("vllm", model)).fields == {"chat_template_kwargs": sent}
