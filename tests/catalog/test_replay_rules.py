"""Which state may be read where: the rows, as facts."""

from __future__ import annotations

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay, read_replay
from bardo.values.blocks import Origin
from bardo.values.errors import ConfigError

RULES = builtin_replay()


def reader(preset: str, model: str, name: str = "") -> Reader:
    row = builtin().provider(preset)
    assert row is not None
    return RULES.reader(name or preset, row, model)


def origin(preset: str, model: str, name: str = "") -> Origin:
    return reader(preset, model, name).origin()


CLAUDE, GEMINI, OPENAI, XAI = "anthropic-claude-v1", "google-gemini-v1", "openai-responses-v1", "xai-responses-v1"


@pytest.mark.parametrize(
    ("form", "made", "read"),
    [
        (CLAUDE, ("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-opus-5")),
        (CLAUDE, ("anthropic", "claude-opus-5"), ("anthropic", "claude-fable-5-1")),
        (CLAUDE, ("anthropic", "claude-fable-5-1"), ("anthropic", "claude-fable-5-2")),
        (CLAUDE, ("anthropic", "claude-haiku-5-5"), ("anthropic", "claude-haiku-5-5")),
        (CLAUDE, ("openrouter", "anthropic/claude-opus-5"), ("openrouter", "anthropic/claude-sonnet-5")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("gemini-interactions", "gemini-3.5-flash")),
        (GEMINI, ("gemini-openai-compat", "gemini-3-pro"), ("gemini", "gemini-3-pro")),
        (OPENAI, ("openai", "gpt-5.1"), ("openai", "gpt-5.1")),
        (XAI, ("xai-responses", "grok-4.5"), ("xai-responses", "grok-4.5")),
        ("bedrock-v1", ("bedrock", "anthropic.claude-opus-4-5"), ("bedrock-invoke", "anthropic.claude-opus-4-5")),
        ("content_list", ("mistral", "magistral-medium"), ("mistral", "magistral-small")),
    ],
)
def test_state_goes_where_it_can_be_read(form: str, made: tuple[str, str], read: tuple[str, str]) -> None:
    assert RULES.refusal(form, origin(*made), reader(*read)) == ""


@pytest.mark.parametrize(
    ("form", "made", "read"),
    [
        (CLAUDE, ("anthropic", "claude-opus-5"), ("openrouter", "anthropic/claude-opus-5")),
        (CLAUDE, ("openrouter", "anthropic/claude-opus-5"), ("anthropic", "claude-opus-5")),
        (CLAUDE, ("openrouter", "anthropic/claude-opus-5"), ("openrouter", "google/gemini-3-pro")),
        (CLAUDE, ("anthropic", "claude-opus-5"), ("bedrock", "anthropic.claude-opus-5")),
        (CLAUDE, ("anthropic", "claude-fable-5-1"), ("anthropic", "claude-opus-5-5")),
        (CLAUDE, ("anthropic", "claude-fable-5-2"), ("anthropic", "claude-fable-5-1")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("openrouter", "google/gemini-3-pro")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("anthropic", "claude-opus-5")),
        (OPENAI, ("openai", "gpt-5.1"), ("openai", "gpt-5.2")),
        (OPENAI, ("openai", "gpt-5.1"), ("openrouter", "openai/gpt-5.1")),
        (XAI, ("xai-responses", "grok-4.5"), ("openai", "gpt-5.1")),
        (OPENAI, ("openai", "gpt-5.1"), ("xai-responses", "grok-4.5")),
        ("bedrock-v1", ("bedrock", "anthropic.claude-opus-4-5"), ("anthropic", "claude-opus-4-5")),
        ("content_list", ("mistral", "magistral-medium"), ("zai", "glm-5")),
    ],
)
def test_state_goes_nowhere_else_and_the_row_says_why(form: str, made: tuple[str, str], read: tuple[str, str]) -> None:
    assert RULES.refusal(form, origin(*made), reader(*read)) != ""


def test_an_account_keeps_the_thinking_of_models_that_are_bound_to_it() -> None:
    made = origin("anthropic", "claude-sonnet-5-5", "work")
    assert RULES.refusal(CLAUDE, made, reader("anthropic", "claude-sonnet-5-5", "work")) == ""
    assert "account" in RULES.refusal(CLAUDE, made, reader("anthropic", "claude-sonnet-5-5", "home"))


def test_state_of_unknown_origin_goes_to_its_own_vendor_only() -> None:
    assert RULES.refusal(CLAUDE, None, reader("anthropic", "claude-opus-5")) == ""
    assert RULES.refusal(CLAUDE, None, reader("openrouter", "anthropic/claude-opus-5")) == ""
    assert RULES.refusal(CLAUDE, None, reader("openrouter", "google/gemini-3-pro")) != ""
    assert RULES.refusal(GEMINI, None, reader("openrouter", "anthropic/claude-opus-5")) != ""


def test_servers_known_by_their_dialect_alone_are_platforms_of_their_own() -> None:
    made = origin("responses-compatible", "m", "one")
    assert RULES.refusal("openai-responses-v1", made, reader("responses-compatible", "m", "one")) == ""
    assert RULES.refusal("openai-responses-v1", made, reader("responses-compatible", "m", "other")) != ""


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5-1",
        "claude-fable-5.1-20260901",
        "claude-opus-5-5",
        "claude-mythos-5-2",
        "claude-opus-6",
        "claude-opus-5-7",
    ],
)
def test_models_of_preserved_thinking_are_bound_to_the_prefix(model: str) -> None:
    assert RULES.of(reader("anthropic", model)).binding is not None


@pytest.mark.parametrize(
    ("preset", "model"),
    [
        ("anthropic", "claude-opus-5"),
        ("anthropic", "claude-opus-5-20260601"),
        ("anthropic", "claude-fable-5"),
        ("openrouter", "anthropic/claude-opus-5-5"),
    ],
)
def test_others_are_not(preset: str, model: str) -> None:
    assert RULES.of(reader(preset, model)).binding is None


@pytest.mark.parametrize("preset", ["deepseek", "moonshot"])
def test_hosts_that_insist_on_reasoning_have_something_to_fill_in(preset: str) -> None:
    rule = RULES.of(reader(preset, "m")).text
    assert rule.required == "tool_calls"
    assert rule.fill


def test_every_platform_names_provider_rows_that_exist() -> None:
    for rule in RULES.texts:
        for name in rule.providers:
            assert name == "*" or builtin().provider(name) is not None


def test_a_wrong_row_is_named() -> None:
    with pytest.raises(ConfigError, match=r"replay\.toml"):
        read_replay({"state": [{"form": "x"}]})
