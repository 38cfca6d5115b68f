"""What passed of a reply that did not come to its end is counted, priced and charged, whoever asked and whoever answered."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from bardo.adapters.stores.log.row import LogRow
from bardo.simulators import Fault, Incoming, Script, Turn
from bardo.simulators.delivery import Action, End, Head, Pause, Send
from bardo.simulators.turns import Usage
from bardo.surfaces.gateway.answer import Draining
from support.any_model import Simulator
from support.gateway import Watched, house, model_of
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.patience import PATIENCE
from support.talk import ALL_CLIENTS, Caller, ask, body_for, path_for

TEXT = " ".join(f"word{place}" for place in range(400))
"""Some 3,000 letters: 730 tokens by their number."""
UPSTREAMS = ["anthropic", "deepseek", "gemini", "openai_responses", "cohere", "ollama", "bedrock"]


def talker(provider: str, **options: Any) -> Simulator:
    turn = Turn(text=TEXT, usage=Usage(input_tokens=1000, answer_tokens=700))
    return Simulator(provider, script=Script(turns=(turn,)), **options)


def letters_of(row: LogRow) -> float:
    assert row.output_tokens is not None
    return row.output_tokens * 4


@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("provider", UPSTREAMS)
def test_a_stream_that_breaks_is_counted_priced_and_marked(client: str, provider: str) -> None:
    cut = talker(provider, fault=Fault("cut", after=40))
    with house([cut], toml=PRICE) as running:
        ask(running.address, client, model_of(provider), stream=True)
        (row,) = running.log.wait(lambda _: True)
    assert (row.outcome, row.tokens_approx) == ("broken", True)
    assert row.input_tokens
    assert 0 < letters_of(row) < len(TEXT)
    assert row.cost_nanos == row.input_tokens * 1_000 + (row.output_tokens or 0) * 10_000


@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("provider", UPSTREAMS)
def test_a_whole_reply_that_breaks_is_counted_priced_and_marked(client: str, provider: str) -> None:
    cut = talker(provider, fault=Fault("cut"))
    with house([cut], toml=PRICE) as running:
        ask(running.address, client, model_of(provider))
        (row,) = running.log.wait(lambda _: True)
    assert (row.outcome, row.tokens_approx) == ("error", True)
    assert row.input_tokens
    assert 0 < letters_of(row) < len(TEXT)
    assert row.cost_nanos == row.attempts * (row.input_tokens * 1_000 + (row.output_tokens or 0) * 10_000)


class Story(Simulator):
    """Claude, which says one token was written, then sends `pieces` of a text, and either stays silent or breaks off."""

    PIECE = ("A long story of many words that goes on. " * 48)[:1932]
    LAST = "The last word".ljust(1932, ".")

    def __init__(self, *, pieces: int, breaks: bool, between: float = 0.0) -> None:
        super().__init__("anthropic")
        self._between = between
        self._pieces = pieces
        self._breaks = breaks

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        usage = {
            "input_tokens": 12,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 50,
            "output_tokens": 1,
        }
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
        yield Head(200, (("content-type", "text/event-stream"),), None)
        yield Send(frame({"type": "message_start", "message": message}))
        yield Send(frame({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))
        for place in range(self._pieces):
            if self._between:
                yield Pause(self._between)
            delta = {"type": "text_delta", "text": self.LAST if place == self._pieces - 1 else self.PIECE}
            yield Send(frame({"type": "content_block_delta", "index": 0, "delta": delta}))
        yield Pause(0.0 if self._breaks else 4 * PATIENCE)
        yield End()


def frame(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"], ids=["translated", "forwarded"])
def test_a_stream_that_breaks_after_its_preliminary_count_is_counted_by_its_text(client: str) -> None:
    with house([Story(pieces=100, breaks=True)], toml=PRICE) as running:
        ask(running.address, client, model_of("anthropic"), stream=True)
        (row,) = running.log.wait(lambda _: True)
    assert (row.outcome, row.tokens_approx) == ("broken", True)
    assert row.output_tokens == pytest.approx(100 * 1932 / 4, rel=0.01)
    assert (row.input_tokens, row.cached_input_tokens, row.cache_write_tokens) == (162, 100, 50)
    assert row.cost_parts is not None
    assert {"input", "cache_read", "cache_write", "answer"} == set(row.cost_parts)


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"], ids=["translated", "forwarded"])
def test_a_client_that_leaves_pays_for_what_passed_and_no_more(tmp_path: Path, client: str) -> None:
    with keyed_gateway(tmp_path, [Story(pieces=100, breaks=False)], toml=PRICE) as gateway:
        key = gateway.key(usd_per_day=5.0, tokens_per_minute=1_000_000)
        model = model_of("anthropic")
        body = body_for(client, model, stream=True) | {"max_tokens": 32_000}
        with Caller(gateway.address, path_for(client, model, stream=True), body, key=key) as caller:
            caller.hear(Story.LAST.encode())
        usage = until_counted(gateway, key)
    passed = 100 * 1932 / 4 * 10 / 1e6
    assert usage["limits"]["usd_per_day"]["used"] == pytest.approx(passed, rel=0.3)
    assert usage["today"]["spent_usd"] == pytest.approx(passed, rel=0.3)
    assert 20_000 < usage["limits"]["tokens_per_minute"]["used"] < 60_000


def until_counted(gateway: KeyedGateway, key: str) -> Any:
    """Return the usage of a key once its one call has ended, and is counted once."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        told = httpx.get(f"{gateway.address}/v1/bardo/usage", headers={"authorization": f"Bearer {key}"}).json()
        if told["today"]["calls"] and not told["today"]["reserved_usd"]:
            return told
    raise AssertionError("the call was never logged")


