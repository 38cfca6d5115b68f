"""A budget of thinking kept by a gateway, seen by Anthropic's and OpenAI's own clients; their servers keep none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import anthropic_client, openai_client

MODEL = "sglang/Qwen/Qwen3-0.6B"
THOUGHT = "One more look. " * 700
SCRIPT = Script((Turn(reasoning=THOUGHT, text="The long answer."), Turn(text="The short answer.")))
BUDGET: Any = {"type": "enabled", "budget_tokens": 1024}
QUESTION: Any = [{"role": "user", "content": "How many?"}]


@pytest.fixture(scope="module")
def keeping() -> Iterator[House]:
    simulator = Simulator("sglang", script=SCRIPT, delta_size=4)
    with house([simulator], toml="[reasoning]\nkeep_budgets = true\n") as it:
        yield it


def test_a_client_of_anthropic_gets_its_budget_and_an_answer(keeping: House) -> None:
    with closing(anthropic_client(keeping.address)) as client:
        message: Any = client.messages.create(model=MODEL, max_tokens=8000, thinking=BUDGET, messages=QUESTION)
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert THOUGHT.startswith(message.content[0].thinking)
    assert len(message.content[0].thinking) == 4 * 1024
    assert message.content[1].text == "The short answer."
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens >= 1024


def test_a_stream_of_anthropic_is_whole(keeping: House) -> None:
    with closing(anthropic_client(keeping.address)) as client:
        asked = client.messages.stream(model=MODEL, max_tokens=8000, thinking=BUDGET, messages=QUESTION)
        with asked as stream:
            message: Any = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[1].text == "The short answer."
    assert message.stop_reason == "end_turn"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_thinking_that_the_client_does_not_get_is_cut_too(keeping: House, stream: bool) -> None:
    extra: Any = {"reasoning": {"max_tokens": 1024, "exclude": True}}
    before = len(keeping.arrived("sglang"))
    with closing(openai_client(keeping.address)) as client:
        made: Any = client.chat.completions.create(model=MODEL, messages=QUESTION, extra_body=extra, stream=stream)
        if stream:
            text = "".join(chunk.choices[0].delta.content or "" for chunk in made if chunk.choices)
        else:
            text = made.choices[0].message.content
            assert not getattr(made.choices[0].message, "reasoning_content", None)
    assert text == "The short answer."
    assert len(keeping.arrived("sglang")) == before + 2


def test_the_log_has_both_replies_of_the_call_and_what_was_cut(keeping: House) -> None:
    with closing(openai_client(keeping.address)) as client:
        client.chat.completions.create(model=MODEL, messages=QUESTION, extra_body={"reasoning": {"max_tokens": 1024}})
    row = keeping.log.wait(lambda row: row.attempts == 2)[-1]
    assert [one.why for one in row.attempt_records] == ["", "the thinking had used its budget"]
    assert "cut:1024" in str(row.degraded)
