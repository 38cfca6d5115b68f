"""`bardo serve`: a gateway as a program of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import Settings, log_path
from support.any_model import Simulator
from support.patience import PATIENCE
from surfaces.cli.support import bardo, ended, line_with, logged, program, running, simulated


def post(url: str, body: dict[str, Any]) -> Any:
    """Ask the gateway; it says that it listens once it answers."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.load(reply)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("server", [[], ["--workers", "2"]], ids=["one process", "workers"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_told_to_end_and_the_log_is_complete(
    folder: Path, server: list[str], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "sk-secret-value")
    with simulated(Simulator("anthropic"), folder=folder):
        (folder / "bardo.toml").rename(folder / "mine.toml")
        with running("serve", "--config", "mine.toml", "--port", "0", *server) as process:
            address = line_with(process.stderr, "bardo listens on").split()[3]
            said = line_with(process.stderr, "providers:")
            assert "anthropic (http://127.0.0.1:" in said
            assert f"OPENAI_BASE_URL={address}/v1" in line_with(process.stderr, "OPENAI_BASE_URL")
            question = [{"role": "user", "content": "What is 27 * 43?"}]
            for _ in range(5):
                body = {"model": "anthropic/claude-x", "messages": question}
                reply = post(f"{address}/v1/chat/completions", body)
                assert reply["choices"][0]["message"]["content"] == "1161"
            assert ended(process, number) == 0
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read() == b""
            rest = process.stderr.read().decode()
    assert "Traceback" not in rest
    assert "sk-secret-value" not in said + rest
    assert [row.outcome for row in logged()] == ["ok"] * 5


@pytest.mark.parametrize("option", ["--simulated", "--or-simulated"])
def test_simulated_providers_run_inside_and_the_line_that_is_shown_works(
    folder: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_KEY")]:
        monkeypatch.delenv(name)
    with running("serve", option, "--port", "0") as process:
        address = line_with(process.stderr, "bardo listens on").split()[3]
        assert "simulated ones, which need no key" in line_with(process.stderr, "providers:")
        shown = shlex.split(line_with(process.stderr, "curl "))
        assert shown[1] == f"{address}/v1/chat/completions"
        assert post(shown[1], json.loads(shown[-1]))["choices"][0]["message"]["content"] == "1161"
        line_with(process.stderr, f"{address}/panel")
        body = {"contents": [{"parts": [{"text": "What is 27 * 43?"}]}]}
        asked = post(f"{address}/v1beta/models/gpt-5-mini:generateContent", body)
        assert asked["candidates"][0]["content"]["parts"][-1]["text"] == "1161"
        messages = [{"role": "user", "content": "What is 27 * 43?"}]
        asked = post(f"{address}/v1/messages", {"model": "deepseek-v4-pro", "max_tokens": 99, "messages": messages})
        assert asked["content"][-1]["text"] == "1161"
        assert ended(process, signal.SIGTERM) == 0
    assert not (folder / "bardo.toml").exists()
    # Its calls are in no log of the user's.
    assert not Path(log_path(Settings())).exists()


def test_simulators_take_no_configuration_and_replace_none(folder: Path) -> None:
    (folder / "mine.toml").write_text(
        '[[providers]]\nid = "lab"\npreset = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    assert "leave out --config" in program("serve", "--simulated", "-c", "mine.toml").err
    with running("serve", "--or-simulated", "-c", "mine.toml", "--port", "0") as process:
        assert "lab (http://127.0.0.1:9/v1)" in line_with(process.stderr, "providers:")
        assert ended(process, signal.SIGTERM) == 0


def test_a_provider_without_its_key_is_told_and_any_key_only_where_any_will_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (folder / "bardo.toml").write_text('[[providers]]\nid = "openai"\n')

    def told(*options: str) -> str:
        with running("serve", "--port", "0", *options) as process:
            said = [line_with(process.stderr, "has no key"), line_with(process.stderr, "point an OpenAI SDK")]
            assert ended(process, signal.SIGTERM) == 0
        return "".join(said)

    assert "provider openai has no key: calls to it fail until OPENAI_API_KEY is set" in told()
    assert "OPENAI_API_KEY=any" in told()
    assert bardo("keys", "create", "team").code == 0
    assert "OPENAI_API_KEY=any" not in told()
    assert "OPENAI_API_KEY=any" in told("--allow-unauthenticated")
    bardo("keys", "revoke", "team")
    with running("serve", "--port", "0") as process:
        assert "bardo keys create NAME" in line_with(process.stderr, "no key of this gateway is active")
        assert ended(process, signal.SIGTERM) == 0


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        ran = program("serve", "--port", str(port))
    assert ran.code == 2
    assert ran.err.splitlines()[0] == f"bardo: port {port} on 127.0.0.1 is already in use"
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_it_does_not_listen_where_other_machines_reach_it_unless_that_is_allowed(host: str) -> None:
    ran = program("serve", "--host", host, "--port", "0")
    assert ran.code == 2
    assert f"would listen on {host}" in ran.err
    assert "--allow-unauthenticated" in ran.err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_listens_everywhere_where_that_is_allowed(folder: Path, workers: str) -> None:
    server = ["serve", "--host", "0.0.0.0", "--allow-unauthenticated", "--port", "0", "--workers", workers]
    with running(*server) as process:
        port = line_with(process.stderr, "bardo listens on").split()[3].rpartition(":")[2]
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE) as reply:
                    assert json.load(reply) == {"status": "ok", "server": "bardo"}
                break
            except urllib.error.URLError:
                assert time.monotonic() < give_up
        assert ended(process, signal.SIGTERM) == 0


def test_a_broken_configuration_is_one_clear_line(folder: Path) -> None:
    (folder / "broken.toml").write_text("[gateway]\nprot = 1\n")
    ran = program("serve", "--config", "broken.toml")
    assert ran.code == 2
    assert "broken.toml, line 2: unknown key 'prot'" in ran.err
    assert len(ran.err.splitlines()) == 2
    assert bardo("serve", "--config", "missing.toml").code == 2


def test_a_proxy_that_cannot_be_used_is_said_before_anything_is_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://somebody:sk-secret-of-a-test@127.0.0.1:1")
    (folder / "bardo.toml").write_text('[[providers]]\nid = "openai"\n')
    ran = program("serve", "--port", "0")
    assert ran.code == 2
    assert "the proxy for api.openai.com in HTTPS_PROXY is of the kind socks5" in ran.err
    assert "sk-secret-of-a-test" not in ran.err


def test_a_log_that_cannot_be_opened_is_said_before_anything_is_served(folder: Path) -> None:
    (folder / "no.db").write_text("this is no database, it is prose " * 100)
    (folder / "bardo.toml").write_text('[log]\npath = "no.db"\n')
    ran = program("serve", "--port", "0")
    assert ran.code == 2
    assert "no.db" in ran.err
    assert "listens" not in ran.err
