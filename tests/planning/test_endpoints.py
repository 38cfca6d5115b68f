"""A provider with several endpoints is asked at the one where the call loses least."""

from __future__ import annotations

from typing import Any

import pytest

import bardo
from bardo.adapters.config.settings import parse_settings, provider_of
from bardo.catalog.endpoint_choice import loss_counts, loss_rank, names_missing_endpoint
from bardo.catalog.load import builtin
from bardo.planning.explanation import Explanation
from bardo.planning.route import Provider
from bardo.values.degradation import Degradation

TURN = [{"role": "user", "content": "hi"}]
CHAT, RESPONSES, MESSAGES = "openai_chat", "openai_responses", "anthropic_messages"


def explained(client: str, model: str, provider: str = "openai", **fields: Any) -> Explanation:
    body: dict[str, Any] = {"model": model, **fields}
    body |= {"input": "hi"} if client == RESPONSES else {"messages": TURN}
    body |= {"max_tokens": 2000} if client == MESSAGES else {}
    return bardo.explain(body, client, provider)


@pytest.mark.parametrize(
    ("client", "model", "fields", "taken", "why"),
    [
        (CHAT, "gpt-4.1", {"stop": ["x"], "seed": 1, "user": "u"}, CHAT, "the client's own dialect"),
        (RESPONSES, "gpt-4.1", {}, RESPONSES, "the client's own dialect"),
        (MESSAGES, "gpt-4.1", {}, RESPONSES, "nothing is lost there"),
        (MESSAGES, "gpt-4.1", {"stop_sequences": ["x"]}, CHAT, "openai_responses would lose stop"),
        (CHAT, "gpt-5", {}, RESPONSES, "openai_chat would lose reasoning"),
        (CHAT, "gpt-5", {"n": 2}, CHAT, "openai_responses would lose n"),
        (CHAT, "gpt-5.1", {"reasoning_effort": "none"}, CHAT, "the client's own dialect"),
        (CHAT, "o3-pro", {"n": 2}, RESPONSES, ""),
        (RESPONSES, "gpt-4o-audio-preview", {}, CHAT, ""),
    ],
)
def test_the_endpoint_that_loses_least_is_taken(
    client: str, model: str, fields: dict[str, Any], taken: str, why: str
) -> None:
    found = explained(client, model, **fields)
    assert found.route.dialect == taken
    assert why in found.route.endpoint


def test_what_the_taken_endpoint_leaves_out_is_reported() -> None:
    assert "reasoning" in [one.what for one in explained(CHAT, "gpt-5", n=2).degraded]
    assert "reasoning" not in [one.what for one in explained(CHAT, "gpt-5").degraded]


def test_the_operator_pins_an_endpoint_by_its_dialect() -> None:
    text = '[[providers]]\nid = "openai"\ndialect = "openai_chat"\n'
    provider = provider_of(parse_settings(text).providers[0])
    assert [one.row.dialect for one in provider.endpoints] == [CHAT]
    assert provider.row.quirks.output_limit_field == "max_completion_tokens"
    found = bardo.explain({"model": "gpt-5", "messages": TURN}, CHAT, "openai", config=parse_settings(text))
    assert (found.route.dialect, found.route.endpoint) == (CHAT, "")


def at(base_url: str, preset: str) -> list[str]:
    row = builtin().provider(preset)
    assert row is not None
    return [one.base_url for one in Provider(id="x", row=row, base_url=base_url).endpoints]


def test_an_endpoint_follows_the_address_of_the_configuration() -> None:
    assert at("http://lab:1/v1", "openai") == ["http://lab:1/v1", "http://lab:1/v1"]
    assert at("http://lab:1/v1", "minimax") == ["http://lab:1/v1"]
    assert at("https://api.minimax.io/v1", "minimax")[1] == "https://api.minimax.io/anthropic/v1"


