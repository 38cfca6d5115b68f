"""A model that no row is about is taken to be like the newest one of its line, and is marked as assumed."""

from __future__ import annotations

import pytest

from bardo.catalog.models import API_FIELDS, Facts, Models, builtin_models
from bardo.reasoning.control import ControlTarget, plan_reasoning
from bardo.values.errors import ConfigError
from bardo.values.request import ReasoningPolicy
from support.offenders import each_case

LINES = [
    ("anthropic", "claude-opus-5-2", "claude-opus-5-5"),
    ("anthropic", "claude-opus-6-20270101", "claude-opus-5-5"),
    ("anthropic", "claude-sonnet-6", "claude-sonnet-5-5"),
    ("anthropic", "claude-haiku-7", "claude-haiku-5-5"),
    ("anthropic", "claude-fable-5-3", "claude-fable-5-2"),
    ("bedrock", "us.anthropic.claude-opus-6-v1:0", "claude-opus-5-5"),
    ("openai", "gpt-5.7", "gpt-5.6-sol"),
    ("openai", "gpt-5.7-mini", "gpt-5.6-sol"),
    ("openai", "gpt-7", "gpt-6.2-sol"),
    ("openai", "gpt-6.3-terra", "gpt-6.1-terra"),
    ("openai", "gpt-5.6-codex", "gpt-5.3-codex"),
    ("openai", "o5", "o4-mini"),
    ("openai", "o5-mini-2027-01-01", "o4-mini"),
    ("google", "gemini-5-pro", "gemini-3.1-pro"),
    ("google", "gemini-4.5-flash", "gemini-3.8-flash"),
    ("xai", "grok-5", "grok-4.7"),
    ("xai", "grok-4.8-fast", "grok-4.7"),
    ("qwen", "qwen4-max", "qwen3.8-max"),
    ("qwen", "qwen3.9-max", "qwen3.8-max"),
    ("qwen", "qwen3.10-plus", "qwen3.7"),
    ("openrouter", "qwen/qwen3.9-plus", "qwen3.7"),
    ("vllm", "Qwen/Qwen4-32B", "qwen3.7"),
    ("deepseek", "deepseek-v5", "deepseek-v4"),
    ("moonshot", "kimi-k4", "kimi-k3"),
    ("moonshot", "kimi-k2.8", "kimi-k2.6"),
    ("zai", "glm-6", "glm-5.3"),
    ("mistral", "mistral-large-5", "mistral-large-4"),
    ("mistral", "mistral-medium-4", "mistral-medium-3.5"),
    ("minimax", "MiniMax-M4", "minimax-m3"),
    ("cohere", "command-b-reasoning", "command-a-plus-05-2026"),
    ("amazon", "nova-3-pro", "nova-2"),
    ("zai", "glm-4.9", "glm-4.7"),
    ("zai", "glm-4.9-air", "glm-4.7"),
    ("minimax", "minimax-h1", "minimax-m3"),
    ("moonshot", "moonshot-v2-128k", "moonshot-v1"),
    ("openai", "computer-use-2", "computer-use-preview"),
    ("xai", "grok-5-fast-non-reasoning", "grok-2"),
    ("xai", "grok-code-2", "grok-code-fast"),
]


@each_case("owner, model, like", LINES, ids=[case[1] for case in LINES])
def test_a_new_model_has_the_facts_of_the_newest_of_its_line(owner: str, model: str, like: str) -> None:
    found = builtin_models().find(owner, model)
    newest = builtin_models().find(owner, like)
    assert found.how == "assumed"
    assert found.row is not None
    assert newest.row is not None
    assert found.row.like == like
    assert found.maker == newest.maker
    kept = {name for name in Facts.__struct_fields__ if name not in API_FIELDS} - {"shutdown"}
    assert {name: getattr(found.row, name) for name in kept} == {name: getattr(newest.row, name) for name in kept}


@pytest.mark.parametrize(
    ("provider", "model", "fields"),
    [
        ("openai", "gpt-5.7", {"reasoning": {"effort": "xhigh"}}),
        ("openai", "gpt-8-sol", {"reasoning": {"effort": "xhigh"}}),
        ("xai-responses", "grok-5", {"reasoning": {"effort": "xhigh"}}),
    ],
)
def test_no_level_is_clamped_that_the_newest_model_takes(provider: str, model: str, fields: dict[str, object]) -> None:
    asked = ReasoningPolicy(mode="effort", effort="xhigh")
    plan = plan_reasoning(asked, ControlTarget(provider, "openai_responses", model))
    assert (plan.fields, plan.layer, plan.reason, plan.clamped) == (fields, "L3", "assumed", False)
    assert plan.assumed == plan.like != ""


