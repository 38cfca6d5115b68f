"""What providers of Chat Completions are told of thinking, whatever words the client uses for it."""

from __future__ import annotations

from typing import Any

import pytest

from planning.controlled import Sent, sent

Fields = dict[str, Any]
ENABLED: Fields = {"thinking": {"type": "enabled"}}
DISABLED: Fields = {"thinking": {"type": "disabled"}}


def chat(preset: str, model: str, **fields: Any) -> Sent:
    return sent("openai_chat", preset, model, **fields)


def template(**arguments: Any) -> Fields:
    return {"chat_template_kwargs": arguments}


# Providers whose replies reach a client of this dialect as they are.
FORWARDED = ("openai-chat", "deepseek", "qwen", "moonshot")

# The provider's own words, for what its model can do: nothing changes.
AS_THEY_CAME: dict[str, tuple[str, str, Fields]] = {
    "OpenAI": ("openai-chat", "gpt-5.2", {"reasoning_effort": "high"}),
    "OpenAI's off": ("openai-chat", "gpt-5.2", {"reasoning_effort": "none"}),
    "OpenAI without a word": ("openai-chat", "gpt-5.2", {"verbosity": "low"}),
    "DeepSeek's on": ("deepseek", "deepseek-v4-flash", ENABLED),
    "DeepSeek's off": ("deepseek", "deepseek-v4-flash", DISABLED),
    "DeepSeek's level": ("deepseek", "deepseek-v4-flash", {**ENABLED, "reasoning_effort": "max"}),
    "Qwen's on": ("qwen", "qwen-plus", {"enable_thinking": True}),
    "Qwen's off": ("qwen", "qwen-plus", {"enable_thinking": False}),
    "Qwen's budget": ("qwen", "qwen-plus", {"enable_thinking": True, "thinking_budget": 1000}),
    "Kimi's, with words of its own": ("moonshot", "kimi-k2.5", {"thinking": {"type": "enabled", "keep": "all"}}),
    "GLM's, with words of its own": ("zai", "glm-4.6", {"thinking": {"type": "enabled", "clear_thinking": False}}),
    "MiniMax's": ("minimax", "MiniMax-M3", {"thinking": {"type": "adaptive"}}),
    "OpenRouter's level": ("openrouter", "openai/gpt-5", {"reasoning": {"effort": "low", "exclude": True}}),
    "OpenRouter's budget": ("openrouter", "qwen/qwen3.6-27b", {"reasoning": {"max_tokens": 3000, "summary": "auto"}}),
    "OpenRouter's on": ("openrouter", "anthropic/claude-opus-4.8", {"reasoning": {"enabled": True}}),
    "Venice's off": ("venice", "qwen3-6-27b", {"reasoning": {"enabled": False}}),
    "Fireworks' budget": ("fireworks", "accounts/fireworks/models/qwen3-8b", {"thinking": {"type": "enabled", "budget_tokens": 4000}}),
    "vLLM's switch": ("vllm", "Qwen/Qwen3-8B", template(enable_thinking=False, documents=[1])),
    "a switch of a template nobody knows": ("vllm", "my-model", template(thinking=False)),
    "both switches of a template nobody knows": ("vllm", "my-model", template(thinking=True, enable_thinking=True)),
    "a template's switch at any server": ("openai-compatible", "m", template(enable_thinking=False)),
    "a template's other switch at any server": ("openai-compatible", "m", template(thinking=True, thinking_budget=99)),
    "Qwen's switch at any server": ("openai-compatible", "m", {"enable_thinking": False}),
    "Qwen's budget at any server": ("openai-compatible", "m", {"enable_thinking": True, "thinking_budget": 99}),
    "vLLM's budget at any server": ("openai-compatible", "m", {"thinking_token_budget": 99}),
    "Ollama's word at any server": ("openai-compatible", "m", {"think": False}),
    "Ollama's level at any server": ("openai-compatible", "m", {"think": "high"}),
    "DeepSeek's object at any server": ("openai-compatible", "m", DISABLED),
    "a budgeted object at any server": ("openai-compatible", "m", {"thinking": {"type": "enabled", "budget_tokens": 99}}),
    "OpenRouter's object at any server": ("openai-compatible", "m", {"reasoning": {"max_tokens": 4000}}),
    "off at any server": ("openai-compatible", "m", {"reasoning_effort": "none"}),
    "a level no model has, at any server": ("openai-compatible", "m", {"reasoning_effort": "max"}),
    "a switch for a known model at any server": ("openai-compatible", "Qwen/Qwen3-8B", {"enable_thinking": False}),
    "a template's switch for a known model": ("huggingface", "Qwen/Qwen3.5-9B", template(enable_thinking=False)),
    "LM Studio's template": ("lmstudio", "qwen3-8b", template(enable_thinking=False)),
    "any server's level": ("openai-compatible", "m", {"reasoning_effort": "low"}),
}  # fmt: skip


