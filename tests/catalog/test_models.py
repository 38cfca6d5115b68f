"""A model id means a row, however it is spelled where the model is served."""

from __future__ import annotations

import datetime
import re

import pytest

from bardo.catalog.forms import builtin_forms
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.models import FoundModel, builtin_models
from bardo.values.errors import ConfigError

pytestmark = pytest.mark.each_python

SPELLED = [
    ("anthropic", "claude-opus-4-8", "claude-opus-4-8", "anthropic"),
    ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5", "anthropic"),
    ("anthropic", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5", "anthropic"),
    ("openrouter", "anthropic/claude-opus-4.8", "claude-opus-4-8", "anthropic"),
    ("openrouter", "qwen/qwen3.6-27b", "qwen3.6-27b", "qwen"),
    ("openrouter", "openai/gpt-oss-120b:exacto", "gpt-oss-120b", "openai"),
    ("openrouter", "z-ai/glm-4.6", "glm-4.6", "zai"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "anthropic"),
    ("bedrock", "global.anthropic.claude-opus-4-8", "claude-opus-4-8", "anthropic"),
    ("bedrock", "anthropic.claude-3-7-sonnet-20250219-v1:0", "claude-3-7-sonnet", "anthropic"),
    (
        "bedrock",
        "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-5",
        "claude-opus-5",
        "anthropic",
    ),
    ("bedrock", "openai.gpt-oss-20b-1:0", "gpt-oss-20b", "openai"),
    ("bedrock", "qwen.qwen3-32b-v1:0", "qwen3-32b", "qwen"),
    ("bedrock", "us.amazon.nova-2-lite-v1:0", "nova-2-lite", "amazon"),
    ("fireworks", "accounts/fireworks/models/kimi-k2p5", "kimi-k2.5", "moonshot"),
    ("fireworks", "accounts/fireworks/models/qwen3p6-plus", "qwen3.6-plus", "qwen"),
    ("venice", "openai-gpt-52-codex", "gpt-5.2-codex", "openai"),
    ("venice", "zai-org-glm-4.7", "glm-4.7", "zai"),
    ("venice", "minimax-m27", "minimax-m2.7", "minimax"),
    ("venice", "kimi-k2-6:enable_web_search=on", "kimi-k2-6", "moonshot"),
    ("cerebras", "zai-glm-4.7", "glm-4.7", "zai"),
    ("groq", "openai/gpt-oss-120b", "gpt-oss-120b", "openai"),
    ("huggingface", "openai/gpt-oss-120b:groq", "gpt-oss-120b", "openai"),
    ("vllm", "Qwen/Qwen3-0.6B", "qwen3-0.6b", "qwen"),
    ("ollama", "gpt-oss:20b", "gpt-oss", "openai"),
    ("openai", "gpt-5-mini-2025-08-07", "gpt-5-mini", "openai"),
    ("gemini", "models/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview-05-06", "google"),
]


def find_model(provider: str, model: str) -> FoundModel:
    """Return the row of `model` at a provider row that is spoken with in OpenAI's Chat dialect."""
    owner = builtin_forms().endpoint(provider, "openai_chat").owner or provider
    return builtin_models().find(owner, model)


@pytest.mark.parametrize(("provider", "model", "spelled", "maker"), SPELLED, ids=[case[1] for case in SPELLED])
def test_an_id_is_seen_through(provider: str, model: str, spelled: str, maker: str) -> None:
    found = find_model(provider, model)
    assert (found.id, found.maker) == (spelled, maker)
    assert found.row is not None
    assert not found.row.assumed


def test_a_snapshot_date_is_no_minor_version() -> None:
    assert find_model("anthropic", "claude-fable-5-20260601").id == "claude-fable-5"
    assert find_model("anthropic", "claude-sonnet-5-20260901").row == find_model("anthropic", "claude-sonnet-5").row
    assert find_model("anthropic", "claude-sonnet-5-5").row != find_model("anthropic", "claude-sonnet-5").row


@pytest.mark.parametrize(
    ("model", "how"),
    [
        ("o1", "exact"),
        ("claude-opus-4-8", "glob"),
        ("openai/o1", "resolved"),
        ("claude-next-9", "assumed"),
        ("mystery-7b", "unclassified"),
    ],
)
def test_how_a_row_was_found_is_said(model: str, how: str) -> None:
    assert find_model("openrouter", model).how == how


def test_the_longest_glob_wins() -> None:
    assert find_model("gemini", "gemini-2.5-flash-lite").row != find_model("gemini", "gemini-2.5-flash").row
    instruct = find_model("vllm", "Qwen/Qwen3-4B-Instruct-2507").row
    assert instruct is not None
    assert instruct.control == ("none",)


def test_a_hosts_row_lies_over_its_makers() -> None:
    own = find_model("moonshot", "kimi-k3").row
    hosted = find_model("venice", "kimi-k3").row
    assert own is not None
    assert hosted is not None
    assert (own.control, hosted.control) == (("effort",), ("toggle",))
    assert hosted.off is own.off is False
    assert hosted.default_effort == own.default_effort == "max"
    assert (own.rules, hosted.rules) == (("kimi-fixed",), None), "a rule of the maker's API is not the host's"


def test_a_hosts_row_is_not_used_elsewhere() -> None:
    elsewhere = find_model("vllm", "qwen/qwen3-32b").row
    assert elsewhere is not None
    assert "budget" in (elsewhere.control or ())


def test_an_operators_row_goes_over_the_built_in_ones() -> None:
    rows = [{"provider": "openai", "match": ["gpt-5"], "control": ["effort"], "efforts": ["high"]}]
    models = builtin_models().over(rows)
    found = models.find("openai", "gpt-5-2025-08-07").row
    assert found is not None
    assert (found.efforts, found.source) == (("high",), "operator")
    assert models.find("openai", "o3") == builtin_models().find("openai", "o3")


def test_an_operator_may_add_a_host_of_its_own() -> None:
    rows = [{"provider": "lab", "match": ["*"], "control": ["toggle"]}]
    found = builtin_models().over(rows).find("lab", "gpt-oss-20b").row
    assert found is not None
    assert (found.control, found.efforts) == (("toggle",), ("low", "medium", "high"))


def test_a_wrong_row_names_its_model() -> None:
    with pytest.raises(ConfigError, match=r"claude-x.*anthropic.*omit"):
        builtin_models().over([{"provider": "anthropic", "match": ["claude-x"], "omit": "perhaps"}])


def test_every_row_has_a_source_and_a_date() -> None:
    for row in builtin_models().rows:
        assert row.source, row.match
        assert isinstance(row.date, datetime.date)


def test_no_two_rows_of_a_provider_have_the_same_glob() -> None:
    seen = [(row.provider, glob) for row in builtin_models().rows for glob in row.match]
    assert len(seen) == len(set(seen))


def test_the_rows_that_may_be_about_an_id_are_all_that_are_about_it() -> None:
    models = builtin_models()
    for row in models.rows:
        for glob in row.match:
            name = re.sub(r"\[(.)[^]]*\]", r"\1", glob).replace("*", "").replace("?", "1")
            for model in (name, f"vendor/{name}", f"{name}-x"):
                if matches_any(plain_id(models.spelled(model)), row.match):
                    about = models.rows_about(plain_id(models.spelled(model))[:3], plain_id(model)[:3])
                    assert row in [one for one, _ in about], (row.match, model)
