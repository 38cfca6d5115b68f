"""Tokens are counted by the provider that would be asked, where it counts any; an estimate says that it is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from bardo.simulators.faults import Fault
from support.any_model import Simulator
from support.gateway import House, house
from support.sdk import anthropic_client, gemini_client, openai_client
from support.talk import request

QUESTION = "What is the weather in Paris?"
TOOL = {"name": "weather", "description": "Tell the weather", "input_schema": {"type": "object"}}
COUNTING = (
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-2.5-flash",
    "openai_responses/gpt-5",
    "bedrock/amazon.nova-pro",
)
ESTIMATED = ("deepseek/m1", "cohere/command-a", "ollama_native/m1")
each_model = pytest.mark.parametrize("model", [*COUNTING, *ESTIMATED])


@pytest.fixture(scope="module")
def anthropic_sdk(town: House) -> Iterator[Any]:
    with closing(anthropic_client(town.address)) as client:
        yield client


@pytest.fixture(scope="module")
def openai_sdk(town: House) -> Iterator[Any]:
    with closing(openai_client(town.address)) as client:
        yield client


@pytest.fixture(scope="module")
def google_sdk(town: House) -> Iterator[Any]:
    with closing(gemini_client(town.address)) as client:
        yield client


def check(town: House, headers: Any, model: str, body: Any) -> None:
    """Check what is said beside a count, and its row in the log."""
    approx = model in ESTIMATED
    assert ("input_tokens" in headers.get("x-bardo-degraded", "")) is approx
    assert body.get("bardo") == ({"tokens_approx": True} if approx else None)
    row = town.log.row(headers["x-bardo-request-id"])
    assert (row.operation, row.outcome, row.tokens_approx, row.attempts) == (
        "count_tokens",
        "ok",
        approx,
        int(not approx),
    )
    assert row.input_tokens is None
    assert row.receipt is not None
    assert row.receipt["input_tokens"] > 0


@each_model
def test_anthropics_library_counts_by_every_provider(town: House, anthropic_sdk: Any, model: str) -> None:
    counted = anthropic_sdk.messages.with_raw_response.count_tokens(
        model=model, messages=[{"role": "user", "content": QUESTION}], tools=[TOOL], system="Be brief."
    )
    assert counted.parse().input_tokens > 8
    check(town, counted.headers, model, json.loads(counted.http_response.content))


@each_model
def test_openais_library_counts_by_every_provider(town: House, openai_sdk: Any, model: str) -> None:
    counted = openai_sdk.responses.input_tokens.with_raw_response.count(
        model=model, input=QUESTION, instructions="Be brief.", reasoning={"effort": "low"}
    )
    assert counted.parse().object == "response.input_tokens"
    assert counted.parse().input_tokens > 6
    check(town, counted.headers, model, json.loads(counted.http_response.content))


@each_model
def test_googles_library_counts_by_every_provider(google_sdk: Any, model: str) -> None:
    assert google_sdk.models.count_tokens(model=model, contents=QUESTION).total_tokens > 6


@each_model
def test_a_whole_request_of_geminis_is_counted(town: House, model: str) -> None:
    contents = [{"role": "user", "parts": [{"text": QUESTION}]}]
    inner = {"model": "models/x", "contents": contents, "systemInstruction": {"parts": [{"text": "Be brief."}]}}
    path = f"/v1beta/models/{model}:countTokens"
    alone = request(town.address, "POST", path, {"contents": contents})
    whole = request(town.address, "POST", path, {"generateContentRequest": inner})
    assert whole.json["totalTokens"] >= alone.json["totalTokens"] > 0
    check(town, whole.headers, model, whole.json)


def test_only_what_has_tokens_is_sent(town: House) -> None:
    body = {"model": "anthropic/claude-sonnet-4-5", "messages": [{"role": "user", "content": "x"}]}
    answer = request(town.address, "POST", "/v1/messages/count_tokens", body)
    assert answer.status == 200
    assert town.arrived("anthropic")[-1].path == "/v1/messages/count_tokens"
    assert town.last("anthropic") == {"model": "claude-sonnet-4-5", "messages": body["messages"]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", {"model": "nobody-has-this", "messages": [{"role": "user", "content": "x"}]}),
        ("/v1/responses/input_tokens", {"model": "nobody-has-this", "input": "x"}),
        ("/v1beta/models/nobody-has-this:countTokens", {"contents": [{"parts": [{"text": "x"}]}]}),
    ],
)
def test_a_model_that_nobody_serves_is_not_found(town: House, path: str, body: Any) -> None:
    answer = request(town.address, "POST", path, body)
    assert answer.status == 404
    assert "nobody-has-this" in answer.text


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_the_endpoint_gets_an_estimate(status: int) -> None:
    only = Simulator("anthropic", models=["m"])
    with house([only], each={"models": ("m",)}) as running, closing(anthropic_client(running.address)) as client:
        only.fail(Fault(kind="status", status=status))
        asked = client.messages.with_raw_response.count_tokens(
            model="m", messages=[{"role": "user", "content": QUESTION}]
        )
        assert asked.parse().input_tokens > 0
        assert asked.headers["x-bardo-degraded"] == "input_tokens"


def test_a_provider_that_fails_is_followed_by_the_next() -> None:
    first, second = Simulator("anthropic", models=["m"]), Simulator("openai_responses", models=["m"])
    with (
        house([first, second], each={"models": ("m",)}) as running,
        closing(anthropic_client(running.address)) as client,
    ):
        first.fail(Fault(kind="status", status=529))
        asked = client.messages.with_raw_response.count_tokens(
            model="m", messages=[{"role": "user", "content": QUESTION}]
        )
        assert asked.headers["x-bardo-provider"] == "openai_responses"
        assert "provider" in asked.headers["x-bardo-degraded"]


def test_an_error_of_the_provider_is_raised_in_the_clients_dialect() -> None:
    import anthropic

    only = Simulator("anthropic", models=["m"])
    with house([only], each={"models": ("m",)}) as running, closing(anthropic_client(running.address)) as client:
        only.fail(Fault(kind="status", status=429))
        with pytest.raises(anthropic.RateLimitError):
            client.messages.count_tokens(model="m", messages=[{"role": "user", "content": QUESTION}])
