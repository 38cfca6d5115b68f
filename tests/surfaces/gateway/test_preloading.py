"""A gateway that serves opens no further module or file for a request, and outlives a lack of file descriptors."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bardo.simulators import PRESETS
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE
from support.patience import PATIENCE, read_line
from support.raw import RawClient, post
from support.talk import CLIENTS, SCHEMA, ask, body_for

# Serves a configuration, and says afterwards which files and modules requests have opened, those that threads opened only where asked.
_WATCHED = """
import json, sys, threading, time
from bardo.server.serving import BackgroundServer
from bardo.adapters.config.settings import load_settings
from bardo.surfaces.gateway.main import gateway_of
from bardo.wiring import load_libraries

opened = set()

def watch(event, arguments):
    if len(sys.argv) > 2 and not threading.current_thread().name.startswith(sys.argv[2]):
        return
    if event == "open" and isinstance(arguments[0], str):
        opened.add(arguments[0])
    if event == "import" and arguments[0] not in sys.modules:
        opened.add(arguments[0])

with BackgroundServer(gateway_of(load_settings(sys.argv[1]))) as server:
    # Libraries that few calls need are loaded by a thread that begins with the gateway.
    while not {"jsonschema_rs", "json_repair", "encodings.idna"} <= sys.modules.keys():
        time.sleep(0.01)
    load_libraries()
    sys.addaudithook(watch)
    print(server.address, flush=True)
    sys.stdin.readline()
    found = sorted(opened)
print(json.dumps(found), flush=True)
"""
_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
from bardo.surfaces.cli import main
sys.argv = ["bardo", "serve", "--config", sys.argv[1], "--port", "0"]
main()
"""


def configuration(folder: Path, servers: Sequence[tuple[Simulator, str]]) -> Path:
    lines = ["[log]", f'path = "{folder / "log.db"}"']
    for simulator, base_url in servers:
        provider = simulator.provider
        lines += ["[[providers]]", f'id = "{provider.name}"', f'preset = "{provider.catalog_name}"']
        lines += [f'base_url = "{base_url}"', f'api_key_env = "{KEY_VARIABLE}"']
    file = folder / "bardo.toml"
    file.write_text("\n".join(lines))
    return file


@contextmanager
def process(code: str, *arguments: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={KEY_VARIABLE: "k", "PYTHONPATH": ":".join(sys.path), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def test_a_request_opens_no_module_and_no_file_of_bardo(tmp_path: Path) -> None:
    simulators = [Simulator(name) for name in sorted(PRESETS)]
    with ExitStack() as stack:
        servers = [(one, stack.enter_context(one.running()).base_url) for one in simulators]
        running = stack.enter_context(process(_WATCHED, str(configuration(tmp_path, servers)), folder=tmp_path))
        address = read_line(running.stdout).strip()
        for simulator in simulators:
            for client in CLIENTS:
                for stream in (False, True):
                    model = f"{simulator.provider.name}/m1"
                    ask(address, client, model, stream=stream, thinks=True, tools=True)
        format_ = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
        for simulator in simulators:
            ask(address, "openai_chat", f"{simulator.provider.name}/m1", response_format=format_)
        assert running.stdin is not None
        running.stdin.write("\n")
        running.stdin.flush()
        found = json.loads(read_line(running.stdout))
    # The log, and the lists of models that are asked for every hour, are its own.
    assert [one for one in found if not one.startswith(str(tmp_path))] == []


@pytest.mark.parametrize("thread", ["", "bardo-background-server"], ids=["in any thread", "on the event loop"])
def test_the_first_call_with_layers_waits_for_no_module_and_no_table(tmp_path: Path, thread: str) -> None:
    """Layers that the configuration has are there before the first call; those that only a call names are made beside the event loop."""
    simulator = Simulator("deepseek")
    with ExitStack() as stack:
        file = configuration(tmp_path, [(simulator, stack.enter_context(simulator.running()).base_url)])
        wanted = 'client_pipelines = ["*"]' if thread else '[inference.pipeline]\nprofile = "full"'
        file.write_text(f"[gateway]\n{wanted}\n{file.read_text()}")
        running = stack.enter_context(process(_WATCHED, str(file), *filter(None, [thread]), folder=tmp_path))
        address = read_line(running.stdout).strip()
        headers = {"x-bardo-pipeline": "full"} if thread else {}
        answer = ask(address, "openai_chat", "deepseek/m1", tools=True, headers=headers)
        assert answer.status == 200
        assert "x-bardo-cache" in answer.headers
        assert running.stdin is not None
        running.stdin.write("\n")
        running.stdin.flush()
        found = json.loads(read_line(running.stdout))
    assert [one for one in found if not one.startswith(str(tmp_path))] == []


def is_served(address: str, body: Any) -> int | None:
    """Return the status of a request on a connection of its own, None where the connection is closed without one."""
    try:
        with RawClient(address) as client:
            client.send(post(client.host, "/v1/chat/completions", json.dumps(body).encode()))
            return client.reply().status
    except (AssertionError, OSError):
        return None


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of open files")
def test_without_file_descriptors_clients_get_503_and_are_served_again_once_there_are_some(tmp_path: Path) -> None:
    with Simulator("deepseek").running() as far, ExitStack() as stack:
        file = configuration(tmp_path, [(Simulator("deepseek"), far.base_url)])
        running = stack.enter_context(process(_LIMITED, str(file), "72", folder=tmp_path))
        address = read_line(running.stderr).split("listens on ")[1].split()[0]
        body = body_for("openai_chat", "deepseek/m1")
        parts = urlsplit(address)
        place = (str(parts.hostname), int(parts.port or 0))
        with ExitStack() as crowd:
            for _ in range(100):
                crowd.enter_context(socket.create_connection(place))
            statuses = {is_served(address, body) for _ in range(20)}
            assert statuses <= {503, None}
        until_served = (is_served(address, body) for _ in range(1000))
        assert next(status for status in until_served if status not in (503, None)) == 200


_PRELOADED = """
import sys
from bardo.wiring import preload

preload()
print(sorted({"aiohttp", "yarl", "httpx", "requests"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "variables", [{}, {"HTTPS_PROXY": "http://127.0.0.1:9"}], ids=["without a proxy", "behind a proxy"]
)
def test_no_other_http_client_is_loaded(variables: dict[str, str]) -> None:
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    ended = subprocess.run(
        [sys.executable, "-c", _PRELOADED],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert ended.stdout.strip() == "[]"