@pytest.mark.parametrize(("preset", "model", "fields"), AS_THEY_CAME.values(), ids=AS_THEY_CAME.keys())
def test_a_providers_own_words_go_on_as_they_came(preset: str, model: str, fields: Fields) -> None:
    told = chat(preset, model, **fields)
    assert (told.fields, told.lost) == (fields, [])


@pytest.mark.parametrize("name", [name for name, (preset, _, _) in AS_THEY_CAME.items() if preset in FORWARDED])
def test_a_body_that_says_it_all_is_forwarded_to_the_letter(name: str) -> None:
    preset, model, fields = AS_THEY_CAME[name]
    told = chat(preset, model, **fields, n=1, parallel_tool_calls=None)
    assert told.attempt.forward
    assert told.fields == {**fields, "n": 1, "parallel_tool_calls": None}, "written anew, it would be without these"


# Words of other servers become the provider's own, and go no further.
TRANSLATED: dict[str, tuple[str, str, Fields, Fields]] = {
    "Ollama's word for levels": ("ollama-openai", "qwen3:4b", {"think": False}, {"reasoning_effort": "none"}),
    "an object for Qwen": ("qwen", "qwen-plus", {"reasoning": {"enabled": False}}, {"enable_thinking": False}),
    "a level for Qwen": ("qwen", "qwen-plus", {"reasoning_effort": "low"}, {"enable_thinking": True, "thinking_budget": 2048}),
    "a level to think at for Qwen": ("qwen", "qwen-plus", {"think": "low"}, {"enable_thinking": True, "thinking_budget": 2048}),
    "Anthropic's shape for Qwen": (
        "qwen",
        "qwen-plus",
        {"thinking": {"type": "enabled", "budget_tokens": 4000}},
        {"enable_thinking": True, "thinking_budget": 4000},
    ),
    "a template's switch for DeepSeek": (
        "deepseek",
        "deepseek-v4-flash",
        template(thinking=False, documents=[1]),
        {**template(documents=[1]), **DISABLED},
    ),
    "a level alone for DeepSeek": (
        "deepseek",
        "deepseek-v4-flash",
        {"reasoning_effort": "high"},
        {**ENABLED, "reasoning_effort": "high"},
    ),
    "a level for OpenRouter's Qwen": (
        "openrouter",
        "qwen/qwen3.6-27b",
        {"reasoning_effort": "low"},
        {"reasoning": {"max_tokens": 2048}},
    ),
    "Qwen's budget for OpenRouter": (
        "openrouter",
        "qwen/qwen3.6-27b",
        {"enable_thinking": True, "thinking_budget": 500},
        {"reasoning": {"max_tokens": 500}},
    ),
    "vLLM's budget": (
        "vllm",
        "Qwen/Qwen3-8B",
        {"thinking_token_budget": 500},
        {"thinking_token_budget": 500, **template(enable_thinking=True)},
    ),
    "a switch by its name in the template": (
        "vllm",
        "deepseek-ai/DeepSeek-V3.1",
        template(enable_thinking=True),
        template(thinking=True),
    ),
    "a template's level": ("vllm", "openai/gpt-oss-20b", template(reasoning_effort="low"), {"reasoning_effort": "low"}),
    "a template's budget for llama-server": (
        "llama-server",
        "qwen3-8b",
        template(thinking_budget=500),
        {
            **template(enable_thinking=True, thinking_budget=500),
            "thinking_budget_tokens": 500,
            "reasoning_budget_tokens": 500,
        },
    ),
    "off where nothing thinks": ("openai-chat", "gpt-4o", {"enable_thinking": False}, {}),
    "shown where nothing must be said": ("openai-chat", "gpt-5.2", {"include_reasoning": True}, {}),
    "hidden turns nothing on": ("qwen", "qwen-plus", {"include_reasoning": False}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("preset", "model", "fields", "expected"), TRANSLATED.values(), ids=TRANSLATED.keys())
def test_words_of_other_servers_become_the_providers_own(
    preset: str, model: str, fields: Fields, expected: Fields
) -> None:
    told = chat(preset, model, **fields)
    assert (told.fields, told.lost) == (expected, [])


LOST: dict[str, tuple[str, str, Fields, Fields, list[tuple[str, Any, Any]]]] = {
    "a budget where levels are taken": (
        "xai",
        "grok-4.3",
        {"reasoning": {"max_tokens": 4000}},
        {"reasoning_effort": "low"},
        [("reasoning_budget", 4000, "low")],
    ),
    "a field of the server's own that the level's budget replaces": (
        "llama-server",
        "qwen3-8b",
        {"reasoning_effort": "low", "thinking_budget_tokens": 99},
        {
            **template(enable_thinking=True, thinking_budget=2048),
            "thinking_budget_tokens": 2048,
            "reasoning_budget_tokens": 2048,
        },
        [("thinking_budget_tokens", 99, 2048)],
    ),
    "a level beside a budget": (
        "qwen",
        "qwen-plus",
        {"reasoning": {"effort": "high", "max_tokens": 500}},
        {"enable_thinking": True, "thinking_budget": 500},
        [("reasoning_effort", "high", None)],
    ),
    "a budget beside a level of the same worth": (
        "deepseek",
        "deepseek-v4-flash",
        {"reasoning": {"effort": "low", "max_tokens": 3000}},
        {**ENABLED, "reasoning_effort": "low"},
        [("reasoning_budget", 3000, "low")],
    ),
    "a level beside off": (
        "deepseek",
        "deepseek-v4-flash",
        {**DISABLED, "reasoning_effort": "high"},
        DISABLED,
        [("reasoning_effort", "high", None)],
    ),
    "a budget beside off": (
        "qwen",
        "qwen-plus",
        {"enable_thinking": False, "thinking_budget": 1000},
        {"enable_thinking": False},
        [("reasoning_budget", 1000, None)],
    ),
    "off where it cannot be": (
        "zai",
        "glm-5.3",
        DISABLED,
        {"reasoning_effort": "low"},
        [("reasoning", "off", "low")],
    ),
    "a level that is not known": (
        "openai-chat",
        "gpt-5.1",
        {"reasoning_effort": "xhigh"},
        {"reasoning_effort": "high"},
        [("reasoning_effort", "xhigh", "high")],
    ),
    "a level where nothing thinks": (
        "openai-chat",
        "gpt-4o",
        {"reasoning_effort": "low"},
        {},
        [("reasoning", "low", None)],
    ),
    "a budget where thinking is on or off": (
        "sglang",
        "Qwen3-8B",
        template(enable_thinking=True, thinking_budget=500),
        template(enable_thinking=True),
        [("reasoning", 500, "on")],
    ),
    "a summary of another form": (
        "openai-chat",
        "gpt-5.2",
        {"reasoning": {"effort": "high", "summary": "auto"}},
        {"reasoning_effort": "high"},
        [("reasoning.summary", "auto", None)],
    ),
    "a summary beside a level that needs no change": (
        "openai-chat",
        "gpt-5.2",
        {"reasoning_effort": "high", "reasoning": {"summary": "auto"}},
        {"reasoning_effort": "high"},
        [("reasoning.summary", "auto", None)],
    ),
    "a sampling parameter": (
        "openai-chat",
        "gpt-5.2",
        {"reasoning_effort": "high", "temperature": 0.5},
        {"reasoning_effort": "high"},
        [("temperature", 0.5, None)],
    ),
}


@pytest.mark.parametrize(("preset", "model", "fields", "expected", "lost"), LOST.values(), ids=LOST.keys())
def test_what_a_model_cannot_do_is_reported(
    preset: str, model: str, fields: Fields, expected: Fields, lost: list[tuple[str, Any, Any]]
) -> None:
    told = chat(preset, model, **fields)
    assert (told.fields, told.lost) == (expected, lost)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("high", {"reasoning_effort": "high"}), ("off", {"reasoning_effort": "none"}), (9000, {"reasoning_effort": "medium"})],
)  # fmt: skip
def test_what_is_asked_of_bardo_goes_first(asked: str | int, expected: Fields) -> None:
    told = chat("openai-chat", "gpt-5.2", reasoning_effort="low", enable_thinking=True, bardo={"reasoning": asked})
    assert told.fields == expected
    assert told.attempt.forward