NEW = {
    "anthropic": "claude-{line}-{n}|claude-{line}-{n}-{m}|claude-{line}-{n}-20270301",
    "openai": "gpt-{n}|gpt-{n}.{m}|gpt-{n}-mini|gpt-{n}.{m}-nano|o{n}|o{n}-mini|gpt-{n}-codex",
    "google": "gemini-{n}-pro|gemini-{n}.{m}-flash|gemini-{n}-flash-lite-preview",
    "deepseek": "deepseek-v{n}|deepseek-v{n}.{m}|deepseek-r{n}",
    "qwen": "qwen{n}-plus|qwen{n}.{m}-max|qwen{n}-{m}2b|qwen{n}-vl-plus",
    "xai": "grok-{n}|grok-{n}.{m}|grok-{n}-fast|grok-{n}-mini",
    "mistral": "mistral-large-{n}|mistral-medium-{n}|mistral-small-{n}",
    "moonshot": "kimi-k{n}|kimi-k{n}.{m}|kimi-k{n}-code|moonshot-v{n}",
    "zai": "glm-{n}|glm-{n}.{m}|glm-{n}-air|glm-{n}v",
    "minimax": "MiniMax-M{n}|MiniMax-M{n}.{m}|minimax-h{n}",
    "amazon": "amazon.nova-{n}-pro-v1:0|amazon.nova-{n}-lite-v1:0",
}
"""How makers name their models, and likely names of the next ones."""


def new_ids() -> list[tuple[str, str]]:
    """Return ids of numbers that no row is about."""
    numbered = [
        (maker, shape.format(line=line, n=n, m=m))
        for maker, shapes in NEW.items()
        for shape in shapes.split("|")
        for line in (("opus", "sonnet", "haiku", "fable", "mythos") if "{line}" in shape else ("",))
        for n in (6, 7, 8, 9)
        for m in (1, 4, 9)
    ]
    known = {glob for row in builtin_models().rows for glob in row.match if not row.assumed}
    return [one for one in dict.fromkeys(numbered) if one[1].lower() not in known]


@pytest.mark.parametrize("maker", NEW)
def test_likely_names_of_new_models_have_a_line(maker: str) -> None:
    models = builtin_models()
    found = {model: models.find(maker, model) for owner, model in new_ids() if owner == maker}
    assert len(found) > 5
    assert {one.how for one in found.values()} - {"assumed", "glob", "exact", "resolved"} == set()
    # What no row is about thinks as its line does: only a line that never thought gives one that does not.
    silent = {name for name, one in found.items() if one.row is not None and one.row.control == ("none",)}
    assert {name for name in silent if not name.startswith("moonshot-")} == set()


NO_CHAT = {
    "openai": "gpt-7-realtime gpt-7-transcribe gpt-7-audio gpt-image-4 gpt-7-tts whisper-3 sora-4 text-embedding-5 omni-moderation-2",
    "google": "gemini-5-flash-tts gemini-embedding-3 imagen-6 veo-5 lyria-4 gemini-5-native-audio",
    "qwen": "qwen4-tts-flash qwen4-asr qwen-image-4 qwen-mt-flash wan4-t2v text-embedding-v6 qwen4-rerank qwen3-livetranslate-flash",
    "xai": "grok-imagine-3 grok-5-image grok-voice-2",
    "mistral": "mistral-ocr-5 mistral-embed-3 mistral-moderation-4",
    "cohere": "embed-v6 rerank-v5",
    "zai": "glm-ocr-2 glm-image-2 cogview-6 glm-asr-2",
    "minimax": "speech-4-hd hailuo-4 music-4",
    "ark": "doubao-seedream-7 doubao-seedance-4 doubao-embedding-3",
    "deepseek": "deepseek-ocr-3",
    "amazon": "amazon.nova-3-sonic-v1:0 amazon.nova-canvas-v3:0 amazon.nova-reel-v3:0 amazon.titan-embed-text-v4:0",
    "nvidia": "nvidia/llama-nemotron-embed-3 nvidia/nemotron-parse-3",
}


@each_case("maker, model", [(maker, one) for maker, ids in NO_CHAT.items() for one in ids.split()])
def test_models_that_do_not_chat_are_told_nothing_of_thinking(maker: str, model: str) -> None:
    row = builtin_models().find(maker, model).row
    assert row is not None
    assert row.control == ("none",)


@pytest.mark.parametrize(
    ("provider", "model"), [("anthropic", "claude-opus-5-20260601"), ("openai", "gpt-5-2025-08-07")]
)
def test_a_date_is_no_new_model(provider: str, model: str) -> None:
    assert builtin_models().find(provider, model).how == "resolved"


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("ft:gpt-4o-mini-2024-07-18:acme::id", "gpt-4o-mini"),
        ("ft:gpt-4.1-nano-2025-04-14:acme:name:id", "gpt-4.1-nano"),
        ("ft:o4-mini-2025-04-16:acme::id", "o4-mini"),
    ],
)
def test_a_tuned_model_is_the_model_that_was_tuned(model: str, meant: str) -> None:
    assert builtin_models().find("openai", model).id == meant
    assert builtin_models().find("openai", model).row == builtin_models().find("openai", meant).row


def test_a_row_that_is_like_no_model_is_named() -> None:
    with pytest.raises(ConfigError, match=r"lab-9.*lab-8"):
        Models([{"provider": "lab", "match": ["lab-9"], "like": "lab-8"}], sources=(), spellings=())
