"""Every adapter against its simulated server: what it says well, slowly, brokenly or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider
from bardo.services.facts.introspect import FactsAnswer, Introspector
from bardo.simulators import Fault
from support.any_model import Simulator

KEYS = {"OPENROUTER_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "VENICE_API_KEY": "k", "GEMINI_API_KEY": "k"} | {
    "MISTRAL_API_KEY": "k",
    "MOONSHOT_API_KEY": "k",
}

# preset: the catalog row, the model, what of its facts
SERVERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openrouter": ("openrouter", "openai/gpt-5", {"off": False, "default_effort": "medium", "omit": "on"}),
    "anthropic": ("anthropic", "claude-sonnet-5", {"control": ("adaptive", "effort")}),
    "venice": ("venice", "qwen3-5-9b", {"efforts": ("low", "medium", "high"), "default_effort": "medium"}),
    "gemini": ("gemini", "gemini-3-flash-preview", {"control": None, "context": 1048576}),
    "mistral": ("mistral", "mistral-small-latest", {"control": ("none",), "omit": "off"}),
    "moonshot": ("moonshot", "moonshot-v1-8k", {"control": ("none",)}),
    "lmstudio": ("lmstudio", "qwen/qwen3-8b", {"control": ("toggle",), "off": True, "omit": "on"}),
    "vllm": ("vllm", "Qwen/Qwen3-0.6B", {"known_as": None, "context": 40960}),
    "sglang": ("sglang", "Qwen/Qwen3-0.6B", {"text_format": "qwen3", "context": 40960}),
    "ollama": ("ollama-openai", "gpt-oss:120b", {"control": ("effort",), "omit": "on"}),
    "ollama_native": ("ollama", "qwen3:latest", {"control": None, "omit": "on"}),
    "ds4": ("ds4", "deepseek-v4-flash", {"efforts": ("high",), "off": True, "default_effort": "high"}),
    "llama_server": ("llama-server", "m", {"control": ("budget", "toggle"), "starts_inside": True, "off": True}),
}
each_server = pytest.mark.parametrize("preset", SERVERS)


def row_of(name: str) -> ProviderRow:
    row = builtin().provider(name)
    return row or ProviderRow(id=name, name=name, dialect="openai_chat", auth="none")


def learned(
    preset: str, simulator: Simulator, after: Callable[[Introspector, Provider], Awaitable[None]] | None = None
) -> FactsAnswer:
    """Ask a simulated server about its model; `after` happens first, with the server running."""
    row, model, _ = SERVERS[preset]

    async def scenario() -> FactsAnswer:
        transport = HttpTransport()
        introspector = Introspector(transport, Keyring(KEYS))
        async with simulator.serve() as base_url:
            at = Provider(id=preset, row=row_of(row), base_url=base_url)
            try:
                if after is not None:
                    await after(introspector, at)
                return await introspector.learn(at, model)
            finally:
                await introspector.close()
                await transport.close()

    return asyncio.run(scenario())


@each_server
def test_a_server_is_understood(preset: str) -> None:
    found = learned(preset, Simulator(preset, models=[SERVERS[preset][1]]))
    assert found.problem == ""
    assert {name: getattr(found.facts, name) for name in SERVERS[preset][2]} == SERVERS[preset][2]


@each_server
@pytest.mark.parametrize("kind", ["malformed", "lying", "content-type", "disconnect", "early-end"])
def test_a_broken_answer_says_nothing(preset: str, kind: Any) -> None:
    found = learned(preset, Simulator(preset, fault=Fault(kind)))
    assert found.facts is None
    assert found.problem


@each_server
def test_a_server_without_the_endpoint_says_nothing(preset: str) -> None:
    assert learned(preset, Simulator(preset, fault=Fault("status", status=404))).facts is None


@each_server
def test_a_call_does_not_wait_for_a_slow_server(preset: str) -> None:
    simulator = Simulator(preset, models=[SERVERS[preset][1]])
    gate = simulator.hold()

    async def ask_while_held(introspector: Introspector, at: Provider) -> None:
        assert introspector.facts(at, SERVERS[preset][1]) is None
        await gate.wait_async()
        assert introspector.facts(at, SERVERS[preset][1]) is None
        gate.release()

    assert learned(preset, simulator, ask_while_held).facts is not None
