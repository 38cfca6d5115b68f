"""A provider for the tests of somebody's program: every preset, what it tells, what it can be told, and that it goes away."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from openai import NotFoundError, OpenAI

from bardo.simulators import (
    Conversation,
    Fault,
    Script,
    SimulatedProvider,
    Turn,
    Usage,
    presets,
    provider_fixture,
    simulate,
)
from bardo.simulators.gates import Gate
from simulators.support import body_for, headers_for, path_for
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python

vllm = provider_fixture("vllm", turns=["one", "two"], in_order=True)
shared = provider_fixture("groq", "shared", scope="module")
forms = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def ask(
    provider: SimulatedProvider, *, streamed: bool = False, key: str = "k", **fields: Any
) -> tuple[int, dict[str, str], bytes]:
    """Ask over plain HTTP, as a program without any library would."""
    body = json.dumps(body_for(provider.name, model=provider.model, streamed=streamed) | fields).encode()
    connection = http.client.HTTPConnection(urlsplit(provider.root).netloc, timeout=PATIENCE)
    try:
        path = path_for(provider.name, provider.model, streamed=streamed)
        connection.request("POST", path, body, headers_for(provider.name, key))
        reply = connection.getresponse()
        return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    finally:
        connection.close()


def said(provider: SimulatedProvider) -> str:
    """Give what a Chat Completions provider answers."""
    status, _, body = ask(provider)
    assert status == 200
    text: str = json.loads(body)["choices"][0]["message"]["content"]
    return text


def threads() -> list[str]:
    """Give the threads of the tests' own providers; others may have some that live longer."""
    return [thread.name for thread in threading.enumerate() if thread.name == "simulator-vllm"]


@forms
@pytest.mark.parametrize("preset", presets())
def test_every_preset_plays_its_turns(preset: str, streamed: bool) -> None:
    turn = Turn(reasoning="I think.", text="Scripted.", usage=Usage(100, 10, 30))
    with simulate(preset, turn, delta_size=1000) as provider:
        status, headers, body = ask(provider, streamed=streamed)
        (request,) = provider.requests
    assert status == 200
    assert ("content-length" in headers) is not streamed
    assert b"Scripted." in body
    assert request.method == "POST"
    assert request.path == unquote(urlsplit(path_for(preset, provider.model, streamed=streamed)).path)
    assert request.body == body_for(preset, model=provider.model, streamed=streamed)


@pytest.mark.parametrize("preset", presets())
def test_no_key_is_shown(preset: str) -> None:
    with simulate(preset) as provider:
        ask(provider, key="sk-very-secret")
        assert "very-secret" not in repr(provider.requests)
        assert "***" in provider.requests[0].headers.values()


def test_a_key_in_the_address_is_not_shown_either() -> None:
    with simulate("gemini") as provider:
        connection = http.client.HTTPConnection(urlsplit(provider.root).netloc, timeout=PATIENCE)
        connection.request("GET", "/v1beta/models?key=sk-very-secret&pageSize=5")
        assert connection.getresponse().status == 200
        connection.close()
        assert provider.requests[0].query == {"key": "***", "pageSize": "5"}


def test_only_the_named_key_and_models_are_taken() -> None:
    with simulate("openai_chat", key="right", models=["only-this"]) as provider:
        assert (provider.api_key, provider.model) == ("right", "only-this")
        assert ask(provider, key="wrong")[0] == 401
        assert ask(provider, key="right")[0] == 200
        assert ask(provider, key="right", model="another")[0] == 404


def test_the_fixture_gives_requests_their_turns_in_order(vllm: SimulatedProvider) -> None:
    assert [said(vllm) for _ in range(3)] == ["one", "two", "two"]


def test_each_test_has_its_own_provider(vllm: SimulatedProvider) -> None:
    assert vllm.requests == []
    assert said(vllm) == "one"


@pytest.mark.parametrize("_", ["first", "second"])
def test_a_wider_scope_is_shared(shared: SimulatedProvider, _: str, addresses: set[str]) -> None:
    addresses.add(shared.base_url)
    assert len(addresses) == 1


@pytest.fixture(scope="module")
def addresses() -> set[str]:
    return set()


def test_turns_may_be_written_in_many_ways() -> None:
    def answer(conversation: Conversation) -> Turn:
        return Turn(text=conversation.question.upper())

    with simulate("vllm", Script((Turn(text="a script"),))) as provider:
        assert said(provider) == "a script"
        provider.play("a text")
        assert said(provider) == "a text"
        provider.play(Turn(text="a turn"))
        assert said(provider) == "a turn"
        provider.play(answer)
        assert said(provider) == "WHAT IS 27 * 43?"
        provider.play(["first", "second"], in_order=True)
        assert [said(provider), said(provider)] == ["first", "second"]
        provider.play(())
        assert said(provider) == "1161"


def test_ids_stay_different_after_another_script() -> None:
    with simulate("vllm", "one") as provider:
        first = json.loads(ask(provider)[2])["id"]
        provider.play("two")
        assert json.loads(ask(provider)[2])["id"] != first