@pytest.mark.parametrize(
    ("toml", "own", "status", "counted"),
    [
        ("", "", 403, 0.0),
        ("", "refuse", 403, 0.0),
        ('[budgets]\nunknown_cost = "estimate"', "", 200, 1000 * 5e-6 + 700 * 25e-6),
        (
            '[budgets]\nunknown_cost = "estimate"\nassumed_usd_per_million_output = 100',
            "",
            200,
            1000 * 5e-6 + 700 * 1e-4,
        ),
        ("", "estimate", 200, 1000 * 5e-6 + 700 * 25e-6),
        ('[budgets]\nunknown_cost = "allow"', "", 200, 0.0),
        ('[budgets]\nunknown_cost = "nothing"', "", 200, 0.0),
        ('[budgets]\nunknown_cost = "allow"', "refuse", 403, 0.0),
    ],
)
def test_a_key_with_a_budget_asks_a_model_without_a_price_as_it_is_told(
    tmp_path: Path, toml: str, own: str, status: int, counted: float
) -> None:
    with keyed_gateway(tmp_path, [talker("vllm")], toml=toml) as gateway:
        key = gateway.key(usd_per_day=1.0, unknown_cost=own)
        answer = asked(gateway, key, "vllm/m1")
        assert answer.status_code == status
        told = answer.text
        if status == 403:
            assert "unknown_cost" in told
            assert "vllm/m1" in told
            assert not [one for one in gateway.servers["vllm"].requests if one.method == "POST"]
            return
        usage = until_ended(gateway, key)
        assert usage["limits"]["usd_per_day"]["used"] == pytest.approx(counted)
        assert usage["today"]["spent_usd"] == 0
        assert usage["today"]["reserved_usd"] == pytest.approx(counted)


def test_a_server_that_is_known_to_cost_nothing_is_asked_under_a_budget(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [talker("ollama")]) as gateway:
        assert asked(gateway, gateway.key(usd_per_day=1.0), "ollama/m1").status_code == 200


def test_a_key_without_a_budget_asks_what_it_likes(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [talker("vllm")]) as gateway:
        assert asked(gateway, gateway.key(tokens_per_minute=100_000), "vllm/m1").status_code == 200


