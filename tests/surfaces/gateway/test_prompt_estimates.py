"""The tokens of a prompt where a stream of Anthropic's begins: an estimate that later prompts correct, and the count at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bardo.adapters.net.fake import FakeReply
from bardo.simulators import Script, Turn
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.gateway import House, house
from support.scripted import Scripted
from support.talk import Answer, ask

COUNTED = 4000


@pytest.fixture(scope="module")
def town() -> Iterator[House]:
    turn = Turn(text="hi", usage=Usage(input_tokens=COUNTED, answer_tokens=2))
    with house([Simulator("deepseek", script=Script((turn,), in_order=True))]) as running:
        yield running


def started(answer: Answer) -> Any:
    return answer.payloads[0]["message"]["usage"]["input_tokens"]


def test_an_estimate_is_corrected(town: House) -> None:
    question = "word " * 1000
    first = ask(
        town.address,
        "anthropic_messages",
        "deepseek/m1",
        stream=True,
        question=question,
        bardo={"include": ["receipt"]},
    )
    end = next(one for one in first.payloads if one["type"] == "message_delta")
    assert 1000 <= started(first) <= 1500
    assert end["usage"]["input_tokens"] == COUNTED
    assert end["bardo"]["receipt"]["input_tokens_estimate"] == started(first)
    assert town.log.row(first.headers["x-bardo-request-id"]).input_tokens == COUNTED
    second = ask(town.address, "anthropic_messages", "deepseek/m1", stream=True, question=question)
    assert started(second) == COUNTED


def test_a_whole_reply_holds_the_count(town: House) -> None:
    assert ask(town.address, "anthropic_messages", "deepseek/m1").json["usage"]["input_tokens"] == COUNTED


@pytest.mark.parametrize("stream", [False, True])
def test_a_count_that_nobody_gave_is_the_estimate_whole_and_streamed(stream: bool) -> None:
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    said = {"id": "c1", "model": "m", "choices": [{**choice, "message": {"role": "assistant", "content": "Four."}}]}
    piece = {**said, "choices": [{**choice, "delta": {"role": "assistant", "content": "Four."}}]}
    body = f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n" if stream else json.dumps(said)
    kind = "text/event-stream" if stream else "application/json"
    gateway = Scripted("openai_chat", lambda call: FakeReply(headers={"content-type": kind}, chunks=[body.encode()]))
    answer = gateway.ask("anthropic_messages", stream=stream, question="word " * 1000)
    if stream:
        end = next(one for one in answer.payloads if one["type"] == "message_delta")
        assert 900 <= started(answer) <= 1500
        assert end["usage"]["input_tokens"] == started(answer)
        return
    assert 900 <= answer.json["usage"]["input_tokens"] <= 1500
    assert "usage.input_tokens" in answer.headers["x-bardo-degraded"]
    assert gateway.rows[0].input_tokens is None
