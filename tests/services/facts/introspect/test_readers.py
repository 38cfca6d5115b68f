"""What each server says of its models' thinking, read: one table of bodies, one of what is no answer."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from bardo.services.facts.introspect.adapters import builtin_adapters
from bardo.services.facts.introspect.answer_values import NotAnAnswer
from bardo.services.facts.introspect.live import NO_THINKING, LiveFacts
from bardo.services.facts.introspect.readers import READERS

PROPS: dict[str, Any] = {"default_generation_settings": {"params": {"reasoning_format": "auto"}, "n_ctx": 4096}}
LEVELS = {"low": {"supported": True}, "high": {"supported": True}, "max": {"supported": False}, "supported": True}
ALWAYS_INSIDE: dict[str, Any] = {"starts_inside": True, "starts_inside_on": True, "starts_inside_off": True}


def openrouter(**row: Any) -> dict[str, Any]:
    return {"models": {"data": [{"id": "m", **row}]}}


def anthropic(**capabilities: Any) -> dict[str, Any]:
    return {"models": {"data": [{"id": "m", "capabilities": capabilities}]}}


def venice(**capabilities: Any) -> dict[str, Any]:
    return {"models": {"data": [{"id": "m", "model_spec": {"capabilities": capabilities}}]}}


def lmstudio(**capabilities: Any) -> dict[str, Any]:
    return {"models": {"models": [{"key": "m", "capabilities": capabilities}]}}


def ds4(context: int = 100_000, **more: Any) -> dict[str, Any]:
    said = {"supported_efforts": ["none", "high", "max"], "aliases": {"low": "high", "high": "high"}, "default": "high"}
    return {"props": {"n_ctx": context, "reasoning": {**said, "think_max_min_context": 393_216, **more}}}


def llama(template: str = "", caps: dict[str, Any] | None = None, **prompts: str) -> dict[str, Any]:
    props = {**PROPS, "chat_template": template or "{{ messages }}", "chat_template_caps": caps or {}}
    return {"props": props, **{name: {"prompt": prompt} for name, prompt in prompts.items()}}


SAID: dict[str, tuple[str, dict[str, Any], LiveFacts]] = {
    "openai-shutdown": (
        "openai",
        {"models": {"data": [{"id": "m", "object": "model", "shutdown_date": "2027-01-31"}]}},
        LiveFacts(shutdown=datetime.date(2027, 1, 31)),
    ),
    "openai-no-day": ("openai", {"models": {"data": [{"id": "m", "shutdown_date": None}]}}, LiveFacts()),
    "openrouter-mandatory-levels": (
        "openrouter",
        openrouter(reasoning={"mandatory": True, "supported_efforts": ["high", "low"], "default_effort": "high"}),
        LiveFacts(control=("effort",), efforts=("low", "high"), default_effort="high", omit="on", off=False),
    ),
    "openrouter-null-is-all-levels": (
        "openrouter",
        openrouter(reasoning={"mandatory": False, "default_enabled": False, "supported_efforts": None}),
        LiveFacts(
            control=("effort", "toggle"),
            efforts=("minimal", "low", "medium", "high", "xhigh", "max"),
            omit="off",
            off=True,
        ),
    ),
    "openrouter-none-stays-a-level": (
        "openrouter",
        openrouter(reasoning={"supported_efforts": ["none", "low"], "supports_max_tokens": True}),
        LiveFacts(control=("effort", "budget"), efforts=("none", "low")),
    ),
    "openrouter-parameters-without-reasoning": ("openrouter", openrouter(supported_parameters=["tools"]), NO_THINKING),
    "openrouter-parameters-alone": ("openrouter", openrouter(supported_parameters=["reasoning"]), LiveFacts()),
    "anthropic-adaptive": (
        "anthropic",
        anthropic(thinking={"supported": True, "types": {"adaptive": {"supported": True}}}, effort=LEVELS),
        LiveFacts(control=("adaptive", "effort"), efforts=("low", "high")),
    ),
    "anthropic-budget-in-plain-flags": (
        "anthropic",
        anthropic(thinking={"supported": True, "types": {"adaptive": False, "enabled": True}}),
        LiveFacts(control=("budget",)),
    ),
    "anthropic-no-thinking": ("anthropic", anthropic(thinking={"supported": False}), NO_THINKING),
    "anthropic-off-is-refused": (
        "anthropic",
        anthropic(
            thinking={
                "supported": True,
                "types": {"disabled": {"supported": False}, "between_tools": {"supported": True}},
            }
        ),
        LiveFacts(off=False, nearest_off="between_tools"),
    ),
    "anthropic-limits": (
        "anthropic",
        {
            "models": {
                "data": [
                    {"id": "m", "max_tokens": 128_000, "max_input_tokens": 9, "retires_at": "2027-01-31T00:00:00Z"}
                ]
            }
        },
        LiveFacts(output_limit=128_000, context=9, shutdown=datetime.date(2027, 1, 31)),
    ),
    "anthropic-no-such-day": ("anthropic", {"models": {"data": [{"id": "m", "retires_at": "soon"}]}}, LiveFacts()),
    "openrouter-limits": (
        "openrouter",
        openrouter(
            reasoning={"mandatory": True}, top_provider={"max_completion_tokens": 64_000}, expiration_date="2027-01-31"
        ),
        LiveFacts(omit="on", off=False, output_limit=64_000, shutdown=datetime.date(2027, 1, 31)),
    ),
    "cerebras-thinks": (
        "cerebras",
        {"models": {"data": [{"id": "m", "supported_features": ["tools", "reasoning"], "max_output_length": 8_000}]}},
        LiveFacts(output_limit=8_000),
    ),
    "cerebras-does-not-think": (
        "cerebras",
        {"models": {"data": [{"id": "m", "supported_features": ["tools"], "context_length": 9}]}},
        LiveFacts(control=("none",), omit="off", context=9),
    ),
    "cerebras-silent": ("cerebras", {"models": {"data": [{"id": "m"}]}}, LiveFacts()),
    "anthropic-older-list": ("anthropic", {"models": {"data": [{"id": "m"}]}}, LiveFacts()),
    "venice-levels": (
        "venice",
        venice(
            supportsReasoning=True,
            supportsReasoningEffort=True,
            reasoningEffortOptions=["none", "low", "high"],
            defaultReasoningEffort="none",
        ),
        LiveFacts(control=("effort",), efforts=("none", "low", "high"), omit="off"),
    ),
    "venice-thinks-without-levels": (
        "venice",
        venice(supportsReasoning=True, supportsReasoningEffort=False),
        LiveFacts(),
    ),
    "venice-no-thinking": ("venice", venice(supportsReasoning=False), NO_THINKING),
    "gemini-thinks": ("gemini", {"models": {"models": [{"name": "models/m", "thinking": True}]}}, LiveFacts()),
    "gemini-no-thinking": ("gemini", {"models": {"models": [{"name": "models/m", "thinking": False}]}}, NO_THINKING),
    "mistral-alias": (
        "mistral",
        {"models": {"data": [{"id": "x", "aliases": ["m"], "capabilities": {"reasoning": False}}]}},
        NO_THINKING,
    ),
    "moonshot-thinks": (
        "moonshot",
        {"models": {"data": [{"id": "m", "supports_reasoning": True, "context_length": 8}]}},
        LiveFacts(context=8),
    ),
    "moonshot-no-thinking": ("moonshot", {"models": {"data": [{"id": "m", "supports_reasoning": False}]}}, NO_THINKING),
    "lmstudio-levels": (
        "lmstudio",
        lmstudio(reasoning={"allowed_options": ["low", "high"], "default": "low"}),
        LiveFacts(control=("effort",), efforts=("low", "high"), default_effort="low", omit="on", off=False),
    ),
    "lmstudio-switch": (
        "lmstudio",
        lmstudio(reasoning={"allowed_options": ["off", "on"], "default": "off"}),
        LiveFacts(control=("toggle",), omit="off", off=True),
    ),
    "lmstudio-no-thinking": ("lmstudio", lmstudio(vision=False), NO_THINKING),
    "vllm-another-name": (
        "vllm",
        {"models": {"data": [{"id": "m", "root": "Qwen/Qwen3-8B", "max_model_len": 4096}]}},
        LiveFacts(known_as="Qwen/Qwen3-8B", context=4096),
    ),
    "sglang-parser": (
        "sglang",
        {"server": {"reasoning_parser": "qwen3", "model_path": "Qwen/Qwen3-8B"}},
        LiveFacts(known_as="Qwen/Qwen3-8B", text_format="qwen3"),
    ),
    "ollama-thinks": (
        "ollama",
        {"show": {"capabilities": ["thinking"], "model_info": {"qwen3.context_length": 40960}}},
        LiveFacts(omit="on", context=40960),
    ),
    "ollama-levels": (
        "ollama",
        {"show": {"capabilities": ["thinking"], "details": {"family": "gptoss"}}},
        LiveFacts(control=("effort",), omit="on"),
    ),
    "ollama-no-thinking": ("ollama", {"show": {"capabilities": ["completion"]}}, NO_THINKING),
    "ds4-small-context": (
        "ds4",
        ds4(),
        LiveFacts(
            control=("effort", "toggle"),
            efforts=("high",),
            aliases={"low": "high", "max": "high"},
            default_effort="high",
            omit="on",
            off=True,
            context=100_000,
        ),
    ),
    "ds4-large-context": (
        "ds4",
        ds4(400_000, effective_default="max"),
        LiveFacts(
            control=("effort", "toggle"),
            efforts=("high", "max"),
            aliases={"low": "high"},
            default_effort="max",
            omit="on",
            off=True,
            context=400_000,
        ),
    ),
    "llama-server-switch-and-open-prompt": (
        "llama-server",
        llama(unsaid="user assistant <think>\n", on="user assistant <think>\n", off="user assistant <think></think>"),
        LiveFacts(
            control=("budget", "toggle"),
            omit="on",
            off=True,
            starts_inside=True,
            starts_inside_on=True,
            starts_inside_off=False,
            text_format="auto",
            context=4096,
        ),
    ),
    "llama-server-off-unless-asked": (
        "llama-server",
        llama(unsaid="user", on="deliberate user", off="user"),
        LiveFacts(
            control=("budget", "toggle"),
            omit="off",
            off=True,
            starts_inside=False,
            starts_inside_on=False,
            starts_inside_off=False,
            text_format="auto",
            context=4096,
        ),
    ),
    "llama-server-always-open": (
        "llama-server",
        llama(unsaid="user <think>", on="user <think>", off="user <think>"),
        LiveFacts(control=("budget",), omit="on", off=False, **ALWAYS_INSIDE, text_format="auto", context=4096),
    ),
    "llama-server-switched-by-words": (
        "llama-server",
        llama("{% if '/no_think' in m %}", unsaid="user <think>", on="user <think>", off="user <think>"),
        LiveFacts(control=("budget",), omit="on", **ALWAYS_INSIDE, text_format="auto", context=4096),
    ),
    "llama-server-levels-of-the-template": (
        "llama-server",
        llama(
            "{% set reasoning_effort = 'medium' %}{% if reasoning_effort == 'low' or reasoning_effort == 'high' %}",
            unsaid="medium",
            on="medium",
            off="medium",
            low="low",
            high="high",
        ),
        LiveFacts(
            control=("effort",),
            efforts=("low", "medium", "high"),
            default_effort="medium",
            starts_inside=False,
            starts_inside_on=False,
            starts_inside_off=False,
            text_format="auto",
            context=4096,
        ),
    ),
    "llama-server-says-that-levels-are-heard": (
        "llama-server",
        llama(caps={"supports_reasoning_effort": True}),
        LiveFacts(control=("effort",), text_format="auto", context=4096),
    ),
    "llama-server-without-renderings": ("llama-server", llama(), LiveFacts(text_format="auto", context=4096)),
}


@pytest.mark.parametrize(("reader", "answers", "facts"), SAID.values(), ids=SAID)
def test_what_a_server_says_is_read(reader: str, answers: dict[str, Any], facts: LiveFacts) -> None:
    assert READERS[reader](answers, "m")["m"] == facts


QUESTIONS = {"ds4": "props", "llama-server": "props", "ollama": "show", "sglang": "server"}
STRANGE = {"a list": [], "a number": 5, "nothing": None, "a text": "<html>", "empty": {}, "error": {"error": "no"}}


@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("reader", sorted(READERS))
def test_what_is_no_answer_is_refused(reader: str, body: Any) -> None:
    if reader == "sglang" and body == {"error": "no"}:
        return  # SGLang's info has no field that must be there.
    with pytest.raises(NotAnAnswer):
        READERS[reader]({QUESTIONS.get(reader, "models"): body}, "m")


HOLES: list[Any] = [None, 7, "x", [], {}, [None], {"supported": "yes"}, {"types": []}]


@pytest.mark.parametrize("hole", HOLES, ids=repr)
@pytest.mark.parametrize("case", SAID, ids=SAID)
def test_a_strange_field_says_nothing_and_breaks_nothing(case: str, hole: Any) -> None:
    reader, answers, _ = SAID[case]
    for changed in _with_holes(answers, hole):
        try:
            found = READERS[reader](changed, "m")
        except NotAnAnswer:
            continue
        assert all(isinstance(facts, LiveFacts) for facts in found.values())


def _with_holes(value: Any, hole: Any) -> list[Any]:
    """Return the value with each of its fields in turn replaced."""
    if isinstance(value, dict):
        return [{**value, name: other} for name, inner in value.items() for other in [hole, *_with_holes(inner, hole)]]
    if isinstance(value, list):
        return [
            [*value[:at], other, *value[at + 1 :]]
            for at, inner in enumerate(value)
            for other in [hole, *_with_holes(inner, hole)]
        ]
    return []


TEMPLATES = {
    "thinking alone": ("{% if thinking %}deliberate {% endif %}user", "thinking", ("budget", "toggle"), "off"),
    "enable_thinking alone": ("{% if enable_thinking %}x{% endif %}", None, ("budget", "toggle"), "off"),
    "a budget": ("{% if thinking_budget is defined %}{{ thinking_budget }}{% endif %}", None, ("budget",), None),
    "none": ("{{ message.thinking }} {{ 'thinking' }}", None, None, None),
}


@pytest.mark.parametrize(("template", "switch", "control", "omit"), TEMPLATES.values(), ids=TEMPLATES)
def test_the_variable_that_the_template_reads_is_the_one_that_is_sent(
    template: str, switch: str | None, control: Any, omit: str | None
) -> None:
    def prompt(**variables: Any) -> dict[str, str]:
        if "message.thinking" in template:
            return {"prompt": "user"}
        read = [name for name in ("enable_thinking", "thinking_budget", "thinking") if name in template]
        return {"prompt": f"user {variables.get(read[0]) or ''}"}

    renderings = {
        "unsaid": prompt(),
        "on": prompt(enable_thinking=True),
        "off": prompt(enable_thinking=False),
        "thinking_on": prompt(thinking=True),
        "thinking_off": prompt(thinking=False),
        "budget": prompt(thinking_budget=512),
    }
    props = {"chat_template": template, "default_generation_settings": {"n_ctx": 10}}
    answers: dict[str, Any] = {"props": props}
    for question in builtin_adapters()["llama-server"].questions:
        if question.name in renderings and question.due(answers):
            answers[question.name] = renderings[question.name]
    said = READERS["llama-server"](answers, "m")["m"]
    assert (said.switch, said.control, said.omit) == (switch, control, omit)
    assert said.form == ("template-budget" if "budget" in template else None)
    assert ("thinking_on" in answers) == (switch == "thinking")