def test_a_budget_leaves_out_the_servers_without_a_price_and_says_so(tmp_path: Path) -> None:
    priced = PRICE.replace('"*"', '"m1"').replace("[[prices]]", '[[prices]]\nprovider = "deepseek"')
    with keyed_gateway(
        tmp_path, [talker("vllm", models=["m1"]), talker("deepseek", models=["m1"])], toml=priced
    ) as gateway:
        answer = asked(gateway, gateway.key(usd_per_day=1.0), "m1")
    assert answer.status_code == 200
    assert answer.headers["x-bardo-provider"] == "deepseek"
    assert answer.headers["x-bardo-degraded"] == "model"


def asked(gateway: KeyedGateway, key: str, model: str) -> httpx.Response:
    """Ask a model with a key, and return the answer."""
    body = {"model": model, "messages": [{"role": "user", "content": "Tell"}], "max_tokens": 1_000}
    url, headers = f"{gateway.address}/v1/chat/completions", {"authorization": f"Bearer {key}"}
    return httpx.post(url, json=body, headers=headers, timeout=PATIENCE)


def until_ended(gateway: KeyedGateway, key: str) -> Any:
    """Return the usage of a key once the row of its call is stored."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        told = httpx.get(f"{gateway.address}/v1/bardo/usage", headers={"authorization": f"Bearer {key}"}).json()
        if told["today"]["calls"]:
            return told
    raise AssertionError("the call was never logged")


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Tell when the gateway has seen that its client left."""
    seen, leave = threading.Event(), Draining.leave

    def note(draining: Draining, cancel: Callable[[], object]) -> None:
        leave(draining, cancel)
        seen.set()

    monkeypatch.setattr(Draining, "leave", note)
    return seen


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_the_reply_of_a_client_that_left_is_read_to_its_end_for_the_exact_figure(
    client: str, stream: bool, left: threading.Event
) -> None:
    provider = talker("deepseek")
    gate = provider.hold(after=30 if stream else 0)
    with house([provider], toml=PRICE, gateway={"drain_cancelled": True}) as running:
        body = body_for(client, "deepseek/m1", stream=stream)
        with Caller(running.address, path_for(client, "deepseek/m1", stream=stream), body) as caller:
            if stream:
                caller.hear(b"word1")
            else:
                until(lambda: bool(running.arrived("deepseek")))
        assert left.wait(PATIENCE)
        gate.release()
        (row,) = running.log.wait(lambda _: True)
    assert (row.outcome, row.tokens_approx) == ("cancelled", False)
    assert (row.input_tokens, row.output_tokens) == (1000, 700)
    assert row.cost_nanos == 1000 * 1_000 + 700 * 10_000


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_of_several_prompts_the_one_that_is_answered_is_read_on_and_no_other_is_asked(
    stream: bool, left: threading.Event
) -> None:
    provider = talker("deepseek")
    gate = provider.hold(after=30 if stream else 0)
    with house([provider], toml=PRICE, gateway={"drain_cancelled": True}) as running:
        body = {"model": "deepseek/m1", "prompt": ["Tell", "More"], "stream": stream}
        with Caller(running.address, "/v1/completions", body) as caller:
            if stream:
                caller.hear(b"word1")
            else:
                until(lambda: bool(running.arrived("deepseek")))
        assert left.wait(PATIENCE)
        gate.release()
        (row,) = running.log.wait(lambda _: True)
    assert len(running.arrived("deepseek")) == 1
    assert (row.outcome, row.tokens_approx, row.output_tokens) == ("cancelled", False, 700)


@pytest.mark.parametrize(
    ("gateway", "own"),
    [
        ({"drain_cancelled": True, "drain_seconds": 0.05}, {}),
        ({"drain_cancelled": True}, {"drain_cancelled": False}),
        ({}, {"drain_cancelled": True}),
    ],
    ids=["bound-of-seconds", "provider-says-no", "provider-says-yes"],
)
def test_a_reply_is_read_on_within_its_bound_and_as_its_provider_says(
    gateway: dict[str, Any], own: dict[str, Any], left: threading.Event
) -> None:
    provider = Watched(
        "deepseek", script=Script(turns=(Turn(text=TEXT, usage=Usage(input_tokens=1000, answer_tokens=700)),))
    )
    gate = provider.hold(after=30)
    with house([provider], toml=PRICE, gateway=gateway, each=own) as running:
        body = body_for("openai_chat", "deepseek/m1", stream=True)
        with Caller(running.address, path_for("openai_chat", "deepseek/m1", stream=True), body) as caller:
            caller.hear(b"word1")
        assert left.wait(PATIENCE)
        if own.get("drain_cancelled"):
            gate.release()
        (row,) = running.log.wait(lambda _: True)
        gate.release()
    assert row.outcome == "cancelled"
    assert row.tokens_approx is not own.get("drain_cancelled", False)


