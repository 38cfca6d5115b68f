"""A client's call goes through where the simulated provider refuses, as the real one does, what the client sent."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from bardo.edge.serving import BackgroundServer
from bardo.edge.settings import LogSettings, ProviderEntry, Settings
from bardo.simulators import Simulator
from bardo.surfaces.gateway.main import gateway_of
from support.patience import PATIENCE

Body = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
LONG = "call_" + "x" * 80


def looped(given: str) -> list[Body]:
    call = {"id": given, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": given, "content": "a tree"},
    ]


CASES = [
    ("mistral", "mistral-small-latest", {"messages": looped(LONG), "tools": TOOLS}, "must be a-z, A-Z, 0-9"),
    ("mistral", "mistral-small-latest", {"messages": looped("call_1"), "tools": TOOLS}, "with a length of 9"),
    (
        "mistral",
        "mistral-small-latest",
        {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "2 * 3"}]},
        "does not match any of the expected tags",
    ),
    ("openai_chat", "gpt-4o", {"messages": looped(LONG), "tools": TOOLS}, "string too long"),
    (
        "openai_chat",
        "gpt-5-mini",
        {"messages": [{"role": "user", "content": "2 * 3"}], "max_tokens": 500},
        "Use 'max_completion_tokens' instead",
    ),
]


def post(address: str, body: Body) -> tuple[int, str]:
    headers = {"content-type": "application/json", "authorization": "Bearer any"}
    request = urllib.request.Request(f"{address}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.mark.parametrize(("name", "model", "body", "words"), CASES)
def test_what_the_provider_refuses_reaches_it_otherwise(name: str, model: str, body: Body, words: str) -> None:
    simulator = Simulator(name)
    with simulator.running() as server:
        preset = simulator.provider.catalog_name
        entry = ProviderEntry(id="it", preset=preset, base_url=server.base_url, api_key_env="K", models=(model,))
        settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
        status, said = post(server.base_url, {"model": model, **body})
        assert (status in (400, 422), words in said) == (True, True), said
        with BackgroundServer(gateway_of(settings, {"K": "any"})) as gateway:
            status, said = post(f"{gateway.address}/v1", {"model": model, **body})
        assert status == 200, said
