"""A gateway of the agent: its subsystems are workloads, with their profiles, and the locked ones hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import openai_client

TABLE = '[golem]\nenabled = true\nid = "g7"\n'
MESSAGES: list[Any] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "What is 27 * 43?"},
]


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    providers = [
        Simulator("anthropic", models=["claude-opus-4-6"]),
        Simulator("venice", models=["deepseek-r1-671b"]),
    ]
    with house(providers, toml=TABLE) as it:
        yield it


def respond(house: House, name: str, **fields: Any) -> tuple[Any, dict[str, str]]:
    with closing(openai_client(house.address)) as client:
        raw = client.chat.completions.with_raw_response.create(model=name, messages=MESSAGES, **fields)
        return raw.parse(), {key.lower(): value for key, value in raw.headers.items()}


def test_a_subsystem_is_asked_for_as_a_model(running: House) -> None:
    reply, headers = respond(running, "bardo/operator")
    assert reply.model == "bardo/operator"
    assert headers["x-bardo-provider"] == "anthropic"
    assert running.last("anthropic")["system"][-1]["cache_control"] == {"type": "ephemeral"}


def test_a_locked_profile_holds_against_the_callers_own_fields(
    running: House, caplog: pytest.LogCaptureFixture
) -> None:
    _, free = respond(running, "bardo/heartbeat_t2", max_tokens=700)
    assert running.last("anthropic")["max_tokens"] >= 700
    _, headers = respond(running, "bardo/risk", reasoning_effort="low")
    assert "reasoning" in headers["x-bardo-degraded"].split(", ")
    assert "reasoning" not in free["x-bardo-degraded"].split(", ")
    assert "this profile is locked" in caplog.text


def test_the_agent_is_absent_without_its_table() -> None:
    with (
        house([Simulator("anthropic", models=["claude-opus-4-6"])]) as it,
        closing(openai_client(it.address)) as client,
        pytest.raises(Exception, match="no workload"),
    ):
        client.chat.completions.create(model="bardo/risk", messages=MESSAGES)


def test_003_a_dream_without_deepseek_is_answered_by_the_best_claude() -> None:
    claude = Simulator("anthropic", models=["claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-4-6"])
    with house([claude], toml=TABLE) as it:
        _, headers = respond(it, "bardo/dream_threat")
        assert headers["x-bardo-model"] == "claude-opus-4-6"


def test_000_9_dreams_go_to_venice_then_to_any_visible_r1_then_to_claude() -> None:
    claude = Simulator("anthropic", models=["claude-opus-4-6"])
    router = Simulator("openrouter", models=["deepseek/deepseek-r1"])
    private = Simulator("venice", models=["llama-3.3-70b", "deepseek-r1-671b"])
    steps: tuple[tuple[list[Simulator], str, set[str]], ...] = (
        ([claude, router, private], "venice", set()),
        ([claude, router], "openrouter", {"privacy"}),
        ([claude], "anthropic", {"visible_thinking", "privacy"}),
    )
    for providers, chosen, lost in steps:
        with house(providers, toml=TABLE) as it:
            _, headers = respond(it, "bardo/dream_threat")
            assert headers["x-bardo-provider"] == chosen
            told = set(headers.get("x-bardo-degraded", "").split(", "))
            assert told & {"visible_thinking", "privacy"} == lost, chosen
