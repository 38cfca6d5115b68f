"""The strategy `learned` at the gateway: what a client's calls show of a model counts, for the model that was asked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import openai_client

MESSAGES: Any = [{"role": "user", "content": "What is 27 * 43?"}]
PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "product", "schema": PARAMETERS}}
TOOLS = [{"type": "function", "function": {"name": "multiply", "parameters": PARAMETERS}}]
GOOD = Turn(text='{"n": 1161}')
CALLED = Turn(tool_calls=(ToolCall("multiply", {"n": 1}),))
BROKEN = Turn(tool_calls=(ToolCall("multiply", '{"n": }'),))
UNSURE = Turn(text="I'm not sure; perhaps 1000.")


def table(folder: Path) -> str:
    return f"""
[routing]
strategy = "learned"
[routing.learned]
file = "{folder}/learned.json"
comparison_share = 0.0
[workloads.plain]
model = ["deepseek/deepseek-r1", "deepseek/deepseek-v3"]
[workloads.careful]
model = ["deepseek/deepseek-r1", "deepseek/deepseek-v3"]
escalate = ["anthropic/claude-haiku-4-5"]
"""


def models(turn: Turn) -> list[Simulator]:
    """Return two models that answer alike, and a third that answers well."""
    script = Script(turns=(turn,))
    return [
        Simulator("deepseek", script=script, models=["deepseek-r1", "deepseek-v3"]),
        Simulator("anthropic", script=Script(turns=(GOOD,)), models=["claude-haiku-4-5"]),
    ]


def outcomes(it: House) -> tuple[float, float]:
    """Return how many outcomes were counted, and how many of them as successes."""
    assert it.learned is not None
    rows = it.learned.router.state.rows.values()
    return sum(row.whole.count for row in rows), sum(row.whole.successes for row in rows)


CASES: dict[str, tuple[Turn, dict[str, Any], float]] = {
    "an answer that fits its schema": (GOOD, {"response_format": SCHEMA}, 1),
    "an answer that fits no schema": (UNSURE, {"response_format": SCHEMA}, 0),
    "a call of a tool": (CALLED, {"tools": TOOLS}, 1),
    "a call of a tool with broken arguments": (BROKEN, {"tools": TOOLS}, 0),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_an_answer_shows_counts_for_its_model(name: str, stream: bool, tmp_path: Path) -> None:
    turn, fields, expected = CASES[name]
    with house(models(turn), toml=table(tmp_path)) as it, closing(openai_client(it.address)) as client:
        try:
            reply = client.chat.completions.create(model="bardo/plain", messages=MESSAGES, stream=stream, **fields)
            if stream:
                list(reply)
        except openai.APIError:
            assert expected == 0
        it.log.of_model("bardo/plain")
        assert outcomes(it) == (1, expected)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("turn", "expected"), [(UNSURE, 0), (GOOD, 1)], ids=["rejected", "good enough"])
def test_an_answer_of_a_cascade_counts_by_its_verdict(turn: Turn, expected: int, stream: bool, tmp_path: Path) -> None:
    with house(models(turn), toml=table(tmp_path)) as it, closing(openai_client(it.address)) as client:
        reply = client.chat.completions.create(model="bardo/careful", messages=MESSAGES, stream=stream)
        if stream:
            list(reply)
        assert outcomes(it) == (1, expected)
        assert len(it.arrived("anthropic")) == 1 - expected