def test_a_body_that_must_change_is_still_answered_with_the_providers_frames() -> None:
    told = chat("deepseek", "deepseek-v4-flash", reasoning={"enabled": False}, unheard_of=1)
    assert told.fields == {**DISABLED, "unheard_of": 1}
    assert told.attempt.forward


@pytest.mark.parametrize(
    ("preset", "model"),
    [
        ("openrouter", "qwen/qwen3.6-27b"),
        ("qwen", "qwen-plus"),
        ("vllm", "Qwen/Qwen3-32B"),
        ("llama-server", "Qwen3-1.7B"),
        ("nvidia-nim", "nvidia/nemotron-3-nano"),
    ],
)
def test_a_level_leaves_the_answer_half_of_a_small_limit(preset: str, model: str) -> None:
    told = chat(preset, model, reasoning_effort="high", max_tokens=1000)
    assert told.attempt.control is not None
    assert told.attempt.control.budget == 500
    assert ("reasoning_budget", "high", 500) in told.lost


def test_a_template_is_told_by_the_variable_that_it_reads() -> None:
    off, low = {"reasoning_effort": "none"}, {"reasoning_effort": "low"}
    for preset in ("vllm", "sglang", "llama-server"):
        assert chat(preset, "ibm-granite/granite-3.3-8b-instruct", **off).fields == template(thinking=False)
        assert chat(preset, "ByteDance-Seed/Seed-OSS-36B-Instruct", **off).fields == template(thinking_budget=0)
        assert chat(preset, "ByteDance-Seed/Seed-OSS-36B-Instruct", **low).fields == template(thinking_budget=2048)
        assert chat(preset, "moonshotai/Kimi-K2.5", **off).fields == template(thinking=False)
