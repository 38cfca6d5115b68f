"""Clients of four dialects, which keep or drop thinking or its signatures, reach the end of their tool loop, or are told what is lost."""

from __future__ import annotations

import httpx
import pytest

from support.gateway import House
from support.patience import PATIENCE
from surfaces.gateway.looping_clients import Client, Drops, open_client
from surfaces.gateway.replay_loops import CITIES, homes, received_in
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
