"""Codex edits a file: its patches are a custom tool, which a provider of another dialect gets as a function."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bardo.simulators import Script, ToolCall, Turn
from clients.agents import codex
from support.any_model import Simulator
from support.gateway import house, model_of

NOTE = "written-in-the-note"
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


@pytest.mark.timeout(240)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("provider", ["deepseek", "gemini", "anthropic", "openai_responses"])
def test_codex_reads_a_file_by_websocket(provider: str, tmp_path: Path) -> None:
    call = ToolCall("exec_command", {"cmd": "cat note.txt"})
    first = Turn(text="I look.", reasoning="A command is needed.", tool_calls=(call,))
    script = Script((first, Turn(text="The answer is forty-two.", reasoning="That is it.")))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "note.txt").write_text(NOTE)
    with house([Simulator(provider, script=script)]) as running:
        said = codex(running.address, model_of(provider), "What is in note.txt?", tmp_path, websockets=True)
        assert "forty-two" in said
        # Codex has sent the result alone, and its provider got all of the conversation.
        last = json.dumps(running.last(provider))
        assert NOTE in last
        assert "What is in note.txt?" in last
        rows = running.log.wait(lambda row: row.streamed)
        assert {row.outcome for row in rows} == {"ok"}


@pytest.mark.nightly
def test_codex_goes_on_by_http_where_no_websocket_is_served(tmp_path: Path) -> None:
    script = Script((Turn(text="The answer is forty-two."),))
    with house([Simulator("deepseek", script=script)], gateway={"websockets": False}) as running:
        assert "forty-two" in codex(running.address, "deepseek/m1", "What is it?", tmp_path, websockets=True)