def test_a_fault_begins_and_ends_when_the_test_says_so() -> None:
    with simulate("anthropic", fault="status=503") as provider:
        assert ask(provider)[0] == 503
        provider.fail(Fault("status", status=429, retry_after=2, times=1))
        status, headers, _ = ask(provider)
        assert (status, headers["retry-after"]) == (429, "2")
        assert ask(provider)[0] == 200
        provider.fail("status=429,retry-after=2,times=1")
        assert [ask(provider)[0] for _ in range(2)] == [429, 200]
        provider.fail("cut")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            ask(provider, streamed=True)
        provider.fail(None)
        assert ask(provider)[0] == 200
        assert len(provider.requests) == 7


def test_a_fault_or_preset_that_is_not_one_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="no fault is called 'bang'"), simulate("vllm", fault="bang"):
        pass
    with pytest.raises(ValueError, match="no simulator is called 'nobody'"), simulate("nobody"):
        pass
    assert threads() == []


@forms
def test_a_held_reply_comes_when_its_gate_is_opened(streamed: bool) -> None:
    with simulate("vllm", "held") as provider, ThreadPoolExecutor() as pool:
        gate = provider.hold()
        asked = pool.submit(ask, provider, streamed=streamed)
        gate.wait()
        assert gate.reached
        assert len(provider.requests) == 1
        assert not asked.done()
        gate.release()
        assert b"held" in asked.result()[2]
        assert b"held" in ask(provider, streamed=streamed)[2]


def raw_request(provider: SimulatedProvider, *, streamed: bool) -> socket.socket:
    body = json.dumps(body_for(provider.name, model=provider.model, streamed=streamed)).encode()
    parts = urlsplit(provider.base_url)
    head = f"POST {parts.path}/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    connection = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE)
    connection.sendall(head.encode() + body)
    return connection


def test_a_stream_is_held_behind_as_many_events_as_asked() -> None:
    with simulate("vllm", Turn(text="x" * 80)) as provider:
        gate = provider.hold(after=3)
        with raw_request(provider, streamed=True) as connection:
            gate.wait()
            received = b""
            while received.count(b"data: ") < 3:
                received += connection.recv(65536)
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
            connection.setblocking(True)
            gate.release()
            while b"[DONE]" not in received:
                received += connection.recv(65536)


def test_a_whole_reply_is_held_before_its_first_byte() -> None:
    with simulate("vllm", "held") as provider:
        gate = provider.hold(after=3)
        with raw_request(provider, streamed=False) as connection:
            gate.wait()
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
            gate.release()


def test_a_gate_nobody_comes_to_says_so() -> None:
    with pytest.raises(TimeoutError, match="was the provider asked"):
        Gate().wait(timeout=0)


def test_a_client_that_leaves_does_not_stay_at_the_gate() -> None:
    with simulate("vllm", "held") as provider:
        gate = provider.hold()
        with raw_request(provider, streamed=True):
            gate.wait()
        assert b"held" in _released(provider, gate)


def _released(provider: SimulatedProvider, gate: Gate) -> bytes:
    gate.release()
    return ask(provider)[2]


def test_a_gate_may_be_opened_after_its_provider_is_gone() -> None:
    with simulate("vllm") as provider:
        gate = provider.hold()
        connection = raw_request(provider, streamed=True)
        gate.wait()
    connection.close()
    gate.release()
    assert threads() == []


def test_an_event_loop_goes_on_while_a_reply_is_held() -> None:
    async def scenario() -> bytes:
        with simulate("vllm", "held") as provider:
            gate = provider.hold()
            asked = asyncio.create_task(asyncio.to_thread(ask, provider))
            await gate.wait_async()
            assert not asked.done()
            gate.release()
            return (await asked)[2]

    assert b"held" in asyncio.run(scenario())


def test_nothing_is_left_of_a_provider_whose_test_fails() -> None:
    with pytest.raises(ZeroDivisionError), simulate("vllm") as provider:  # noqa: PT012 - the block fails as a test does
        connection = raw_request(provider, streamed=True)
        assert threads() == ["simulator-vllm"]
        _ = 1 / 0
    connection.close()
    assert threads() == []
    with pytest.raises(ConnectionRefusedError):
        ask(provider)


def asked_of(provider: SimulatedProvider, model: str) -> str | None:
    """Return the answer of a model of a provider of Chat."""
    question: list[Any] = [{"role": "user", "content": "Hello."}]
    with OpenAI(base_url=provider.base_url, api_key="any", max_retries=0) as client:
        return client.chat.completions.create(model=model, messages=question).choices[0].message.content


@pytest.mark.parametrize("models", [None, ["lab-model"]])
def test_a_model_that_is_not_listed_is_refused(models: list[str] | None) -> None:
    with simulate("openai_chat", "1161", models=models) as provider:
        with pytest.raises(NotFoundError):
            asked_of(provider, "no-such-model")
        assert asked_of(provider, provider.model) == "1161"


def test_an_empty_list_of_models_takes_any() -> None:
    with simulate("openai_chat", "1161", models=[]) as provider:
        assert asked_of(provider, "no-such-model") == "1161"
