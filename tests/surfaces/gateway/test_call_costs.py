"""What a call cost is told in the reply, its headers and the log, by cause, and is the sum of its attempts."""

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

PRICES = """
[[prices]]
match = ["m1"]
input = 3.0
output = 15.0
from = 2026-01-01
"""
MESSAGES: Any = [{"role": "user", "content": "What is 27 * 43?"}]


def priced(provider: str = "vllm", **fields: Any) -> Simulator:
    turn = Turn(text="1161", usage=Usage(input_tokens=1000, answer_tokens=100), **fields)
    return Simulator(provider, script=Script(turns=(turn,)), models=["m1"])


@pytest.fixture(scope="module")
def lab() -> Iterator[House]:
    with house([priced()], toml=PRICES) as it:
        yield it


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "gemini"])
def test_the_header_and_the_row_tell_the_exact_cost(lab: House, client: str) -> None:
    answer = ask(lab.address, client, "vllm/m1")
    row = lab.log.row(answer.headers["x-bardo-request-id"])
    assert answer.headers["x-bardo-cost-usd"] == "0.0045"
    assert (row.cost_nanos, row.cost_parts) == (4_500_000, {"input": 3_000_000, "answer": 1_500_000})
    assert (row.cost_usd, row.price_source, row.attempt_records) == (0.0045, "operator", ())


@pytest.mark.parametrize("stream", [False, True])
def test_the_reply_tells_cost_and_attempts_where_it_is_asked_for(lab: House, stream: bool) -> None:
    with closing(openai_client(lab.address)) as client:
        reply: Any = client.chat.completions.create(
            model="vllm/m1", messages=MESSAGES, stream=stream, extra_body={"bardo": {"include": ["receipt"]}}
        )
        told = [
            one.model_extra["bardo"] for one in (reply if stream else [reply]) if "bardo" in (one.model_extra or {})
        ]
    (bardo,) = told
    assert bardo["cost"]["nanos"] == 4_500_000
    assert sum(bardo["cost"]["parts"].values()) == 4_500_000
    assert [(one["cause"], one["provider"], one["usd"]) for one in bardo["attempts"]] == [("first", "vllm", 0.0045)]


def test_a_refused_attempt_costs_nothing_and_is_in_the_log_with_its_cause() -> None:
    down = Simulator("deepseek", models=["m1"], fault=Fault("status", status=404))
    with house([down, priced()], toml=PRICES, each={"models": ("m1",)}) as it:
        answer = ask(it.address, "openai_chat", "m1")
        row = it.log.row(answer.headers["x-bardo-request-id"])
    assert answer.status == 200
    assert row.cost_nanos == 4_500_000
    first, *_, last = row.attempt_records
    assert (first.cause, first.provider, first.nanos) == ("first", "deepseek", 0)
    assert (last.cause, last.provider, last.nanos) == ("failover", "vllm", 4_500_000)


def test_a_stream_that_broke_costs_what_passed_of_it() -> None:
    cut = Simulator("vllm", models=["m1"], fault=Fault("cut", after=4))
    with house([cut], toml=PRICES) as it:
        answer = ask(it.address, "openai_chat", "vllm/m1", stream=True)
        row = it.log.row(answer.headers["x-bardo-request-id"])
    assert (row.outcome, row.tokens_approx) == ("broken", True)
    assert row.input_tokens
    assert row.output_tokens
    assert row.cost_nanos == row.input_tokens * 3_000 + row.output_tokens * 15_000


def test_a_model_without_a_price_has_no_known_cost() -> None:
    with house([priced()]) as it:
        answer = ask(it.address, "openai_chat", "vllm/m1")
        row = it.log.row(answer.headers["x-bardo-request-id"])
    assert "x-bardo-cost-usd" not in answer.headers
    assert (row.cost_nanos, row.cost_usd) == (None, None)