@pytest.mark.parametrize(
    ("provider", "model", "path"),
    [
        ("deepseek", "deepseek-v4-flash", "/anthropic/v1/messages"),
        ("moonshot", "kimi-k2.6", "/anthropic/v1/messages"),
        ("zai", "glm-4.7", "/api/anthropic/v1/messages"),
        ("minimax", "MiniMax-M3", "/anthropic/v1/messages"),
        ("openrouter", "anthropic/claude-sonnet-4.5", "/api/v1/messages"),
        ("bankr", "claude-sonnet-4-5", "/v1/messages"),
        ("bankr", "gpt-5", "/v1/chat/completions"),
    ],
)
def test_a_client_of_anthropic_gets_its_own_dialect_where_the_provider_speaks_it(
    provider: str, model: str, path: str
) -> None:
    assert explained(MESSAGES, model, provider).path == path


@pytest.mark.parametrize("client", [CHAT, RESPONSES])
def test_bankr_is_asked_for_claude_where_thinking_is_signed(client: str) -> None:
    assert explained(client, "claude-opus-4-8", "bankr").path == "/v1/messages"
    assert explained(client, "gpt-5.2", "bankr").path == "/v1/chat/completions"


@pytest.mark.parametrize("provider", ["deepseek", "moonshot", "zai", "minimax"])
def test_a_developer_message_is_no_reason_for_another_endpoint(provider: str) -> None:
    turns = [{"role": "developer", "content": "Be brief."}, *TURN]
    found = bardo.explain({"model": "m", "messages": turns}, CHAT, provider)
    assert found.route.dialect == CHAT
    assert [one.what for one in found.degraded] == ["messages.role.developer"]


def test_a_budget_that_a_host_does_not_heed_is_no_reason_for_its_endpoint() -> None:
    found = explained(CHAT, "kimi-k2.6", "moonshot", reasoning_effort="low")
    assert found.path == "/v1/chat/completions"
    assert found.body["thinking"] == {"type": "enabled"}


@pytest.mark.parametrize(
    ("name", "row"), [("grok", "xai"), ("kimi", "moonshot"), ("glm", "zai"), ("claude", "anthropic")]
)
def test_providers_are_called_as_people_call_them(name: str, row: str) -> None:
    found = builtin().provider(name)
    assert found is not None
    assert found.id == row


def test_losses_are_ranked_by_what_they_do() -> None:
    assert [loss_rank(name) for name in ("stop", "reasoning_effort", "cache_control", "metadata")] == [
        "answer",
        "reasoning",
        "cache",
        "cosmetic",
    ]
    renamed = Degradation("tool_call.id")
    assert loss_counts([Degradation("n"), Degradation("user"), renamed, Degradation("unlisted", sent=7)]) == (
        8,
        0,
        0,
        1,
    )


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("Invalid URL (POST /v1/responses)", True),
        ("Not Found", True),
        ("404 page not found", True),
        ("The model `x` does not exist or you do not have access to it.", False),
        ("model 'x' not found", False),
        ("The requested resource was not found.", False),
    ],
)
def test_a_missing_endpoint_is_told_from_a_missing_model(message: str, missing: bool) -> None:
    assert names_missing_endpoint(message) == missing


@pytest.mark.parametrize(
    ("client", "model", "path"),
    [
        (RESPONSES, "openai/gpt-5", "/api/v1/responses"),
        (CHAT, "openai/gpt-5", "/api/v1/chat/completions"),
        (RESPONSES, "google/gemini-3-flash-preview", "/api/v1/chat/completions"),
    ],
)
def test_openrouter_is_asked_by_responses_for_the_models_of_openai(client: str, model: str, path: str) -> None:
    assert explained(client, model, "openrouter").path == path


def test_a_level_brought_to_the_nearest_loses_less_than_one_left_out() -> None:
    found = explained(
        MESSAGES, "kimi-k3", "moonshot", thinking={"type": "adaptive"}, output_config={"effort": "medium"}
    )
    assert found.path == "/v1/chat/completions"
    assert found.body["reasoning_effort"] == "low"
    assert found.route.endpoint == "anthropic_messages would lose reasoning"
    lost, nearest = Degradation("reasoning", asked="medium"), Degradation("reasoning", asked="medium", sent="low")
    assert loss_counts([nearest]) < loss_counts([lost])


def test_a_typed_answer_of_moonshot_is_asked_for_where_a_schema_is_taken() -> None:
    form = {"type": "json_schema", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    assert explained(MESSAGES, "kimi-k3", "moonshot", output_config={"format": form}).path == "/v1/chat/completions"
