"""A workload with `escalate`: a better model is asked where the answer of a cheap one is not good enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.simulators import Fault, Script, Turn
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import openai_client
from support.talk import ask

TABLE = """
[workloads.careful]
model = "deepseek/deepseek-r1"
escalate = ["anthropic/claude-haiku-4-5"]
"""
MESSAGES = [{"role": "user", "content": "What is 27 * 43?"}]
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "product",
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}


def cheap(text: str, **fields: Any) -> Simulator:
    turn = Turn(text=text, usage=Usage(input_tokens=1000, answer_tokens=100), **fields)
    return Simulator("deepseek", script=Script(turns=(turn,)), models=["deepseek-r1"])


def dear(text: str = "1161") -> Simulator:
    return Simulator("anthropic", script=Script(turns=(Turn(text=text),)), models=["claude-haiku-4-5"])


@pytest.fixture(scope="module")
def unsure() -> Iterator[House]:
    with house([cheap("I'm not sure; perhaps 1000."), dear()], toml=TABLE) as it:
        yield it


@pytest.fixture(scope="module")
def sure() -> Iterator[House]:
    with house([cheap("1161"), dear()], toml=TABLE) as it:
        yield it


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "gemini"])
def test_an_unsure_answer_leads_to_the_next_model(unsure: House, client: str, stream: bool) -> None:
    answer = ask(unsure.address, client, "bardo/careful", stream=stream)
    assert answer.status == 200
    assert answer.headers["x-bardo-provider"] == "anthropic"
    assert "escalated" in answer.headers["x-bardo-degraded"].split(", ")
    assert b"perhaps 1000" not in answer.body
    assert b"1161" in answer.body


@pytest.mark.parametrize("stream", [False, True])
def test_a_good_answer_is_that_of_the_cheap_model(sure: House, stream: bool) -> None:
    before = len(sure.arrived("anthropic"))
    answer = ask(sure.address, "openai_chat", "bardo/careful", stream=stream)
    assert answer.headers["x-bardo-provider"] == "deepseek"
    assert b"1161" in answer.body
    assert len(sure.arrived("anthropic")) == before
    # A stream that is held until it is judged says so.
    assert ("stream" in answer.headers.get("x-bardo-degraded", "").split(", ")) is stream


def test_both_calls_are_in_the_log_and_in_the_receipt_with_what_they_cost(unsure: House) -> None:
    with closing(openai_client(unsure.address)) as client:
        asked = {"bardo": {"include": ["receipt"]}}
        reply = client.chat.completions.create(model="bardo/careful", messages=MESSAGES, extra_body=asked)  # type: ignore[arg-type]
        told = reply.model_extra["bardo"]  # type: ignore[index]
    cascade = told["receipt"]["route"]["cascade"]
    first = cascade["calls"][0]
    assert (first["provider"], first["model"], first["verdict"]) == ("deepseek", "deepseek-r1", "unsure")
    assert (first["input_tokens"], first["output_tokens"]) == (1000, 100)
    rows = {unsure.log.row(told["request_id"]).provider, unsure.log.row(first["request_id"]).provider}
    assert rows == {"anthropic", "deepseek"}
    # 1000 tokens at $0.55 and 100 at $2.19 per million.
    assert first["cost_nanos"] == 769_000
    assert cascade["cost_usd"] == first["cost_usd"] == 0.000769


def test_an_answer_that_does_not_fit_its_schema_leads_to_the_next_model() -> None:
    with (
        house([cheap("no JSON at all"), dear('{"n": 1161}')], toml=TABLE) as it,
        closing(openai_client(it.address)) as client,
    ):
        reply = client.chat.completions.create(model="bardo/careful", messages=MESSAGES, response_format=SCHEMA)  # type: ignore[call-overload]
        assert reply.choices[0].message.content.replace(" ", "") == '{"n":1161}'
        assert len(it.arrived("deepseek")) == 1


def test_a_call_that_fails_leads_to_the_next_model() -> None:
    with house([cheap("x", fault=Fault("status", status=500)), dear()], toml=TABLE) as it:
        answer = ask(it.address, "openai_chat", "bardo/careful", stream=False)
        assert answer.headers["x-bardo-provider"] == "anthropic"


def test_who_names_the_model_gets_that_one(unsure: House) -> None:
    with closing(openai_client(unsure.address)) as client:
        asked = {"bardo": {"intent": {"model": "deepseek/deepseek-r1"}}}
        reply = client.chat.completions.create(model="bardo/careful", messages=MESSAGES, extra_body=asked)  # type: ignore[arg-type]
    assert "not sure" in str(reply.choices[0].message.content)
