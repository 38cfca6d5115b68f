"""Several workers share what is kept of replies: a conversation is found again whichever worker takes its next turn."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bardo.simulators import Running, Script, ToolCall, Turn
from support.any_model import Simulator
from support.patience import PATIENCE
from support.talk import Caller
from surfaces.cli.support import line_with, needs_proc, running, wait_for_workers

pytestmark = pytest.mark.each_python

CONVERSATIONS = 12
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{address}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "connection": "close"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        message: dict[str, Any] = json.loads(answer.read())["choices"][0]["message"]
        return message


def cache_header(address: str, body: dict[str, Any]) -> str:
    """Ask, over a connection of its own, and return what the reply's `X-Bardo-Cache` says."""
    request = urllib.request.Request(
        f"{address}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "connection": "close"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return str(answer.headers["x-bardo-cache"])


def test_every_conversation_is_found_by_either_of_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("LAB_KEY", "key")
    script = Script((Turn(reasoning="I must look.", tool_calls=(ToolCall("look", {}),)), Turn(text="Done.")))
    with Simulator("moonshot", script=script).running() as provider:
        config = tmp_path / "bardo.toml"
        config.write_text(
            '[log]\nenabled = false\n[[providers]]\nid = "lab"\npreset = "moonshot"\napi_key_env = "LAB_KEY"\n'
            f'base_url = "{provider.base_url}"\nmodels = ["kimi-k3"]\n'
        )
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            for number in range(CONVERSATIONS):
                history: list[Any] = [{"role": "user", "content": f"Look, number {number}."}]
                body = {"model": "lab/kimi-k3", "messages": history, "tools": [TOOL]}
                called = post(address, body)
                call = called["tool_calls"][0]
                history += [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": call["id"], "content": "seen"},
                ]
                post(address, body)
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(PATIENCE)
        bodies = [one.body for one in provider.requests if one.method == "POST"]
    turns = [one for body in bodies for one in body["messages"] if one["role"] == "assistant"]  # type: ignore[index]
    assert [turn["reasoning_content"] for turn in turns] == ["I must look."] * CONVERSATIONS
    assert not list(tmp_path.glob("bardo-*")), "what the workers shared is gone when they are"


def respond(address: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{address}/v1/responses",
        json.dumps(body).encode(),
        {"content-type": "application/json", "connection": "close"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        response: dict[str, Any] = json.loads(answer.read())
        return response


def test_a_response_is_gone_on_from_by_either_of_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("LAB_KEY", "key")
    with Simulator("moonshot", script=Script((Turn(text="Done."),))).running() as provider:
        config = tmp_path / "bardo.toml"
        config.write_text(
            '[log]\nenabled = false\n[responses]\nstore = "memory"\n[[providers]]\nid = "lab"\npreset = "moonshot"\n'
            f'api_key_env = "LAB_KEY"\nbase_url = "{provider.base_url}"\nmodels = ["kimi-k3"]\n'
        )
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            asked: dict[str, Any] = {"model": "lab/kimi-k3", "input": "Hello"}
            for _ in range(CONVERSATIONS):
                asked["previous_response_id"] = respond(address, asked)["id"]
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(PATIENCE)
        bodies = [one.body for one in provider.requests if one.method == "POST"]
    assert [len(body["messages"]) for body in bodies] == [2 * turn + 1 for turn in range(CONVERSATIONS)]  # type: ignore[index]
    assert not list(tmp_path.glob("bardo-*")), "what the workers shared is gone when they are"


def config_of(provider: Running, name: str) -> str:
    return (
        "[gateway]\nreload_on_change = false\n[log]\nenabled = false\n"
        f'[[providers]]\nid = "{name}"\npreset = "moonshot"\napi_key_env = "LAB_KEY"\n'
        f'base_url = "{provider.base_url}"\nmodels = ["kimi-k3"]\n'
    )


def providers_of(address: str) -> set[str]:
    """Return the providers that the workers have: each connection may reach another worker."""
    found = set()
    for _ in range(CONVERSATIONS):
        asked = urllib.request.Request(f"{address}/readyz", headers={"connection": "close"})
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            found.add(",".join(json.loads(answer.read())["providers"]))
    return found


def wait_for(address: str, providers: set[str]) -> None:
    until = time.monotonic() + PATIENCE
    while (found := providers_of(address)) != providers:
        assert time.monotonic() < until, found
        time.sleep(0.05)


@pytest.mark.sampled(1)
@needs_proc
@pytest.mark.parametrize("workers", ["1", "2"])
def test_sighup_applies_the_file_in_every_worker_and_ends_no_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("LAB_KEY", "key")
    config = tmp_path / "bardo.toml"
    simulator = Simulator("moonshot", script=Script((Turn(text="one two three"),)))
    with simulator.running() as provider:
        config.write_text(config_of(provider, "lab"))
        with running("serve", "--config", str(config), "--port", "0", "--workers", workers) as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            wait_for(address, {"lab"})
            if workers == "2":
                wait_for_workers(gateway, 2)
            gate = simulator.hold(after=2)
            body = {"model": "lab/kimi-k3", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
            callers = [Caller(address, "/v1/chat/completions", body) for _ in range(4)]
            for caller in callers:
                caller.hear(b"data: ")
            config.write_text(config_of(provider, "other"))
            gateway.send_signal(signal.SIGHUP)
            wait_for(address, {"other"})
            config.write_text("[providers]\nwrong")
            gateway.send_signal(signal.SIGHUP)
            line_with(gateway.stderr, "the configuration is wrong, and stays as it was")
            assert providers_of(address) == {"other"}
            gate.release()
            for caller in callers:
                with caller:
                    caller.hear(b"[DONE]")
                    assert b"three" in caller.heard
            gateway.send_signal(signal.SIGTERM)
            assert gateway.wait(PATIENCE) == 0


@pytest.mark.nightly
@needs_proc
def test_a_killed_worker_is_replaced_also_while_the_file_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "key")
    config = tmp_path / "bardo.toml"
    with Simulator("moonshot").running() as provider:
        config.write_text(config_of(provider, "lab"))
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            first = wait_for_workers(gateway, 2)
            config.write_text("[providers]\nwrong")
            os.kill(first[0], signal.SIGKILL)
            line_with(gateway.stderr, "a worker cannot start: ")
            assert providers_of(address) == {"lab"}, "the other worker goes on"
            config.write_text(config_of(provider, "lab"))
            wait_for_workers(gateway, 2)
            assert providers_of(address) == {"lab"}
            gateway.send_signal(signal.SIGTERM)
            assert gateway.wait(PATIENCE) == 0


SLOW_START = """
import os, sys, time
if "--multiprocessing-fork" in sys.orig_argv:
    open(os.environ["STARTS"], "a").write("x")
    time.sleep(7)
"""


@pytest.mark.nightly
def test_a_worker_that_takes_long_to_start_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    config = tmp_path / "bardo.toml"
    config.write_text(
        '[log]\nenabled = false\n[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "http://127.0.0.1:1"\nmodels = ["m"]\n'
    )
    with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
        address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
        with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(PATIENCE)
    assert (tmp_path / "starts").read_text() == "xx"


def test_replies_are_kept_for_both_of_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("LAB_KEY", "key")
    with Simulator("moonshot").running() as provider:
        config = tmp_path / "bardo.toml"
        config.write_text(
            '[log]\nenabled = false\n[inference.pipeline]\nprofile = "own"\n'
            '[inference.pipeline.profiles.own]\nlayers = ["cache"]\n[inference.pipeline.cache]\ntimeout_seconds = 30\n'
            '[[providers]]\nid = "lab"\npreset = "moonshot"\napi_key_env = "LAB_KEY"\n'
            f'base_url = "{provider.base_url}"\nmodels = ["kimi-k3"]\n'
        )
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            question = {"model": "lab/kimi-k3", "messages": [{"role": "user", "content": "Look."}]}
            wait_for_workers(gateway, 2)
            # A worker stores its reply after its client has it, so that a few of the first questions may miss it.
            until = time.monotonic() + PATIENCE
            while not cache_header(address, question).startswith("hit") and time.monotonic() < until:
                pass
            before = len(provider.requests)
            found = [cache_header(address, question) for _ in range(CONVERSATIONS)]
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(PATIENCE)
        asked = [one for one in provider.requests[before:] if one.method == "POST"]
    assert all(header.startswith("hit") for header in found), found
    assert asked == []
    assert not list(tmp_path.glob("bardo-*")), "what the workers shared is gone when they are"


def test_each_worker_answers_with_the_metrics_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("LAB_KEY", "key")
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    with Simulator("deepseek").running() as provider:
        config = tmp_path / "bardo.toml"
        config.write_text(
            '[log]\nenabled = false\n[telemetry]\nmetrics = true\n[[providers]]\nid = "lab"\npreset = "deepseek"\n'
            f'api_key_env = "LAB_KEY"\nbase_url = "{provider.base_url}"\nmodels = ["m"]\n'
        )
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            for _ in range(CONVERSATIONS):
                post(address, {"model": "lab/m", "messages": [{"role": "user", "content": "Hello"}]})
            for _ in range(CONVERSATIONS):
                asked = urllib.request.Request(f"{address}/metrics", headers={"connection": "close"})
                with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                    found = re.findall(rb"^bardo_calls_total\{[^}]*\} ([0-9.]+)$", answer.read(), re.MULTILINE)
                assert [float(count) for count in found] == [CONVERSATIONS]
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(PATIENCE)
    assert not list(tmp_path.glob("bardo-*"))


def test_what_one_worker_sees_of_a_provider_every_worker_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Simulator("vllm").running() as provider:
        config = tmp_path / "bardo.toml"
        config.write_text(
            "[log]\nenabled = false\n[failover]\nretries = 0\n[health]\nrest_seconds = 300\n"
            f'[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "{provider.base_url}"\nmodels = ["m"]\n'
        )
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            fail_at_one_worker(address)
            until = time.monotonic() + PATIENCE
            while (states := {state_of_lab(address) for _ in range(CONVERSATIONS)}) != {("shared", "down")}:
                assert time.monotonic() < until, states
                time.sleep(0.1)
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(PATIENCE)
    assert not list(tmp_path.glob("bardo-*")), "what the workers shared is gone when they are"


def fail_at_one_worker(address: str) -> None:
    """Send calls that fail over one connection, so that one worker alone sees them."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
    body = json.dumps(
        {"model": "lab/m+fault:status=500", "messages": [{"role": "user", "content": "Hello"}]},
    )
    for _ in range(6):
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status >= 500, answer.read()
        answer.read()
    connection.close()


def state_of_lab(address: str) -> tuple[str, str]:
    """Return how one of the workers shares health, and the state of the model as it sees it."""
    asked = urllib.request.Request(f"{address}/v1/bardo/health", headers={"connection": "close"})
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        report = json.loads(answer.read())
    return report["sharing"], ",".join(one["state"] for one in report["providers"][0]["models"])


@needs_proc
def test_workers_whose_parent_was_killed_end_their_streams_and_leave_the_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "key")
    config = tmp_path / "bardo.toml"
    simulator = Simulator("moonshot", script=Script((Turn(text="one two three"),)))
    with simulator.running() as provider:
        config.write_text(config_of(provider, "lab"))
        with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
            address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
            workers = wait_for_workers(gateway, 2)
            gate = simulator.hold(after=2)
            body = {"model": "lab/kimi-k3", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
            with Caller(address, "/v1/chat/completions", body) as caller:
                caller.hear(b"data: ")
                gateway.kill()
                wait_until_refused(address)
                gate.release()
                caller.hear(b"[DONE]")
                assert b"three" in caller.heard
            until = time.monotonic() + PATIENCE
            while any(Path(f"/proc/{worker}").exists() for worker in workers):
                assert time.monotonic() < until, "a worker outlives its gateway"
                time.sleep(0.05)


def wait_until_refused(address: str) -> None:
    """Wait until nobody listens at an address any more."""
    host, port = address.removeprefix("http://").split(":")
    until = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as tried:
            if tried.connect_ex((host, int(port))) != 0:
                return
        assert time.monotonic() < until, "somebody still listens"
        time.sleep(0.05)
