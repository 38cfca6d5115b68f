"""What clients get of vLLM and transformers, compared word by word with what the server says when it is asked directly.

These servers take minutes to install and most of a minute to start. `make servers` installs them in an environment of its own, and names
its Python in BARDO_SERVERS_PYTHON. Without it these tests are skipped.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import gateway_of
from servers.asking import ask_client, ask_server
from servers.hugging_face import write_hugging_face
from servers.scripted_model import CONTEXT
from servers.templates import TEMPLATES
from support.patience import PATIENCE
from support.talk import CLIENTS, request

PYTHON = os.environ.get("BARDO_SERVERS_PYTHON", "")
MODEL = "deepseek-r1"
STARTING = 400.0
"""Seconds in which a server must have started: loading torch takes most of them on a busy machine."""
pytestmark = [
    pytest.mark.skipif(
        not PYTHON, reason="BARDO_SERVERS_PYTHON names no Python with vLLM and transformers: make servers"
    ),
    pytest.mark.xdist_group("other servers"),
    pytest.mark.timeout(900),
]

# The command `vllm` looks for a package of that name, which the build for processors is not: the module does not.
_VLLM = (
    PYTHON,
    "-m",
    "vllm.entrypoints.openai.api_server",
    "--dtype",
    "float32",
    "--enforce-eager",
    "--max-model-len",
    str(CONTEXT),
)
_TRANSFORMERS = (str(Path(PYTHON).parent / "transformers"), "serve")
# The preset of a server, the template of its model, and its command.
SERVERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "vLLM without a parser": ("vllm", "always-open", _VLLM),
    "vLLM with a parser": ("vllm", "always-open", (*_VLLM, "--reasoning-parser", "deepseek_r1")),
    "transformers": ("openai-compatible", "always-open", _TRANSFORMERS),
}
CASES: dict[str, tuple[str, str]] = {
    "thinking": ("think", ""),
    "an empty thought": ("empty", ""),
    "an answer without thinking": ("plain", ""),
    "off": ("think", "off"),
    "off, with an empty thought": ("empty", "off"),
}
TYPED = frozenset({"vLLM without a parser", "vLLM with a parser"})


class Server(msgspec.Struct, frozen=True):
    """A server that runs, and a gateway over it."""

    name: str
    address: str
    gateway: str


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    preset, template, command = SERVERS[request.param]
    # transformers answers only to the name by which its model was given: a folder beside where it runs.
    folder = tmp_path_factory.mktemp("models") / MODEL
    write_hugging_face(folder, TEMPLATES[template])
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    log = folder / "log"
    with _process([*_with_model(command, folder), "--host", "127.0.0.1", "--port", str(port)], log) as process:
        try:
            _wait_for(address, process, log)
            yield from _with_gateway(preset, address, request.param)
        finally:
            _end(process)


def _with_gateway(preset: str, address: str, name: str) -> Iterator[Server]:
    entry = ProviderEntry(id="lab", preset=preset, base_url=f"{address}/v1", models=(MODEL,))
    settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
    with BackgroundServer(gateway_of(settings, {})) as gateway:
        yield Server(name, address, gateway.address)


def _with_model(command: tuple[str, ...], folder: Path) -> list[str]:
    if command[0] == PYTHON:
        return [*command, "--model", str(folder), "--served-model-name", MODEL]
    return [*command, folder.name]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _process(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    environment.pop("PYTHONPATH", None)
    with log.open("wb") as written:
        return subprocess.Popen(
            command,
            env=environment,
            stdout=written,
            stderr=subprocess.STDOUT,
            cwd=log.parents[1],
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a server with the processes that it started."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + STARTING
    while time.monotonic() < until and process.poll() is None:
        try:
            if request(address, "GET", "/health").status == 200:
                return
        except OSError:
            time.sleep(1)
    pytest.fail(f"the server did not start: {log.read_text(encoding='utf-8', errors='replace')[-2_000:]}")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CASES)
def test_every_client_gets_what_the_server_says(server: Server, case: str, stream: bool) -> None:
    script, kind = CASES[case]
    for client in CLIENTS:
        got, told = ask_client(server.gateway, client, f"lab/{MODEL}", script, kind, stream=stream)
        assert got == ask_server(server.address, script, kind, told, model=MODEL), client


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_client_gets_the_answer_in_a_schema(server: Server, stream: bool) -> None:
    if server.name not in TYPED:
        pytest.skip("it enforces no schemas")
    for client in CLIENTS:
        got, _ = ask_client(server.gateway, client, f"lab/{MODEL}", "json", "schema", stream=stream)
        assert (got.thinking, got.text) == ("", '{"who":"bob","amount":12}'), client
