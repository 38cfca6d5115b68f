"""What is sent, case by case: the providers' own rules, one line each."""

from __future__ import annotations

from typing import Any

import pytest

from bardo.reasoning.control import ControlPlan, ControlTarget, plan_reasoning
from bardo.values.request import EFFORTS, ReasoningPolicy

OFF = ReasoningPolicy(mode="off")
AUTO = ReasoningPolicy(mode="auto")
PLACES = {
    "claude": ("anthropic", "anthropic_messages"),
    "responses": ("openai", "openai_responses"),
    "chat": ("openai-chat", "openai_chat"),
    "gemini": ("gemini", "gemini"),
    "interactions": ("gemini-interactions", "gemini_interactions"),
    "compat": ("gemini-openai-compat", "openai_chat"),
    "converse": ("bedrock", "bedrock_converse"),
    "cohere": ("cohere", "cohere"),
    "ollama": ("ollama", "ollama"),
    "lmstudio": ("lmstudio", "lmstudio_chat"),
}


def effort(level: str) -> ReasoningPolicy:
    return ReasoningPolicy(mode="effort", effort=level)  # type: ignore[arg-type]


def budget(tokens: int) -> ReasoningPolicy:
    return ReasoningPolicy(mode="budget", budget=tokens)


def target(place: str, model: str) -> ControlTarget:
    return ControlTarget(*PLACES.get(place, (place, "openai_chat")), model)


def sent(place: str, model: str, policy: ReasoningPolicy | None, **options: Any) -> ControlPlan:
    return plan_reasoning(policy, target(place, model), **options)


def adaptive(level: str) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}


