"""Every model that a list shows can be asked for by its name, and reaches the provider that it was listed for."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bardo.adapters.config.providers import ProviderEntry
from bardo.adapters.net.client import Deadlines
from bardo.services.facts import directory as directories
from support.any_model import Simulator
from support.gateway import House, house
from support.patience import PATIENCE
from support.talk import Answer, ask, request

# The provider, and what it lists: names that others list too, and names that begin with another provider.
SERVED = {
    "deepseek": ("deepseek-chat", "shared"),
    "groq": ("deepseek/deepseek-oss", "deepseek/deepseek-chat", "shared", "qwen/qwen3"),
    "openrouter": ("openrouter/auto", "deepseek/deepseek-chat", "anthropic/claude-x", "groq/shared", "shared"),
    "anthropic": ("claude-x", "shared"),
    "vllm": ("qwen/qwen3", "gpt-5:high", "shared", "deep/er/m3"),
    "llama_server": ("deepseek/deepseek-oss", "deepseek/deepseek-oss:free", "vllm/shared"),
}
LISTS: dict[str, tuple[str, dict[str, str], Callable[[Any], list[str]]]] = {
    "openai_chat": ("/v1/models", {}, lambda body: [one["id"] for one in body["data"]]),
    "anthropic_messages": (
        "/v1/models?limit=1000",
        {"anthropic-version": "2023-06-01"},
        lambda body: [one["id"] for one in body["data"]],
    ),
    "gemini": ("/v1beta/models", {}, lambda body: [one["name"].removeprefix("models/") for one in body["models"]]),
    "cohere": ("/v1/models", {"x-fern-sdk-name": "cohere"}, lambda body: [one["name"] for one in body["models"]]),
    "ollama": ("/api/tags", {}, lambda body: [one["model"] for one in body["models"]]),
}


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator(name, models=models) for name, models in SERVED.items()]) as it:
        yield it


def listed(address: str, client: str) -> Answer:
    path, headers, _ = LISTS[client]
    return request(address, "GET", path, headers=headers)


@pytest.mark.parametrize("client", LISTS)
def test_every_listed_name_reaches_the_provider_that_it_was_listed_for(running: House, client: str) -> None:
    owners = {one["id"]: one["owned_by"] for one in listed(running.address, "openai_chat").json["data"]}
    shown = [one for one in listed(running.address, "anthropic_messages").json["data"] if one["id"] not in owners]
    if client == "anthropic_messages":
        # Claude Code is shown names that begin so alone, and keeps them apart by what they are displayed as.
        owners |= {one["id"]: owners[one["display_name"]] for one in shown if one["id"].startswith("anthropic/")}
    names = [name for name in LISTS[client][2](listed(running.address, client).json) if owners[name] != "bardo"]
    of_models = sum(owner != "bardo" for owner in owners.values())
    assert len(names) == len(set(names)) == of_models
    assert of_models >= sum(len(set(models)) for models in SERVED.values())
    for name in names:
        before = len(running.arrived(owners[name]))
        answer = ask(running.address, client, name)
        assert answer.status == 200, (name, answer.text)
        provider = answer.headers["x-bardo-provider"]
        assert provider == owners[name], name
        assert len(running.arrived(provider)) == before + 1, name
        sent = running.arrived(provider)[-1]
        assert sent.body["model"] in SERVED[provider], name  # type: ignore[index]
        assert name.endswith(sent.body["model"]), name  # type: ignore[index]


def test_a_listed_name_reaches_its_provider_before_anybody_has_asked_for_a_list() -> None:
    with house([Simulator(name, models=models) for name, models in SERVED.items()]) as fresh:
        assert ask(fresh.address, "openai_chat", "deepseek/deepseek-oss").headers["x-bardo-provider"] == "groq"


def _answer_nothing(_: socket.socket) -> None: ...


def _answer_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n")


def _begin_body(connection: socket.socket) -> None:
    _answer_head(connection)
    connection.sendall(b'{"object": "list", "data": [')


@contextmanager
def silent(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve at an address that accepts connections, says something or nothing, and then no more."""
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            connection.recv(65536)
            answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)
            for connection in held:
                connection.close()


def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have lists shown after a moment, and providers waited for longer than any test lasts."""
    monkeypatch.setattr(directories, "ANSWER_SECONDS", 0.2)
    patient = Deadlines(connect=PATIENCE * 9, first_byte=PATIENCE * 9, idle=PATIENCE * 9, total=PATIENCE * 9)
    monkeypatch.setattr(directories, "ASKING", patient)


@pytest.mark.parametrize("client", LISTS)
def test_a_list_comes_whatever_hangs_and_says_who_is_missing(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quickly(monkeypatch)
    with silent(_answer_nothing) as one, silent(_answer_head) as two, silent(_begin_body) as three:
        hanging = [
            ProviderEntry(id=name, preset="vllm", base_url=url)
            for name, url in (("mute", one), ("headed", two), ("begun", three))
        ]
        with house([Simulator("vllm", models=["m1", "m2"])], before=hanging) as running:
            for _ in range(2):
                answer = listed(running.address, client)
                assert answer.status == 200
                assert {"m1", "m2"} <= set(LISTS[client][2](answer.json))
                assert answer.headers["x-bardo-missing-lists"] == "mute, headed, begun"
                missing = answer.json["bardo"]["missing"]
                assert [entry["provider"] for entry in missing] == ["mute", "headed", "begun"]
                assert all("not answered yet" in entry["why"] for entry in missing)
            assert ask(running.address, "openai_chat", "m1").status == 200


def test_a_list_that_comes_late_is_shown_when_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    quickly(monkeypatch)
    go, done = threading.Event(), threading.Event()

    def answer_later(connection: socket.socket) -> None:
        def answer() -> None:
            go.wait(PATIENCE)
            body = json.dumps({"object": "list", "data": [{"id": "late-model"}]}).encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            done.set()

        threading.Thread(target=answer).start()

    with silent(answer_later) as url:
        late = ProviderEntry(id="late", preset="vllm", base_url=url)
        with house([Simulator("vllm", models=["m1"])], before=[late]) as running:
            assert "late-model" not in listed(running.address, "openai_chat").text
            go.set()
            assert done.wait(PATIENCE)
            # It has been sent; a list waits for it.
            monkeypatch.setattr(directories, "ANSWER_SECONDS", PATIENCE)
            answer = listed(running.address, "openai_chat")
            assert "late-model" in answer.text
            assert "x-bardo-missing-lists" not in answer.headers


def test_a_provider_that_refuses_its_list_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with silent(lambda connection: connection.close()) as url:
        gone = ProviderEntry(id="gone", preset="vllm", base_url=url)
        with house([Simulator("vllm", models=["m1"])], before=[gone]) as running:
            answer = listed(running.address, "anthropic_messages")
            assert answer.headers["x-bardo-missing-lists"] == "gone"
            assert "m1" in [one["id"] for one in answer.json["data"]]


def test_a_model_whose_id_ends_as_a_verb_does_is_described_and_asked() -> None:
    names = [f"lab:{verb}" for verb in ("countTokens", "generateContent", "embedContent")]
    with house([Simulator("vllm", models=names)]) as it:
        assert {one["id"] for one in listed(it.address, "openai_chat").json["data"]} >= set(names)
        for name in names:
            described = request(it.address, "GET", f"/v1/models/{name}")
            assert (described.status, described.json["id"]) == (200, name)
            for client in LISTS:
                assert ask(it.address, client, name).status == 200, (client, name)
