"""The gateway's knowledge of its providers: who is down is asked last and tried again, and GET /v1/bardo/health shows it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest

from bardo.simulators import Fault
from support.any_model import Simulator
from support.gateway import SECRET, House, house
from support.patience import PATIENCE
from support.talk import ask
from surfaces.gateway.cells import whole_and_streamed

MODEL = "shared-model"


def chain(*simulators: Simulator) -> AbstractContextManager[House]:
    """Run a gateway whose providers, in this order, all list the model."""
    return house(simulators, each={"models": (MODEL,)})


def report(running: House) -> dict[str, Any]:
    """Return what the gateway says of each provider."""
    with urllib.request.urlopen(f"{running.address}/v1/bardo/health") as reply:
        body = reply.read()
    assert SECRET.encode() not in body
    return {one["provider"]: one for one in json.loads(body)["providers"]}


def model_health(running: House, provider: str) -> dict[str, Any]:
    (found,) = report(running)[provider]["models"]
    assert isinstance(found, dict)
    return found


def asked_times(running: House, providers: Sequence[str]) -> list[int]:
    return [len(running.arrived(one)) for one in providers]


@whole_and_streamed
def test_a_provider_whose_calls_fail_is_asked_last_and_the_receipt_says_why(stream: bool) -> None:
    with chain(Simulator("deepseek", fault=Fault("status", status=500)), Simulator("anthropic")) as running:
        for _ in range(3):
            assert ask(running.address, "openai_chat", MODEL, stream=stream).status == 200
        assert model_health(running, "deepseek")["state"] == "down"
        before = asked_times(running, ["deepseek", "anthropic"])
        answer = ask(running.address, "openai_chat", MODEL, stream=stream, bardo={"include": ["receipt"]})
        assert answer.headers["x-bardo-provider"] == "anthropic"
        assert "deepseek/shared-model is down" in answer.text
        assert asked_times(running, ["deepseek", "anthropic"]) == [before[0], before[1] + 1]


def test_where_all_are_down_the_first_to_be_due_is_asked_all_the_same() -> None:
    with chain(Simulator("deepseek", fault=Fault("status", status=500))) as running:
        for _ in range(4):
            assert ask(running.address, "openai_chat", MODEL).status == 500
        assert model_health(running, "deepseek")["state"] == "down"
        running.simulators["deepseek"].fail(None)
        assert ask(running.address, "openai_chat", MODEL).status == 200


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_requests_that_are_wrong_take_no_provider_down(status: int) -> None:
    with chain(Simulator("deepseek", fault=Fault("status", status=status))) as running:
        for _ in range(8):
            assert ask(running.address, "openai_chat", MODEL).status == status
        assert report(running)["deepseek"]["models"] == []


@pytest.mark.parametrize("kind", ["cut", "malformed", "error-event", "early-end"])
def test_replies_that_break_count(kind: Any) -> None:
    with chain(Simulator("anthropic", fault=Fault(kind, after=4))) as running:
        for _ in range(6):
            ask(running.address, "openai_chat", MODEL, stream=True)
        found = model_health(running, "anthropic")
        assert found["state"] == "down"
        assert found["failed"] == found["calls"] >= 5


def test_a_rate_limit_is_waited_for_and_is_no_fault() -> None:
    first = Simulator("deepseek", fault=Fault("status", status=429, retry_after=40, times=1))
    with chain(first, Simulator("anthropic")) as running:
        assert ask(running.address, "openai_chat", MODEL).headers["x-bardo-provider"] == "anthropic"
        answer = ask(running.address, "openai_chat", MODEL, bardo={"include": ["receipt"]})
        assert answer.headers["x-bardo-provider"] == "anthropic"
        assert "rate limit" in answer.text
        assert asked_times(running, ["deepseek"]) == [1]
        connection = report(running)["deepseek"]
        (key,) = connection["keys"]
        assert (key["state"], key["models"]) == ("resting", [MODEL])
        assert 0 < key["wait_seconds"] <= 40


def test_a_key_that_is_refused_takes_its_provider_to_the_end() -> None:
    with chain(Simulator("deepseek", key="another"), Simulator("anthropic")) as running:
        for _ in range(3):
            assert ask(running.address, "openai_chat", MODEL).headers["x-bardo-provider"] == "anthropic"
        assert asked_times(running, ["deepseek"]) == [1]
        assert report(running)["deepseek"]["connection"]["state"] == "down"


def test_the_report_shows_latency_and_counts() -> None:
    with chain(Simulator("deepseek")) as running:
        for _ in range(12):
            assert ask(running.address, "openai_chat", MODEL, stream=True).status == 200
        found = model_health(running, "deepseek")
        assert (found["state"], found["calls"], found["failed"], found["faults"]) == ("healthy", 12, 0, {})
        latency = found["latency"]
        assert 0 <= latency["first_token_p50_ms"] <= latency["first_token_p95_ms"]
        assert latency["calls"] == 12


def test_one_of_two_calls_at_once_tries_a_provider_that_is_due() -> None:
    """The first call is held at the provider; the second one passes it over."""
    first = Simulator("deepseek", fault=Fault("status", status=500))
    settings = "[health]\nrest_seconds = 0.001\nmost_rest_seconds = 0.001\n"
    with house([first, Simulator("anthropic")], each={"models": (MODEL,)}, toml=settings) as running:
        for _ in range(3):
            ask(running.address, "openai_chat", MODEL)
        assert model_health(running, "deepseek")["state"] == "down"
        first.fail(None)
        gate = first.hold()
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(ask, running.address, "openai_chat", MODEL)
            gate.wait(PATIENCE)
            assert ask(running.address, "openai_chat", MODEL).headers["x-bardo-provider"] == "anthropic"
            gate.release()
            assert held.result(PATIENCE).headers["x-bardo-provider"] == "deepseek"
        assert model_health(running, "deepseek")["state"] == "unknown"
        assert ask(running.address, "openai_chat", MODEL).headers["x-bardo-provider"] == "deepseek"


def test_what_google_says_in_its_refusal_is_waited_for() -> None:
    first = Simulator("gemini", fault=Fault("status", status=429, retry_after=3_000, times=1))
    with chain(first, Simulator("anthropic")) as running:
        assert ask(running.address, "openai_chat", MODEL).headers["x-bardo-provider"] == "anthropic"
        (key,) = report(running)["gemini"]["keys"]
        assert 3_000 - PATIENCE < key["wait_seconds"] <= 3_000


def test_a_stream_without_a_first_token_in_time_counts() -> None:
    settings = "[failover]\nfirst_token_seconds = 0.05\nretries = 0\n"
    first = Simulator("deepseek", fault=Fault("stall", after=0))
    with house([first, Simulator("anthropic")], each={"models": (MODEL,)}, toml=settings) as running:
        assert ask(running.address, "openai_chat", MODEL, stream=True).status in (200, 504)
        assert model_health(running, "deepseek")["faults"] == {"timeout": 1}
