"""A changed configuration holds for new requests, a wrong one for none, and what is open goes on as it began."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bardo.adapters.config.settings import load_settings
from bardo.adapters.stores.log import LogReader
from bardo.server.serving import BackgroundServer
from bardo.simulators import Script, Turn
from bardo.surfaces.gateway import main
from bardo.surfaces.gateway.main import ConfiguredGateway, ReloadingGateway
from support.any_model import Simulator
from support.own_threads import own_threads
from support.patience import PATIENCE
from support.talk import Caller, ask, body_for, path_for, request
from surfaces.gateway.test_websockets import talk

ENVIRONMENT = {"LAB_KEY": "sk-lab", "CLIENT_KEY": "sk-client"}
READ = "the configuration was read again"


def provider(name: str, base_url: str) -> str:
    return (
        f'[[providers]]\nid = "{name}"\npreset = "moonshot"\napi_key_env = "LAB_KEY"\n'
        f'base_url = "{base_url}"\nmodels = ["kimi-k3"]\n'
    )


class Served:
    """A gateway of a file, which can be written anew."""

    def __init__(self, file: Path, address: str, gateway: ReloadingGateway, log: pytest.LogCaptureFixture) -> None:
        self.address = address
        self.gateway = gateway
        self._file = file
        self._log = log

    def write(self, text: str, said: str = READ) -> None:
        """Write the file, and wait until the gateway has said something about it."""
        before = self._log.text.count(said)
        store(self._file, text)
        wait_until(lambda: self._log.text.count(said) > before)


def store(file: Path, text: str) -> None:
    written = file.with_suffix(".new")
    written.write_text(text)
    written.replace(file)


def wait_until(holds: object) -> None:
    assert callable(holds)
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.01)


@contextmanager
def served(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Served]:
    monkeypatch.setattr(main, "LOOK_SECONDS", 0.02)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "bardo.toml"
    file.write_text(text)
    gateway = ReloadingGateway(ConfiguredGateway(load_settings(file)), lambda: load_settings(file))
    with BackgroundServer(gateway) as server:
        yield Served(file, server.address, gateway, caplog)


def log_at(tmp_path: Path, more: str = "") -> str:
    return f'[log]\npath = "{tmp_path / "log.db"}"\n{more}'


def provider_of(address: str, **asked: object) -> str:
    return ask(address, "openai_chat", "kimi-k3", **asked).headers["x-bardo-provider"]  # type: ignore[arg-type]


def test_the_next_request_of_a_websocket_follows_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        Simulator("moonshot").running() as near,
        Simulator("moonshot").running() as far,
        served(tmp_path, log_at(tmp_path) + provider("near", near.base_url), monkeypatch, caplog) as gateway,
        talk(gateway.address) as client,
    ):
        client.ask(model="kimi-k3", input="One.")
        gateway.write(log_at(tmp_path) + provider("far", far.base_url))
        wait_until(lambda: not gateway.gateway._earlier)
        client.send(model="kimi-k3", input="Two.")
        assert client.until()[0]["response"]["headers"]["x-bardo-provider"] == "far"


def test_new_requests_follow_the_new_file_and_an_open_stream_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Simulator("moonshot", script=Script((Turn(text="one two three"),))), Simulator("moonshot")
    with first.running() as near, second.running() as far:
        gate = first.hold(after=2)
        with served(tmp_path, log_at(tmp_path) + provider("near", near.base_url), monkeypatch, caplog) as gateway:
            body = body_for("openai_chat", "kimi-k3", stream=True)
            with Caller(gateway.address, path_for("openai_chat", "kimi-k3", stream=True), body) as caller:
                caller.hear(b"data: ")
                gateway.write(log_at(tmp_path) + provider("far", far.base_url))
                assert provider_of(gateway.address) == "far"
                gate.release()
                caller.hear(b"[DONE]")
                assert b"three" in caller.heard
            wait_until(lambda: not gateway.gateway._earlier)
        with LogReader(tmp_path / "log.db") as log:
            assert sorted((row.provider, row.outcome) for row in log.recent(10)) == [("far", "ok"), ("near", "ok")]


def test_a_wrong_file_is_reported_and_the_one_before_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            gateway.write(text.replace("preset", "presett"), "the configuration is wrong, and stays as it was")
            assert "presett" in caplog.text
            assert provider_of(gateway.address) == "near"
            gateway.write(text.replace('"moonshot"', '"no-such"'), "no-such")
            assert provider_of(gateway.address) == "near"
            gateway.write(text.replace('"near"', '"again"'))
            assert provider_of(gateway.address) == "again"


def test_an_empty_file_is_a_write_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            for content in ("", "\n \n"):
                gateway.write(content, "bardo.toml is empty")
                assert provider_of(gateway.address) == "near"
                caplog.clear()


def test_what_calls_left_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limited = '[[keys]]\nid = "one"\nkey_env = "CLIENT_KEY"\nrequests_per_minute = 2\n'
    signed = {"authorization": "Bearer sk-client"}
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + limited + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            services = gateway.gateway._now.assembly.services
            assert ask(gateway.address, "openai_chat", "kimi-k3", headers=signed).status == 200
            gateway.write(text + '[aliases]\nmine = "kimi-k3"\n')
            now = gateway.gateway._now.assembly.services
            assert now is not services
            assert (now.transport, now.replay, now.health, now.events) == (
                services.transport,
                services.replay,
                services.health,
                services.events,
            )
            assert ask(gateway.address, "openai_chat", "mine", headers=signed).status == 200
            assert ask(gateway.address, "openai_chat", "mine", headers=signed).status == 429, (
                "the minute did not begin anew"
            )


def test_who_reads_events_reads_those_of_the_next_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            url = f"{gateway.address}/v1/bardo/events?event=call:finished"
            with urllib.request.urlopen(url, timeout=PATIENCE) as events:
                assert events.readline().startswith(b":")
                gateway.write(text.replace('"near"', '"again"'))
                wait_until(lambda: not gateway.gateway._earlier)
                assert provider_of(gateway.address) == "again"
                lines = iter(events.readline, b"")
                data = next(line for line in lines if line.startswith(b"data: "))
    assert json.loads(data[6:])["event"]["provider"] == "again"


def test_what_the_process_holds_changes_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, "[gateway]\nport = 9000\n" + text, monkeypatch, caplog) as gateway:
            gateway.write("[gateway]\nport = 9001\nmax_body_bytes = 10\n" + text)
            assert "this changes only when bardo is started again: port under [gateway]" in caplog.text
            assert ask(gateway.address, "openai_chat", "kimi-k3").status == 413


def test_nothing_is_left_of_an_earlier_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = own_threads()
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            assert provider_of(gateway.address) == "near"
            for number in range(3):
                other = tmp_path / f"log{number}.db"
                gateway.write(text.replace(str(tmp_path / "log.db"), str(other)))
                assert provider_of(gateway.address) == "near"
                wait_until(lambda: not gateway.gateway._earlier)
            threads = [one.name for one in own_threads() - before if "log" in one.name]
            assert len(threads) == 1, threads
    for name in ("log", "log0", "log1", "log2"):
        with LogReader(tmp_path / f"{name}.db") as log:
            assert [row.outcome for row in log.recent(10)] == ["ok"]


def test_a_gateway_that_ends_closes_an_earlier_configuration_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began = threading.Event()
    ended: list[str] = []
    stop = ConfiguredGateway.stop

    async def stop_slowly(configured: ConfiguredGateway) -> None:
        began.set()
        await asyncio.sleep(0.3)
        await stop(configured)
        ended.append(configured.settings.providers[0].id)

    monkeypatch.setattr(ConfiguredGateway, "stop", stop_slowly)
    with Simulator("moonshot").running() as near:
        text = log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            gateway.write(text.replace('"near"', '"again"'))
            assert began.wait(PATIENCE)
    assert ended == ["near", "again"]


def test_reloading_can_be_left_to_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Simulator("moonshot").running() as near:
        text = "[gateway]\nreload_on_change = false\n" + log_at(tmp_path) + provider("near", near.base_url)
        with served(tmp_path, text, monkeypatch, caplog) as gateway:
            store(tmp_path / "bardo.toml", text.replace('"near"', '"again"'))
            looked = request(gateway.address, "GET", "/readyz").json["providers"]
            time.sleep(0.2)
            assert request(gateway.address, "GET", "/readyz").json["providers"] == looked == ["near"]
    assert READ not in caplog.text
    assert os.environ["LAB_KEY"] == "sk-lab"
