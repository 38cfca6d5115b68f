"""Answers by schema and refusals with real coding agents, over providers of each dialect that refuse what the real ones refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import Fault, Script, ToolCall, Turn
from clients.agents import AGENTS, bardo_run
from support.any_model import Simulator
from support.gateway import model_of
from surfaces.cli.support import simulated

PROVIDERS = ("anthropic", "deepseek", "gemini", "openai_responses")
ENVIRONMENT = {"SIMULATED_KEY": "sk-simulated"}
ANSWER = {"answer": 42}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def at_home(name: str, folder: Path) -> None:
    """Give an agent the settings file that says how it signs in."""
    own_file = folder / "home" / AGENTS[name].own_settings[0]
    own_file.parent.mkdir(parents=True)
    own_file.write_text(AGENTS[name].own_settings[1])


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
def test_claude_code_answers_by_a_schema(provider: str, tmp_path: Path) -> None:
    at_home("claude", tmp_path)
    first = Turn(reasoning="I know it.", tool_calls=(ToolCall("StructuredOutput", ANSWER),))
    script = Script((first, Turn(text="Done.")))
    options = ("--output-format", "json", "--json-schema", json.dumps(SCHEMA))
    with simulated(Simulator(provider, script=script), folder=tmp_path):
        ran = bardo_run(AGENTS["claude"], model_of(provider), "Which?", tmp_path, ENVIRONMENT, options=options)
    assert json.loads(ran.out)["structured_output"] == ANSWER


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
def test_codex_answers_by_a_schema(provider: str, tmp_path: Path) -> None:
    at_home("codex", tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    script = Script((Turn(reasoning="I know it.", text=json.dumps(ANSWER)),))
    agent = AGENTS["codex"]
    place = agent.arguments.index("exec") + 1
    options = (*agent.arguments[:place], "--output-schema", str(tmp_path / "schema.json"), *agent.arguments[place:])
    asked = Simulator(provider, script=script)
    with simulated(asked, folder=tmp_path):
        ran = bardo_run(
            type(agent)(agent.name, agent.tool, agent.parameter, options, agent.own_settings, agent.environment),
            model_of(provider),
            "Which?",
            tmp_path,
            ENVIRONMENT,
        )
    assert json.loads(ran.out.strip().splitlines()[-1]) == ANSWER


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "provider"),
    [("claude", "gemini"), ("codex", "anthropic"), ("gemini", "openai_responses"), ("opencode", "gemini")],
)
def test_an_agent_shows_why_a_provider_refused(name: str, provider: str, tmp_path: Path) -> None:
    at_home(name, tmp_path)
    refusing = Simulator(provider, fault=Fault("status", status=400))
    with simulated(refusing, folder=tmp_path):
        ran = bardo_run(AGENTS[name], model_of(provider), "Which?", tmp_path, ENVIRONMENT, fails=True)
    assert "The request was invalid" in ran.out + ran.err
