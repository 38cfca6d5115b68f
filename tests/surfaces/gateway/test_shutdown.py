"""A gateway that is stopped while calls are open ends them with the error of the caller's dialect, and the log says so."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.simulators import Fault
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.gateway import Watched, house
from support.patience import PATIENCE
from support.raw import RawClient, head, post
from support.talk import CLIENTS, Answer, body_for, path_for
from surfaces.cli.support import line_with
from surfaces.cli.support import running as serving
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import broken, refusal

pytestmark = pytest.mark.each_python

each_client = pytest.mark.parametrize("client", CLIENTS)


def asking(address: str, client: str, model: str, *, stream: bool) -> RawClient:
    raw = RawClient(address)
    body = json.dumps(body_for(client, model, stream=stream, thinks=True)).encode()
    raw.send(post(raw.host, path_for(client, model, stream=stream), body))
    return raw


def answer_of(raw: RawClient) -> Answer:
    found = raw.reply()
    return Answer(found.status, found.headers, found.body)


@each_client
@whole_and_streamed
def test_a_call_without_a_reply_yet_is_answered_503(client: str, stream: bool) -> None:
    provider = Watched("deepseek", silent_first=True)
    with house([provider], grace=0.05) as running:
        raw = asking(running.address, client, "deepseek/m", stream=stream)
        assert provider.asked.wait(PATIENCE)
    with raw:
        answer = answer_of(raw)
        assert answer.status == 503
        assert "the gateway was stopped" in refusal(client, answer)
        assert raw.is_closed()
    row = running.log.of_model("deepseek/m")
    assert (row.outcome, row.status, row.error_class) == ("error", 503, "ShuttingDown")


@pytest.mark.sampled(5)
@each_client
@pytest.mark.parametrize("provider_name", ["anthropic", "openai_responses", "deepseek", "gemini"])
def test_a_stream_that_has_begun_ends_with_the_dialects_error(client: str, provider_name: str) -> None:
    provider = Watched(provider_name, fault=Fault("stall", after=5))
    with house([provider], grace=0.3) as running:
        raw = asking(running.address, client, f"{provider_name}/m", stream=True)
        assert provider.asked.wait(PATIENCE)
        beginning = raw.socket.recv(1)
    with raw:
        raw.unread(beginning)
        answer = answer_of(raw)
        assert "the gateway was stopped" in broken(client, answer)
    row = running.log.of_model(f"{provider_name}/m")
    assert (row.outcome, row.error_class) == ("broken", "ShuttingDown")


def test_a_stream_that_was_only_kept_alive_ends_with_the_dialects_error() -> None:
    for client in CLIENTS:
        provider = Watched("deepseek", silent_first=True)
        with house([provider], grace=0.05, keep_alive_seconds=0.02) as running:
            raw = asking(running.address, client, "deepseek/m", stream=True)
            beginning = raw.socket.recv(1)
        with raw:
            raw.unread(beginning)
            assert "the gateway was stopped" in broken(client, answer_of(raw))


@pytest.mark.sampled(1)
@each_client
def test_a_request_whose_body_has_not_arrived_is_answered_503(client: str) -> None:
    with house(grace=0.05) as running:
        raw = RawClient(running.address)
        raw.send(head(raw.host, path_for(client, "m"), content_type="application/json", content_length="100"))
        assert raw_is_open(raw)
    with raw:
        answer = answer_of(raw)
        assert answer.status == 503
        assert "the gateway was stopped" in refusal(client, answer)


def raw_is_open(raw: RawClient) -> bool:
    """Wait until the gateway has begun to read: a second request on another connection is answered after it."""
    with RawClient(f"http://{raw.host}") as other:
        other.send(head(other.host, "/healthz", "GET"))
        return other.reply().status == 200


def test_a_client_that_does_not_read_does_not_hold_up_the_end(tmp_path: Path) -> None:
    from surfaces.gateway.test_leaving_clients import Flood

    flood = Flood()
    with house([flood], grace=0.05) as running:
        raw = asking(running.address, "openai_chat", "deepseek/m", stream=True)
        flood.wait_until_held_back()
    raw.close()
    assert running.log.of_model("deepseek/m").error_class == "ShuttingDown"


def test_streams_of_events_end_when_the_gateway_begins_to_stop() -> None:
    """They have no end of their own: a gateway that waited for them would take its whole grace, and cut them off."""
    with house([Simulator("deepseek")], grace=PATIENCE) as running:
        connection = HTTPConnection(urlsplit(running.address).netloc, timeout=PATIENCE)
        connection.request("GET", "/v1/bardo/events")
        response = connection.getresponse()
        assert response.readline().startswith(b":")
    with closing(connection):
        assert response.read() == b"\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_reads_events_does_not_hold_up_the_end_of_bardo_serve(
    workers: str, number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "bardo.toml").write_text(f'[log]\npath = "{tmp_path / "log.db"}"\n')
    with serving("serve", "--config", str(tmp_path / "bardo.toml"), "--port", "0", "--workers", workers) as gateway:
        address = line_with(gateway.stderr, "bardo listens on").split()[3]
        line_with(gateway.stderr, "watch it in a browser")
        readers = []
        for path in ("/v1/bardo/events", "/panel/events"):
            reader = HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE)
            reader.request("GET", path)
            response = reader.getresponse()
            assert response.status == 200, path
            assert response.readline()
            readers.append((reader, response))
        gateway.send_signal(number)
        for reader, response in readers:
            with closing(reader):
                # What is cut off after the grace has no last chunk, and raises.
                response.read()
        assert gateway.wait(PATIENCE) == 0
        assert gateway.stderr is not None
        assert b"open requests" not in gateway.stderr.read()


def test_a_reader_of_events_that_does_not_read_is_cut_off() -> None:
    async def read() -> None:
        app, blocked = gateway_of(parse_settings("[log]\nenabled = false\n")), asyncio.Event()

        async def receive() -> dict[str, Any]:
            return await asyncio.Future()

        async def send(message: Mapping[str, Any]) -> None:
            assert message.get("status", 200) == 200
            if message["type"] == "http.response.body":
                blocked.set()
                await asyncio.Future()

        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/v1/bardo/events",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "client": None,
        }
        async with asyncio.timeout(PATIENCE):
            reading = asyncio.create_task(app(scope, receive, send))
            await blocked.wait()
            app.end_streams()
            await asyncio.wait({reading})
            assert reading.cancelled()

    asyncio.run(read())