def test_a_reply_that_brings_more_tokens_than_its_bound_is_let_go_of() -> None:
    gateway = {"drain_cancelled": True, "drain_tokens": 100, "drain_seconds": 4 * PATIENCE}
    with house([Story(pieces=10_000, breaks=False, between=0.01)], toml=PRICE, gateway=gateway) as running:
        model = model_of("anthropic")
        body = body_for("anthropic_messages", model, stream=True)
        with Caller(running.address, path_for("anthropic_messages", model, stream=True), body) as caller:
            caller.hear(b"content_block_start")
        (row,) = running.log.wait(lambda _: True)
    assert (row.outcome, row.tokens_approx) == ("cancelled", True)


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages", "gemini"])
def test_an_answer_that_goes_on_behind_its_budget_is_ended_in_its_clients_words(tmp_path: Path, client: str) -> None:
    toml = PRICE + '[budgets]\noverrun = "cut"\n'
    with keyed_gateway(tmp_path, [Story(pieces=10_000, breaks=False, between=0.002)], toml=toml) as gateway:
        key, model = gateway.key(usd_per_day=0.1), model_of("anthropic")
        body = body_for(client, model, stream=True)
        with Caller(gateway.address, path_for(client, model, stream=True), body, key=key) as caller:
            caller.hear(b"is spent, and the answer was ended")
        refused = asked(gateway, key, model)
        usage = until_counted(gateway, key)
    assert refused.status_code == 429
    assert usage["today"]["spent_usd"] > 0.1
    assert usage["by_model"][0]["failed"] == 1


class Closed(Story):
    """A story that tells how many of it were begun, and when the connection of each was closed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.begun = 0
        self.closed = threading.Semaphore(0)

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        # Its list of models is asked for, too.
        self.begun += incoming.method == "POST"
        try:
            yield from super().actions(incoming)
        finally:
            if incoming.method == "POST":
                self.closed.release()


def hear_the_end(caller: Caller) -> None:
    """Read until an answer is cut, or until the connection of a call that was refused is closed."""
    try:
        caller.hear(b"is spent")
    except AssertionError:
        assert b"may cost more" in caller.heard, bytes(caller.heard[-500:])


def test_many_answers_that_go_on_behind_their_budget_end_near_it(tmp_path: Path) -> None:
    calls, budget, toml = 20, 0.5, PRICE + '[budgets]\noverrun = "cut"\n'
    upstream = Closed(pieces=10_000, breaks=False)
    with keyed_gateway(tmp_path, [upstream], toml=toml) as gateway, ExitStack() as stack:
        key, model = gateway.key(usd_per_day=budget), model_of("anthropic")
        callers = []
        for number in range(calls):
            client = ["openai_chat", "anthropic_messages"][number % 2]
            body = body_for(client, model, stream=True) | {"max_tokens": 100}
            path = path_for(client, model, stream=True)
            callers.append(stack.enter_context(Caller(gateway.address, path, body, key=key)))
        with ThreadPoolExecutor(calls) as readers:
            list(readers.map(hear_the_end, callers))
        # A call that comes when the others have spent the budget is refused, and never reaches the provider.
        begun = upstream.begun
        for _ in range(begun):
            assert upstream.closed.acquire(timeout=PATIENCE)
        until(lambda: until_ended(gateway, key)["today"]["calls"] >= begun)
        usage = until_ended(gateway, key)
    # Calls that were cut before a word of them came count as estimated: they are reserved.
    assert usage["today"]["spent_usd"] == pytest.approx(budget, rel=0.2)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)
