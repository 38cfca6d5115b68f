"""Codex has a conversation compacted and goes on: by its server where its provider is called OpenAI, else by an ordinary call."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.dialects.openai_responses.compaction import PROMPT
from bardo.simulators import Script, ToolCall, Turn, Usage
from clients.agents import codex
from support.any_model import Simulator
from support.gateway import house, model_of

MARK = "found-by-the-command"
SUMMARY = "The user wants the note read. It says forty-two."
SCRIPT = Script(
    (
        Turn(
            text="I look.",
            reasoning="A command is needed.",
            tool_calls=(ToolCall("exec_command", {"cmd": f"echo {MARK}"}),),
            usage=Usage(input_tokens=90_000, answer_tokens=2_000, reasoning_tokens=10),
        ),
        Turn(text=SUMMARY, reasoning="I sum up."),
        Turn(text="The answer is forty-two.", reasoning="That is it."),
    ),
    in_order=True,
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("provider", ["anthropic", "gemini", "deepseek", "openai_responses"])
@pytest.mark.parametrize("name", ["OpenAI", "bardo"])
def test_codex_goes_on_from_a_compacted_conversation(provider: str, name: str, tmp_path: Path) -> None:
    simulator = Simulator(provider, script=SCRIPT)
    with house([simulator]) as running:
        said = codex(
            running.address, model_of(provider), "Read the note.", tmp_path, provider_name=name, compacts_from=20_000
        )
        bodies = [incoming.raw.decode() for incoming in running.arrived(provider)]
    assert "forty-two" in said
    assert MARK in bodies[1], "the command ran before the conversation was compacted"
    asked_by_bardo = name == "OpenAI" and provider != "openai_responses"
    assert (PROMPT[:60] in bodies[1]) is asked_by_bardo
    assert ("compaction_trigger" in bodies[1]) is (name == "OpenAI" and provider == "openai_responses")
    assert "Read the note." in bodies[2]
    assert MARK not in bodies[2]
    if name == "bardo" or asked_by_bardo:
        assert SUMMARY in bodies[2]
