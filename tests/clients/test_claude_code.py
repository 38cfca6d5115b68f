"""Claude Code itself in each of the three formats that it has for gateways, with a model that is none of Claude's.

It finds the model by asking the gateway, asks for it by the name that it was shown, and runs a command for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bardo.simulators import Script, Turn
from clients.agents import AGENTS, at_home, bardo_run, claude_code_by
from clients.installed import program
from support.any_model import Simulator
from support.gateway import house
from support.talk import request
from support.terminal import terminal
from surfaces.cli.support import simulated

MARK = "written-in-the-note"
MODEL = "deepseek-v4-pro"
AGENT = AGENTS["claude"]
QUESTION = "What is in note.txt?"
FORMATS: dict[str, Mapping[str, str]] = {
    "messages": {"ANTHROPIC_BASE_URL": "{address}", "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1"},
    "bedrock": {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "ANTHROPIC_BEDROCK_BASE_URL": "{address}",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
        "AWS_REGION": "us-east-1",
    },
    "vertex": {
        "CLAUDE_CODE_USE_VERTEX": "1",
        "ANTHROPIC_VERTEX_BASE_URL": "{address}",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "ANTHROPIC_VERTEX_PROJECT_ID": "p",
        "CLOUD_ML_REGION": "us-east5",
    },
}
"""The variables that choose a format."""


def script() -> Script:
    """Return what the model says: it looks into the file, and then it answers."""
    return Script(
        (Turn(text="I look.", tool_calls=(AGENT.call("cat note.txt"),)), Turn(text="The answer is forty-two."))
    )


def write_note(folder: Path) -> None:
    (folder / "work").mkdir()
    (folder / "work" / "note.txt").write_text(MARK)


def run_with_discovered_name(form: str, folder: Path) -> None:
    """Have Claude Code find a model of DeepSeek in a list, ask for it, and run a command for it."""
    write_note(folder)
    simulator = Simulator("deepseek", script=script(), models=[MODEL])
    with house([simulator], gateway={"max_body_bytes": 8_000_000}) as running:
        listed = request(running.address, "GET", "/v1/models?limit=1000", headers={"anthropic-version": "2023-06-01"})
        name = next(one["id"] for one in listed.json["data"] if one["display_name"] == MODEL and one["id"] != MODEL)
        own = {name: value.replace("{address}", running.address) for name, value in FORMATS[form].items()}
        assert "forty-two" in claude_code_by(own, name, QUESTION, folder)
        first, last = running.log.wait(lambda row: row.outcome == "ok")[:2]
        assert first.model_asked == last.model_asked == name
        assert MARK in json.dumps(running.last("deepseek"))
        assert "x-anthropic-billing-header" not in json.dumps(running.last("deepseek"))


@pytest.mark.timeout(240)
def test_claude_code_runs_a_command_for_a_model_of_deepseek_that_it_found(tmp_path: Path) -> None:
    run_with_discovered_name("messages", tmp_path)
    kept = json.loads((tmp_path / "home" / ".claude" / "cache" / "gateway-models.json").read_text())
    assert MODEL in [one["display_name"] for one in kept["models"] if one["id"].startswith("anthropic/")]


@pytest.mark.timeout(240)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", sorted(FORMATS.keys() - {"messages"}))
def test_claude_code_runs_a_command_for_a_model_of_deepseek_in_the_form_of_a_cloud(form: str, tmp_path: Path) -> None:
    run_with_discovered_name(form, tmp_path)


@pytest.mark.timeout(240)
@pytest.mark.nightly
def test_claude_code_discovers_a_model_of_deepseek_and_asks_for_it_by_the_name_it_was_shown(tmp_path: Path) -> None:
    write_note(tmp_path)
    with simulated(Simulator("deepseek", script=script(), models=[MODEL]), folder=tmp_path) as [server]:
        key = {"SIMULATED_KEY": "sk-simulated"}
        bardo_run(AGENT, f"deepseek/{MODEL}", QUESTION, tmp_path, key)
        kept = json.loads((tmp_path / "home" / ".claude" / "cache" / "gateway-models.json").read_text())
        [shown] = [one["id"] for one in kept["models"] if one["display_name"] == MODEL]
        assert shown.startswith("anthropic")
        before = len(server.requests)
        ran = bardo_run(AGENT, shown, QUESTION, tmp_path, key)
        assert "forty-two" in ran.out
        asked = [one.body for one in server.requests[before:] if one.method == "POST"]
    assert MARK in json.dumps(asked[-1])
    assert {body["model"] for body in asked if isinstance(body, dict)} == {MODEL}


@pytest.mark.timeout(240)
@pytest.mark.nightly
def test_a_user_chooses_a_model_of_deepseek_from_the_picker_and_claude_code_works_with_it(tmp_path: Path) -> None:
    write_note(tmp_path)
    project = {str(tmp_path / "work"): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    (tmp_path / "home").mkdir()
    known = {"hasCompletedOnboarding": True, "theme": "dark", "projects": project}
    (tmp_path / "home" / ".claude.json").write_text(json.dumps(known))
    simulator = Simulator("deepseek", script=script(), models=[MODEL])
    with house([simulator], gateway={"max_body_bytes": 8_000_000}) as running:
        own = {
            **at_home(tmp_path),
            **AGENT.environment,
            **{name: value.replace("{address}", running.address) for name, value in FORMATS["messages"].items()},
            "ANTHROPIC_AUTH_TOKEN": "any",
            "TERM": "xterm-256color",
        }
        started = (program("claude"), "--allowedTools", "Bash", "--permission-mode", "default")
        with terminal(lines=50, columns=120, environment=own, program=started, folder=tmp_path / "work") as screen:
            screen.wait_for(lambda one: any(line.startswith("❯") for line in one.lines))
            screen.send("/model")
            screen.wait_for("Switch model")
            screen.send("\r")
            screen.wait_for(f"{MODEL} at deepseek")
            for place in range(1, 20):
                screen.wait_for(f"❯ {place}.")
                if any(f"❯ {place}." in line and MODEL in line for line in screen.lines):
                    break
                screen.send("\x1b[B")
            screen.send("\r")
            screen.wait_for(f"Set model to {MODEL}")
            screen.send(QUESTION)
            screen.wait_for(QUESTION)
            screen.send("\r")
            screen.wait_for("forty-two")
        asked = running.log.wait(lambda row: row.outcome == "ok")
        assert f"anthropic/{MODEL}" in [row.model_asked for row in asked]
        assert MARK in json.dumps([one.body for one in running.arrived("deepseek")])
