"""A stream that has begun ends with the dialect's error event, whatever went wrong; every status of a provider is answered."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bardo.adapters.config.settings import ProviderEntry
from bardo.surfaces.gateway import generate
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, House, Watched, house
from support.patience import PATIENCE
from support.raw import RawClient, post
from support.talk import ALL_CLIENTS, Answer, ask, body_for, path_for
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import broken, refusal

pytestmark = pytest.mark.each_python

each_client = pytest.mark.parametrize("client", ALL_CLIENTS)


# A binary event stream has no sign of life: whoever reads it takes every message for an event.
@pytest.mark.parametrize("client", [client for client in ALL_CLIENTS if not client.startswith("bedrock")])
def test_a_mistake_after_a_sign_of_life_is_the_dialects_error(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_kept_alive = threading.Event()

    class Mistake:
        async def __call__(self, *_: object, **__: object) -> None:
            await asyncio.to_thread(is_kept_alive.wait, PATIENCE)
            raise ValueError("a mistake")

    monkeypatch.setattr(generate, "open_call", Mistake())
    with house([Simulator("deepseek")], keep_alive_seconds=0.02) as running:
        with RawClient(running.address) as raw:
            body = json.dumps(body_for(client, "deepseek/m", stream=True)).encode()
            raw.send(post(raw.host, path_for(client, "deepseek/m", stream=True), body))
            # The head, and with it the first sign of life.
            raw.unread(raw.socket.recv(1))
            is_kept_alive.set()
            found = raw.reply()
        assert "bardo failed" in broken(client, Answer(found.status, found.headers, found.body))


@each_client
def test_a_mistake_before_anything_was_sent_is_500(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def mistaken(*_: object, **__: object) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr(generate, "open_call", mistaken)
    with house([Simulator("deepseek")]) as running:
        answer = ask(running.address, client, "deepseek/m", stream=True)
        assert answer.status == 500
        assert "bardo failed" in refusal(client, answer)


STATUSES = [600, 700, 799, 999, 418, 599]


@contextmanager
def answering(head: bytes) -> Iterator[str]:
    """A provider that answers every request with the same bytes; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(1 << 20)
                    client.sendall(head)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def at(base_url: str) -> ProviderEntry:
    return ProviderEntry(id="odd", preset="deepseek", base_url=base_url, api_key_env=KEY_VARIABLE, models=("m",))


@each_client
@whole_and_streamed
@pytest.mark.parametrize("status", STATUSES)
def test_every_status_of_a_provider_is_answered(client: str, stream: bool, status: int) -> None:
    body = b'{"error": {"message": "odd", "type": "odd"}}'
    head = b"HTTP/1.1 %d Odd\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    with answering(head % (status, len(body)) + body) as base_url, house(before=[at(base_url)]) as running:
        answer = ask(running.address, client, "odd/m", stream=stream)
        assert answer.status == (status if status < 600 else 502)
        assert "odd" in refusal(client, answer)


@each_client
@pytest.mark.parametrize("status", [99, 0, 101])
def test_a_status_that_is_none_is_no_reply(client: str, status: int) -> None:
    head = b"HTTP/1.1 %03d Odd\r\ncontent-length: 0\r\n\r\n" % status
    with answering(head) as base_url, house(before=[at(base_url)]) as running:
        answer = ask(running.address, client, "odd/m")
        assert answer.status == 502
        refusal(client, answer)


@pytest.fixture
def small() -> Iterator[House]:
    bounds = {
        "max_header_bytes": 2000,
        "max_headers": 20,
        "head_seconds": 0.3,
        "body_seconds": 0.3,
        "max_total_body_bytes": 5000,
        "max_body_bytes": 4000,
    }
    with house([Watched("deepseek", silent_first=True)], gateway=bounds) as running:
        yield running


@each_client
@pytest.mark.parametrize("kind", ["headers", "header", "head", "body", "large", "chunks", "crowd"])
def test_each_bound_is_answered_in_the_dialect_of_the_path(small: House, client: str, kind: str) -> None:
    path = path_for(client, "deepseek/m")
    with RawClient(small.address) as raw, RawClient(small.address) as other:
        start = f"POST {path} HTTP/1.1\r\nhost: {raw.host}\r\ncontent-type: application/json\r\n".encode()
        match kind:
            case "headers":
                status, sent = 431, start + b"a: b\r\n" * 30 + b"\r\n"
            case "header":
                status, sent = 431, start + b"a: " + b"b" * 5000 + b"\r\n\r\n"
            case "head":
                status, sent = 408, start
            case "body":
                status, sent = 408, start + b"content-length: 100\r\n\r\n{"
            case "large":
                status, sent = 413, start + b"content-length: 4001\r\n\r\n"
            case "chunks":
                status, sent = 413, start + b"transfer-encoding: chunked\r\n\r\n" + b"400\r\n" + b" " * 1024 + b"\r\n"
                sent += (b"400\r\n" + b" " * 1024 + b"\r\n") * 3
            case _:
                status = 503
                provider = small.simulators["deepseek"]
                assert isinstance(provider, Watched)
                waiting = b'{"model": "deepseek/m", "messages": [{"role": "user", "content": "x"}], "user": "%s"}' % (
                    b"y" * 3000
                )
                other.send(post(other.host, "/v1/chat/completions", waiting))
                assert provider.asked.wait(PATIENCE)
                sent = post(raw.host, path, b" " * 3500)
        raw.send(sent)
        found = raw.reply()
        assert found.status == status
        assert found.headers["connection"] == "close"
        refusal(client, Answer(found.status, found.headers, found.body))
        assert raw.is_closed()
