"""`bardo run` with real coding agents: a tool loop of each over providers of each dialect, which refuse what the real ones refuse."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from clients.agents import AGENTS, bardo_run
from support.any_model import Simulator
from support.gateway import model_of
from support.patience import PATIENCE
from surfaces.cli.support import simulated

PROVIDERS = ("anthropic", "deepseek", "gemini", "openai_responses")
MARK = "written-in-the-note"
THOUGHT = "A command is needed."
KEY = "SIMULATED_KEY"


@pytest.mark.timeout(240)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_reads_a_file(name: str, provider: str, tmp_path: Path) -> None:
    agent = AGENTS[name]
    first = Turn(text="I look.", reasoning=THOUGHT, tool_calls=(agent.call("cat note.txt"),))
    script = Script((first, Turn(text="The answer is forty-two.", reasoning="That is it.")))
    own_file = tmp_path / "home" / agent.own_settings[0]
    own_file.parent.mkdir(parents=True)
    own_file.write_text(agent.own_settings[1])
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "note.txt").write_text(MARK)
    with simulated(Simulator(provider, script=script), folder=tmp_path) as [server]:
        settings = (tmp_path / "bardo.toml").read_bytes()
        ran = bardo_run(agent, model_of(provider), "What is in note.txt?", tmp_path, {KEY: "sk-simulated"})
        asked = [one.body for one in server.requests if one.method == "POST"]
    assert "forty-two" in ran.out
    # The tool ran, its result came to the provider in its dialect, and with it the thinking that asked for it.
    [last] = [body for body in asked if MARK in json.dumps(body)]
    assert MARK in json.dumps(list(tool_results(provider, last)))
    assert list(thinking_back(provider, last)), json.dumps(last)[-3000:]
    # Nothing but the environment of the agent was changed, and what was started has ended.
    assert own_file.read_text() == agent.own_settings[1]
    assert (tmp_path / "bardo.toml").read_bytes() == settings
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{ran.gateway}/healthz", timeout=PATIENCE)


def tool_results(provider: str, body: Any) -> Iterator[Any]:
    """Return the results of tools in a request of a provider's dialect."""
    match provider:
        case "anthropic":
            yield from (block for block in _blocks(body) if block["type"] == "tool_result")
        case "gemini":
            names = ("functionResponse", "function_response")
            yield from (part[name] for part in _parts(body) for name in names if name in part)
        case "openai_responses":
            yield from (item for item in body["input"] if item.get("type") == "function_call_output")
        case _:
            yield from (message for message in body["messages"] if message["role"] == "tool")


def thinking_back(provider: str, body: Any) -> Iterator[str]:
    """Return what a request gives back of earlier thinking: the seal where the provider's dialect has one, else its text."""
    match provider:
        case "anthropic":
            yield from (block["signature"] for block in _blocks(body) if block["type"] == "thinking")
        case "gemini":
            yield from (part["thoughtSignature"] for part in _parts(body) if "thoughtSignature" in part)
        case "openai_responses":
            yield from (item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning")
        case _:
            yield from (message["reasoning_content"] for message in body["messages"] if "tool_calls" in message)


def _blocks(body: Any) -> Iterator[Any]:
    return (
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    )


def _parts(body: Any) -> Iterator[Any]:
    return (part for content in body["contents"] for part in content["parts"])