def enabled(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def thinking(kind: str, **more: Any) -> dict[str, Any]:
    return {"thinking": {"type": kind}, **more}


def google(**config: Any) -> dict[str, Any]:
    return {"generationConfig": {"thinkingConfig": config}}


def additional(**fields: Any) -> dict[str, Any]:
    return {"additionalModelRequestFields": fields}


def kwargs(**fields: Any) -> dict[str, Any]:
    return {"chat_template_kwargs": fields}


CASES: list[tuple[str, str, str, ReasoningPolicy | None, dict[str, Any]]] = [
    # Anthropic: off by omission up to 4.8, yet said; adaptive from 4.6; budgets refused from 4.7.
    ("Claude 4.5 is turned off by its object", "claude", "claude-sonnet-4-5", OFF, thinking("disabled")),
    ("Claude 4.5 thinks by a budget", "claude", "claude-sonnet-4-5", effort("low"), enabled(2048)),
    ("Claude 4.5 medium", "claude", "claude-sonnet-4-5", effort("medium"), enabled(8192)),
    ("Claude's least budget", "claude", "claude-haiku-4-5", budget(100), enabled(1024)),
    (
        "Opus 4.5 has an effort beside",
        "claude",
        "claude-opus-4-5",
        effort("low"),
        enabled(2048) | {"output_config": {"effort": "low"}},
    ),
    ("Claude 4.6 takes a budget still", "claude", "claude-opus-4-6", budget(5000), enabled(5000)),
    ("Claude 4.6 knows no xhigh", "claude", "claude-sonnet-4-6", effort("xhigh"), adaptive("high")),
    ("Claude 4.6 knows max", "claude", "claude-opus-4-6", effort("max"), adaptive("max")),
    ("Claude 4.7 takes no budget", "claude", "claude-opus-4-7", budget(9000), adaptive("medium")),
    ("Claude 4.8 off is said", "claude", "claude-opus-4-8", OFF, thinking("disabled")),
    ("Claude 4.8 xhigh", "claude", "claude-opus-4-8", effort("xhigh"), adaptive("xhigh")),
    ("Sonnet 5 thinks in silence, so off is said", "claude", "claude-sonnet-5", OFF, thinking("disabled")),
    ("Opus 5.5 has no off", "claude", "claude-opus-5-5", OFF, adaptive("low")),
    ("Fable 5.1 has no off", "claude", "claude-fable-5-1", OFF, adaptive("low")),
    ("Sonnet 5.5 stops between tools at best", "claude", "claude-sonnet-5-5", OFF, thinking("between_tools")),
    ("Haiku 5.5 can be off", "claude", "claude-haiku-5-5", OFF, thinking("disabled")),
    ("Claude decides itself", "claude", "claude-opus-4-8", AUTO, thinking("adaptive")),
    ("Claude without a policy", "claude", "claude-opus-4-8", None, {}),
    # OpenAI: ladders differ by family; `none` from 5.1.
    ("o3 has no minimal", "chat", "o3", effort("minimal"), {"reasoning_effort": "low"}),
    ("gpt-5 has minimal", "chat", "gpt-5", effort("minimal"), {"reasoning_effort": "minimal"}),
    ("gpt-5 has no off", "responses", "gpt-5", OFF, {"reasoning": {"effort": "minimal"}}),
    ("gpt-5-pro has one level", "responses", "gpt-5-pro", effort("low"), {"reasoning": {"effort": "high"}}),
    ("gpt-5.1 has no minimal", "responses", "gpt-5.1", effort("minimal"), {"reasoning": {"effort": "low"}}),
    ("gpt-5.1 off is a level", "chat", "gpt-5.1", OFF, {"reasoning_effort": "none"}),
    ("gpt-5.1 must be woken", "chat", "gpt-5.1", AUTO, {"reasoning_effort": "medium"}),
    ("gpt-5.4 has xhigh, not max", "chat", "gpt-5.4", effort("max"), {"reasoning_effort": "xhigh"}),
    ("gpt-5.5-pro starts at medium", "responses", "gpt-5.5-pro", effort("low"), {"reasoning": {"effort": "medium"}}),
    ("gpt-5.6 has max", "responses", "gpt-5.6-sol", effort("max"), {"reasoning": {"effort": "max"}}),
    ("gpt-6-astra has no off", "responses", "gpt-6-astra", OFF, {"reasoning": {"effort": "low"}}),
    ("OpenAI takes no budget", "responses", "gpt-5.2", budget(2048), {"reasoning": {"effort": "low"}}),
    ("gpt-4o does not think", "chat", "gpt-4o", effort("high"), {}),
    # Gemini: budgets up to 2.5, levels since; never both.
    ("2.5 Pro has no off", "gemini", "gemini-2.5-pro", OFF, google(thinkingBudget=128)),
    ("2.5 Pro ends at 32768", "gemini", "gemini-2.5-pro", budget(50_000), google(thinkingBudget=32_768)),
    ("2.5 Flash is off at 0", "gemini", "gemini-2.5-flash", OFF, google(thinkingBudget=0)),
    ("2.5 Flash ends at 24576", "gemini", "gemini-2.5-flash", effort("high"), google(thinkingBudget=24_576)),
    ("Flash-Lite starts at 512", "gemini", "gemini-2.5-flash-lite", budget(100), google(thinkingBudget=512)),
    ("Flash-Lite must be woken", "gemini", "gemini-2.5-flash-lite", AUTO, google(thinkingBudget=-1)),
    ("3 Pro has no medium", "gemini", "gemini-3-pro-preview", effort("medium"), google(thinkingLevel="low")),
    ("3 Flash has minimal as its floor", "gemini", "gemini-3-flash-preview", OFF, google(thinkingLevel="minimal")),
    ("3.8 Flash refuses minimal", "gemini", "gemini-3.8-flash", effort("minimal"), google(thinkingLevel="low")),
    ("a level model takes no budget", "gemini", "gemini-3.5-flash", budget(8000), google(thinkingLevel="medium")),
    ("Gemma refuses even a budget of 0", "gemini", "gemma-3-27b-it", OFF, {}),
    (
        "Interactions has levels for all",
        "interactions",
        "gemini-2.5-flash",
        effort("low"),
        {"generation_config": {"thinking_level": "low"}},
    ),
    (
        "Interactions wakes Flash-Lite by a level",
        "interactions",
        "gemini-2.5-flash-lite",
        AUTO,
        {"generation_config": {"thinking_level": "medium"}},
    ),
    (
        "the compatible route takes Google's budget",
        "compat",
        "gemini-2.5-flash",
        budget(4096),
        {"extra_body": {"google": {"thinking_config": {"thinking_budget": 4096}}}},
    ),
    # DeepSeek, Qwen, Moonshot, Z.ai, MiniMax, Ark.
    ("DeepSeek off", "deepseek", "deepseek-v4-flash", OFF, thinking("disabled")),
    (
        "DeepSeek medium acts as high",
        "deepseek",
        "deepseek-v4-flash",
        effort("medium"),
        thinking("enabled", reasoning_effort="high"),
    ),
    (
        "DeepSeek minimal acts as low",
        "deepseek",
        "deepseek-v4-flash",
        effort("minimal"),
        thinking("enabled", reasoning_effort="low"),
    ),
    ("Qwen off", "qwen", "qwen3.6-plus", OFF, {"enable_thinking": False}),
    ("Qwen thinks by a budget", "qwen", "qwen-plus", effort("low"), {"enable_thinking": True, "thinking_budget": 2048}),
    (
        "Qwen3.8 has levels",
        "qwen",
        "qwen3.8-max",
        effort("medium"),
        {"enable_thinking": True, "reasoning_effort": "medium"},
    ),
    (
        "Qwen3.8 a budget without a level",
        "qwen",
        "qwen3.8-max",
        budget(3000),
        {"enable_thinking": True, "thinking_budget": 3000},
    ),
    ("Kimi K2.5 is on or off", "moonshot", "kimi-k2.5", effort("low"), thinking("enabled")),
    ("Kimi K3 has no off and no medium", "moonshot", "kimi-k3", effort("medium"), {"reasoning_effort": "low"}),
    ("Kimi Code refuses none", "kimi-code", "kimi-for-coding", OFF, {"reasoning_effort": "minimal"}),
    ("GLM 4.6 off", "zai", "glm-4.6", OFF, thinking("disabled")),
    ("GLM 5.2 has high and max", "zai", "glm-5.2", effort("low"), thinking("enabled", reasoning_effort="high")),
    ("GLM 5.3 has no off", "zai", "glm-5.3", OFF, {"reasoning_effort": "low"}),
    ("MiniMax M3 on", "minimax", "MiniMax-M3", effort("high"), thinking("adaptive")),
    ("MiniMax M2 takes nothing", "minimax", "MiniMax-M2.5", effort("high"), {}),
    ("Ark decides itself", "ark", "doubao-seed-1-8", AUTO, thinking("auto")),
    # Hosts and gateways: the maker's facts, the host's form.
    (
        "OpenRouter's Qwen honours tokens only",
        "openrouter",
        "qwen/qwen3.6-27b",
        effort("low"),
        {"reasoning": {"max_tokens": 2048}},
    ),
    ("OpenRouter's GPT honours levels", "openrouter", "openai/gpt-5", budget(4096), {"reasoning": {"effort": "low"}}),
    (
        "OpenRouter's gpt-5.1 refuses enabled:false",
        "openrouter",
        "openai/gpt-5.1",
        OFF,
        {"reasoning": {"effort": "none"}},
    ),
    ("OpenRouter's Claude off", "openrouter", "anthropic/claude-opus-4.8", OFF, {"reasoning": {"enabled": False}}),
    ("OpenRouter's Grok is mandatory", "openrouter", "x-ai/grok-4.5", OFF, {"reasoning": {"effort": "low"}}),
    ("Venice off", "venice", "qwen3-6-27b", OFF, {"reasoning": {"enabled": False}}),
    (
        "Venice's Claude has no levels",
        "venice",
        "claude-opus-4-6",
        effort("low"),
        {"venice_parameters": {"disable_thinking": False}},
    ),
    ("Bankr takes Claude's own object", "bankr", "claude-opus-4.8", effort("low"), adaptive("low")),
    (
        "BlockRun's bridge forwards two fields",
        "blockrun",
        "anthropic/claude-opus-4.8",
        effort("low"),
        {"reasoning_effort": "low"},
    ),
    ("Groq's gpt-oss has no off", "groq", "openai/gpt-oss-120b", OFF, {"reasoning_effort": "low"}),
    ("Groq's Qwen is on or off", "groq", "qwen/qwen3-32b", effort("high"), {"reasoning_effort": "default"}),
    ("Groq's Qwen off", "groq", "qwen/qwen3-32b", OFF, {"reasoning_effort": "none"}),
    ("xAI 4.3 off is a level", "xai", "grok-4.3", OFF, {"reasoning_effort": "none"}),
    ("xAI 4.20 takes no level at all", "xai", "grok-4.20-0309-reasoning", effort("low"), {}),
    ("xAI 4.5 has no off", "xai", "grok-4.5", OFF, {"reasoning_effort": "low"}),
    ("Mistral has none and high", "mistral", "mistral-small-2603", effort("low"), {"reasoning_effort": "high"}),
    ("Magistral takes an effort", "mistral", "magistral-medium-latest", effort("low"), {"reasoning_effort": "high"}),
    (
        "Cohere's budget",
        "cohere",
        "command-a-reasoning-08-2025",
        effort("low"),
        thinking("enabled") | {"thinking": {"type": "enabled", "token_budget": 2048}},
    ),
    ("Cerebras' GLM off", "cerebras", "zai-glm-4.7", OFF, {"reasoning_effort": "none"}),
    (
        "Fireworks' Qwen takes a budget",
        "fireworks",
        "accounts/fireworks/models/qwen3p6-plus",
        budget(2000),
        enabled(2000),
    ),
    ("Together off", "together", "deepseek-ai/DeepSeek-V4", OFF, {"reasoning": {"enabled": False}}),
    (
        "Bedrock's Claude by tokens",
        "converse",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        effort("low"),
        additional(**enabled(2048)),
    ),
    (
        "Bedrock's newer Claude",
        "converse",
        "us.anthropic.claude-opus-4-8",
        effort("low"),
        additional(**adaptive("low")),
    ),
    ("Bedrock's gpt-oss", "converse", "openai.gpt-oss-120b-1:0", effort("high"), additional(reasoning_effort="high")),
    ("Bedrock's Qwen is off by a level", "converse", "qwen.qwen3-32b-v1:0", OFF, additional(reasoning_config="none")),
    ("Bedrock's Qwen", "converse", "qwen.qwen3-32b-v1:0", effort("high"), additional(reasoning_config="high")),
    (
        "Nova 2",
        "converse",
        "us.amazon.nova-2-lite-v1:0",
        effort("low"),
        additional(reasoningConfig={"type": "enabled", "maxReasoningEffort": "low"}),
    ),
    ("Perplexity", "perplexity", "sonar-reasoning-pro", effort("xhigh"), {"reasoning_effort": "high"}),
    ("sonar does not think", "perplexity", "sonar", effort("low"), {}),
    # Servers of one's own.
    ("vLLM's Qwen off", "vllm", "Qwen/Qwen3-32B", OFF, kwargs(enable_thinking=False)),
    ("vLLM's DeepSeek has another switch", "vllm", "deepseek-ai/DeepSeek-V3.1", OFF, kwargs(thinking=False)),
    (
        "vLLM's budget stands at the top",
        "vllm",
        "Qwen/Qwen3-32B",
        budget(512),
        kwargs(enable_thinking=True) | {"thinking_token_budget": 512},
    ),
    ("vLLM's gpt-oss", "vllm", "openai/gpt-oss-20b", effort("low"), {"reasoning_effort": "low"}),
    ("SGLang has no budget", "sglang", "Qwen/Qwen3-32B", budget(512), kwargs(enable_thinking=True)),
    ("llama-server off", "llama-server", "Qwen3-1.7B-Q4_K_M", OFF, kwargs(enable_thinking=False)),
    (
        "llama-server's budget",
        "llama-server",
        "Qwen3-1.7B-Q4_K_M",
        budget(512),
        kwargs(enable_thinking=True, thinking_budget=512)
        | {"thinking_budget_tokens": 512, "reasoning_budget_tokens": 512},
    ),
    ("Ollama's switch", "ollama", "qwen3:4b", effort("low"), {"think": True}),
    ("a model Ollama alone knows", "ollama", "mine", effort("xhigh"), {"think": "max"}),
    ("Ollama's gpt-oss ignores booleans", "ollama", "gpt-oss:20b", OFF, {"think": "low"}),
    ("Ollama's other route drops think", "ollama-openai", "qwen3:4b", OFF, {"reasoning_effort": "none"}),
    ("LM Studio's own route", "lmstudio", "qwen3-8b", OFF, {"reasoning": "off"}),
    ("ds4 low acts as high", "ds4", "deepseek-v4-flash", effort("low"), {"reasoning_effort": "high"}),
    ("ds4 off", "ds4", "deepseek-v4-flash", OFF, {"think": False}),
    (
        "NIM's budget",
        "nvidia-nim",
        "nvidia/nemotron-3-nano",
        budget(512),
        kwargs(enable_thinking=True) | {"nvext": {"max_thinking_tokens": 512}},
    ),
]


@pytest.mark.parametrize(
    ("place", "model", "policy", "fields"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_policy_is_written_as_the_model_honours_it(
    place: str, model: str, policy: ReasoningPolicy | None, fields: dict[str, Any]
) -> None:
    assert sent(place, model, policy).fields == fields


# How each level was to be normalised: Venice, a Claude that takes budgets, OpenAI. The tokens are those of the portable budgets.
NORMALISED = {
    "low": ("low", 2048, "low"),
    "medium": ("medium", 8192, "medium"),
    "high": ("high", 32_768, "high"),
    "max": ("xhigh", 65_536, "xhigh"),
}


@pytest.mark.parametrize("level", NORMALISED)
def test_the_levels_of_the_profile_table(level: str) -> None:
    venice, claude, openai = NORMALISED[level]
    assert sent("venice", "openai-gpt-52", effort(level)).fields == {"reasoning": {"effort": venice}}
    assert sent("claude", "claude-sonnet-4-5", effort(level), max_output_tokens=100_000).fields == enabled(claude)
    assert sent("chat", "gpt-5.2", effort(level)).fields == {"reasoning_effort": openai}


def test_no_thinking_in_the_profile_table() -> None:
    assert sent("venice", "openai-gpt-52", OFF).emitted == sent("chat", "gpt-5.2", OFF).emitted == "off"
    assert sent("claude", "claude-sonnet-4-5", OFF).fields == thinking("disabled")


def test_a_budget_of_nothing_is_off() -> None:
    assert sent("qwen", "qwen-plus", budget(0)).fields == sent("qwen", "qwen-plus", OFF).fields


@pytest.mark.parametrize("level", EFFORTS)
def test_one_level_is_one_budget_at_every_provider_that_takes_tokens(level: str) -> None:
    limit = {"max_output_tokens": 200_000}
    claude = sent("claude", "claude-sonnet-4-5", effort(level), **limit)
    assert claude.budget == sent("qwen", "qwen-plus", effort(level), **limit).budget
    assert claude.budget == sent("openrouter", "qwen/qwen3.6-27b", effort(level), **limit).budget


def test_a_model_that_no_row_knows_gets_the_static_form_and_says_so() -> None:
    plan = sent("openrouter", "inception/mercury-2", effort("low"))
    assert (plan.fields, plan.layer, plan.reason) == ({"reasoning": {"effort": "low"}}, "L3", "unclassified")
    assert sent("openrouter", "inception/mercury-2", budget(4096)).fields == {"reasoning": {"max_tokens": 4096}}
    assert sent("claude", "claude-next-9", effort("low")).unclassified


def test_thinking_that_can_be_read_is_asked_for_where_it_would_be_hidden() -> None:
    shown = sent("claude", "claude-opus-4-8", effort("low"), show=True)
    assert shown.fields["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "display" not in sent("claude", "claude-sonnet-4-5", effort("low"), show=True).fields["thinking"]
    assert sent("responses", "gpt-5", effort("low"), show=True).fields["reasoning"]["summary"] == "auto"
    assert sent("gemini", "gemini-2.5-pro", None, show=True).fields == google(includeThoughts=True)
    assert sent("gemini", "gemini-2.5-flash", OFF, show=True).fields == google(thinkingBudget=0)
    assert sent("gemini", "gemma-3-27b-it", None, show=True).fields == {}
    assert sent("gemini", "gemini-2.5-pro", OFF, show=True).fields == google(thinkingBudget=128)


@pytest.mark.parametrize(
    ("place", "model", "field"),
    [
        ("openrouter", "openai/gpt-5", {"reasoning": {"effort": "low", "exclude": True}}),
        ("groq", "openai/gpt-oss-120b", {"reasoning_effort": "low", "include_reasoning": False}),
        ("cerebras", "gpt-oss-120b", {"reasoning_effort": "low", "reasoning_format": "hidden"}),
        ("vllm", "openai/gpt-oss-20b", {"reasoning_effort": "low", "include_reasoning": False}),
        ("gemini", "gemini-3.5-flash", google(thinkingLevel="low", includeThoughts=False)),
        (
            "interactions",
            "gemini-3.5-flash",
            {"generation_config": {"thinking_level": "low", "thinking_summaries": "none"}},
        ),
        (
            "venice",
            "openai-gpt-52",
            {"reasoning": {"effort": "low"}, "venice_parameters": {"strip_thinking_response": True}},
        ),
    ],
)
def test_thinking_that_is_not_wanted_is_hidden(place: str, model: str, field: dict[str, Any]) -> None:
    policy = ReasoningPolicy(mode="effort", effort="low", visible=False)
    assert sent(place, model, policy).fields == field


def test_older_nemotron_models_are_told_in_the_system_prompt() -> None:
    assert sent("nvidia-nim", "nvidia/llama-3.3-nemotron-super-49b-v1", OFF).system_text == "detailed thinking off"
    assert sent("vllm", "nvidia/llama-3.3-nemotron-super-49b-v1", effort("low")).system_text == "detailed thinking on"
