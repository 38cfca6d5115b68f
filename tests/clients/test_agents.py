"""A tool loop of each agent over providers of each dialect: the model asks for one command, the agent runs it and gives the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.simulators import Script, Simulator, ToolCall, Turn
from clients.agents import claude_code, codex
from support.gateway import house, model_of

PROVIDERS = ("anthropic", "deepseek", "gemini", "openai_responses")
MARK = "found-by-the-command"


def script(tool: str, arguments: dict[str, object]) -> Script:
    first = Turn(text="I look.", reasoning="A command is needed.", tool_calls=(ToolCall(tool, arguments),))
    return Script((first, Turn(text="The answer is forty-two.", reasoning="That is it.")))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_claude_code_runs_a_command(provider: str, tmp_path: Path) -> None:
    played = script("Bash", {"command": f"echo {MARK}", "description": "Prints"})
    with house([Simulator(provider, script=played)]) as running:
        said = claude_code(running.address, model_of(provider), "Run the command.", tmp_path)
        assert "forty-two" in said
        assert any(MARK in incoming.raw.decode() for incoming in running.arrived(provider)[1:])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_codex_runs_a_command(provider: str, tmp_path: Path) -> None:
    with house([Simulator(provider, script=script("exec_command", {"cmd": f"echo {MARK}"}))]) as running:
        said = codex(running.address, model_of(provider), "Run the command.", tmp_path)
        assert "forty-two" in said
        assert any(MARK in incoming.raw.decode() for incoming in running.arrived(provider)[1:])


@pytest.mark.parametrize("provider", ["deepseek", "gemini", "mistral"])
def test_codex_edits_a_file(provider: str, tmp_path: Path) -> None:
    patch = f"*** Begin Patch\n*** Add File: made.txt\n+{MARK}\n*** End Patch"
    simulator = Simulator(provider, script=script("apply_patch", {"input": patch}))
    # Codex offers its patches as a custom tool to models that it knows.
    with house([simulator], each={"models": ("gpt-5.5",)}) as running:
        said = codex(running.address, "gpt-5.5", "Make the file.", tmp_path)
    assert "forty-two" in said
    assert (tmp_path / "work" / "made.txt").read_text() == f"{MARK}\n"
