"""Clients of four dialects, which keep or drop thinking or its signatures, reach the end of their tool loop, or are told what is lost."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.gateway import House
from support.patience import PATIENCE
from surfaces.gateway.looping_clients import Client, Drops, open_client
from surfaces.gateway.replay_loops import CITIES, TOOL, homes, received_in
from surfaces.gateway.test_sdk_tool_loops import sealed_in

CLIENTS: dict[str, tuple[Drops, ...]] = {
    "chat": ("nothing", "thinking"),
    "messages": ("nothing", "thinking", "signatures"),
    "responses": ("nothing", "thinking"),
    "gemini": ("nothing", "thinking", "signatures"),
}
MODELS = (
    "gemini/gemini-2.5-flash",
    "gemini/gemini-3-flash-preview",
    "openrouter/anthropic/claude-sonnet-4.5",
    "openrouter/google/gemini-3-pro-preview",
    "openrouter/openai/gpt-5",
    "openrouter/x-ai/grok-4.3",
    "xai/grok-4.3",
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
)
each_model = pytest.mark.parametrize("model", MODELS)
each_client = pytest.mark.parametrize(
    ("dialect", "drops"), [(client, drops) for client, several in CLIENTS.items() for drops in several]
)


def looped(running: House, client: Client, drops: Drops) -> tuple[str, str]:
    """Return the last text, and all that the replies said of losses."""
    told, text = "", ""
    for step in range(len(CITIES) + 1):
        answer = httpx.post(running.address + client.path, json=client.ask(client.history), timeout=PATIENCE)
        assert answer.status_code == 200, answer.text
        told += answer.headers.get("x-bardo-degraded", "")
        text, called = client.take(answer.json(), client.history, drops)
        assert called == (step < len(CITIES))
    return text, told


@pytest.mark.sampled(15)
@each_model
@each_client
def test_with_a_store_every_state_comes_back(model: str, dialect: str, drops: Drops) -> None:
    provider = model.partition("/")[0]
    with homes([provider]) as running:
        text, _ = looped(running, open_client(dialect, model), drops)
        made = sum(bool(sealed_in(running.sent(provider, place))) for place in range(len(CITIES)))
        assert len(received_in(running.arrived(provider)[-1].raw)) >= made
    assert text == "Oslo is the coldest."


@pytest.mark.sampled(15)
@each_model
@each_client
def test_without_a_store_the_loop_ends_all_the_same_and_what_is_lost_is_said(
    model: str, dialect: str, drops: Drops
) -> None:
    provider = model.partition("/")[0]
    with homes([provider], keeps=False) as running:
        text, told = looped(running, open_client(dialect, model), drops)
        made = sum(bool(sealed_in(running.sent(provider, place))) for place in range(len(CITIES)))
        came = len(received_in(running.arrived(provider)[-1].raw))
    assert text == "Oslo is the coldest."
    assert came >= made or "reasoning" in told or "signature" in told.lower()


def test_models_asked_the_same_get_each_its_own_thinking_from_a_client_that_keeps_no_ids_and_no_signature() -> None:
    # Ollama's library for Python, by programs that ask several models side by side.
    providers = {"anthropic": "anthropic/claude-sonnet-4-5", "gemini": "gemini/gemini-3-flash-preview"}
    said = {"role": "user", "content": "Compare the weather in three cities."}
    with homes([*providers]) as running:

        def ask(model: str, *history: object) -> dict[str, Any]:
            body = {"model": model, "messages": [said, *history], "tools": [TOOL], "think": True, "stream": False}
            reply = httpx.post(f"{running.address}/api/chat", json=body, timeout=PATIENCE).json()["message"]
            calls = [
                {"function": {name: call["function"][name] for name in ("name", "arguments")}}
                for call in reply["tool_calls"]
            ]
            return {"role": "assistant", "content": "", "thinking": reply["thinking"], "tool_calls": calls}

        first = {model: ask(model) for model in providers.values()}
        assert len({str(turn) for turn in first.values()}) == 1
        for model, turn in first.items():
            ask(model, turn, {"role": "tool", "tool_name": "weather", "content": "4 degrees"})
        for name in providers:
            assert sealed_in(running.sent(name, 0))[-1] in received_in(running.arrived(name)[-1].raw)
