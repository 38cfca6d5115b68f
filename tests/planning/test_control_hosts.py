"""What hosts of many models are sent for a level, for off and for a budget: one row for each case of their documents."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import sent

BUDGET: dict[str, Any] = {"reasoning": {"max_tokens": 5000}}
Case = tuple[str, str, dict[str, Any], dict[str, Any]]


def level(word: str) -> dict[str, Any]:
    return {"reasoning_effort": word}


def rows(provider: str, model: str, *pairs: tuple[Any, dict[str, Any]]) -> list[Case]:
    return [(provider, model, asked if isinstance(asked, dict) else level(asked), fields) for asked, fields in pairs]


QWEN_ON = {"enable_thinking": True}
ON = {"reasoning": {"enabled": True}}
OFF = {"reasoning": {"enabled": False}}
DOUBAO = {"thinking": {"type": "enabled"}}
NEMOTRON = {"chat_template_kwargs": {"enable_thinking": True}}
CASES: list[Case] = [
    *rows("qwen", "qwen-plus", ("none", {"enable_thinking": False}), (BUDGET, QWEN_ON | {"thinking_budget": 5000})),
    *rows("qwen", "qwen3-235b-a22b-thinking-2507", ("none", {}), ("high", {})),
    *rows(
        "qwen",
        "qwen3.8-max",
        ("none", {"enable_thinking": False}),
        ("high", QWEN_ON | level("xhigh")),
        (BUDGET, QWEN_ON | {"thinking_budget": 5000}),
    ),
    *rows("openrouter", "anthropic/claude-sonnet-4.5", ("none", OFF), (BUDGET, {"reasoning": {"max_tokens": 5000}})),
    *rows("openrouter", "openai/gpt-5.1", ("none", {"reasoning": {"effort": "none"}})),
    *rows("openrouter", "openai/gpt-5", ("none", {"reasoning": {"effort": "minimal"}})),
    *rows("openrouter", "google/gemini-3-pro-preview", ("none", {"reasoning": {"effort": "low"}})),
    *rows("openrouter", "deepseek/deepseek-r1", ("none", {}), ("high", {})),
    *rows("venice", "openai-gpt-oss-120b", ("none", {"reasoning": {"effort": "low"}})),
    *rows("venice", "claude-opus-4-6", ("none", OFF), ("high", {"venice_parameters": {"disable_thinking": False}})),
    *rows("together", "openai/gpt-oss-120b", ("none", level("low")), ("max", level("high"))),
    *rows("together", "deepseek-ai/DeepSeek-V4", ("none", OFF), ("low", level("high")), ("max", level("max"))),
    *rows("together", "Qwen/Qwen3-32B", ("none", OFF), ("high", ON)),
    *rows(
        "fireworks",
        "accounts/fireworks/models/deepseek-v3p2",
        ("none", level("none")),
        ("high", {"thinking": {"type": "enabled"}}),
        (BUDGET, {"thinking": {"type": "enabled"}}),
    ),
    *rows(
        "ark",
        "doubao-seed-1-6-250615",
        ("none", {"thinking": {"type": "disabled"}}),
        ("minimal", DOUBAO | level("minimal")),
        ("max", DOUBAO | level("high")),
    ),
    *rows("perplexity", "sonar-pro", ("high", {})),
    *rows("perplexity", "sonar-reasoning-pro", ("none", level("minimal")), ("max", level("high"))),
    *rows(
        "nvidia-nim",
        "nvidia/nemotron-3-nano",
        ("none", {"chat_template_kwargs": {"enable_thinking": False}}),
        (BUDGET, NEMOTRON | {"nvext": {"max_thinking_tokens": 5000}}),
    ),
    *rows("nvidia-nim", "deepseek-ai/deepseek-v3.1", ("none", {"chat_template_kwargs": {"thinking": False}})),
    *rows("huggingface", "openai/gpt-oss-120b", ("high", level("high"))),
    *rows("bankr", "gpt-5", ("none", level("minimal")), ("xhigh", level("high"))),
    *rows("bankr", "kimi-k2.5", ("none", {"thinking": {"type": "disabled"}})),
    *rows("blockrun", "openai/gpt-5", ("high", level("high"))),
]


@pytest.mark.parametrize(("provider", "model", "asked", "fields"), CASES)
def test_a_host_is_sent_its_own_words(provider: str, model: str, asked: dict[str, Any], fields: dict[str, Any]) -> None:
    assert sent("openai_chat", provider, model, **asked).fields == fields


def turns_off(fields: dict[str, Any]) -> bool:
    return any(word in str(fields) for word in ("False", "disabled", "none"))


NOT_OFF = [
    (provider, model) for provider, model, asked, fields in CASES if asked == level("none") and not turns_off(fields)
]


@pytest.mark.parametrize(("provider", "model"), NOT_OFF)
def test_what_cannot_be_turned_off_is_said(provider: str, model: str) -> None:
    lost = sent("openai_chat", provider, model, **level("none")).lost
    assert ("reasoning", "off") in [(what, asked) for what, asked, _ in lost]
