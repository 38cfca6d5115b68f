"""Codex edits a file: its patches are a custom tool, which a provider of another dialect gets as a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.simulators import Script, ToolCall, Turn
from clients.agents import codex
from support.any_model import Simulator
from support.gateway import house

MARK = "found-by-the-command"


@pytest.mark.nightly
@pytest.mark.parametrize("provider", ["deepseek", "gemini", "mistral", "anthropic", "openai_responses"])
def test_codex_edits_a_file(provider: str, tmp_path: Path) -> None:
    patch = f"*** Begin Patch\n*** Add File: made.txt\n+{MARK}\n*** End Patch"
    call = ToolCall("apply_patch", {"input": patch})
    first = Turn(text="I look.", reasoning="A patch is needed.", tool_calls=(call,))
    script = Script((first, Turn(text="The answer is forty-two.", reasoning="That is it.")))
    simulator = Simulator(provider, script=script)
    # Codex offers its patches as a custom tool to models that it knows.
    with house([simulator], each={"models": ("gpt-5.5",)}) as running:
        said = codex(running.address, "gpt-5.5", "Make the file.", tmp_path)
    assert "forty-two" in said
    assert (tmp_path / "work" / "made.txt").read_text() == f"{MARK}\n"
