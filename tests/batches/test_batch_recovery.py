"""Batches survive the death of their gateway: no job is made twice, each item has one result and one row in the log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import openai
import pytest

from bardo.adapters.stores.log import LogReader
from bardo.simulators import Running
from support.any_model import Simulator
from support.batches import chat_line, jsonl, settings_text, wait_for
from support.gateway import KEY_VARIABLE, SECRET
from support.patience import PATIENCE, read_line

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
MODELS = {"openai_chat": "gpt-5-mini", "anthropic": "claude-sonnet-5", "gemini": "gemini-2.5-flash"}
ITEMS = 6


@dataclass
class Served:
    """A gateway in a process of its own."""

    process: subprocess.Popen[bytes]
    address: str

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(PATIENCE) == -signal.SIGKILL


@contextmanager
def serving(folder: Path, simulator: Simulator, server: Running, state: str = "") -> Iterator[Served]:
    """Run `bardo serve` over one simulated provider, with its log and its state in `folder`."""
    config = folder / "bardo.toml"
    provider = {
        "id": "p",
        "preset": simulator.provider.catalog_name,
        "base_url": server.base_url,
        "api_key_env": KEY_VARIABLE,
    }
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in provider.items())
    text = settings_text(state or str(folder / "state.db"), folder / "log.db", more=f"[[providers]]\n{lines}")
    config.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "bardo", "serve", "--port", "0", "--config", str(config)]
    environment = {**os.environ, KEY_VARIABLE: SECRET}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Served(process, _address(process))
        finally:
            process.kill()


def _address(process: subprocess.Popen[bytes]) -> str:
    while line := read_line(process.stderr):
        if "listens on" in line:
            return line.split("listens on ")[1].split()[0]
    raise AssertionError("the gateway did not start")


def client_of(gateway: Served) -> openai.OpenAI:
    """Return a client of a gateway."""
    return openai.OpenAI(base_url=f"{gateway.address}/v1", api_key="sk-one", max_retries=0)


def make_batch(gateway: Served, model: str) -> str:
    """Make a batch, and return its id."""
    client = client_of(gateway)
    lines = [chat_line(f"i{n}", f"p/{model}", f"say {n}") for n in range(ITEMS)]
    file = client.files.create(file=("r.jsonl", jsonl(lines)), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    return batch.id


def check_end(gateway: Served, batch_id: str, simulator: Simulator, folder: Path) -> None:
    """Wait for the end of a batch, and make sure that everything came about once."""
    client = client_of(gateway)
    batch = wait_for(lambda: client.batches.retrieve(batch_id), lambda one: one.status == "completed")
    assert batch.output_file_id
    ids = [json.loads(line)["custom_id"] for line in client.files.content(batch.output_file_id).text.splitlines()]
    assert Counter(ids) == Counter(f"i{n}" for n in range(ITEMS))
    assert simulator.batches is not None
    assert len(simulator.batches.jobs) == 1, "the job was made once"
    with LogReader(folder / "log.db") as reader:
        rows = reader.recent(100)
    assert len(rows) == ITEMS == len({row.request_id for row in rows})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("provider", MODELS)
def test_a_job_whose_answer_was_lost_is_found_and_not_made_again(provider: str, tmp_path: Path) -> None:
    simulator = Simulator(provider)
    assert simulator.batches is not None
    with simulator.running() as server:
        with serving(tmp_path, simulator, server) as gateway:
            made = simulator.batches.jobs
            if provider == "openai_chat":
                # The upload is answered, the creation is not.
                batch_id = make_batch(gateway, MODELS[provider])
                gate = None
                wait_for(lambda: len(made), bool)
            else:
                gate = simulator.hold()
                batch_id = make_batch(gateway, MODELS[provider])
                wait_for(lambda: len(made), bool)
            gateway.kill()
            if gate is not None:
                gate.release()
                simulator.hold().release()
        with serving(tmp_path, simulator, server) as gateway:
            check_end(gateway, batch_id, simulator, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_gateway_that_is_killed_at_any_point_ends_its_batch_once(after: int, tmp_path: Path) -> None:
    simulator = Simulator("openai_chat")
    assert simulator.batches is not None
    simulator.batches.polls = 4
    with simulator.running() as server:
        with serving(tmp_path, simulator, server) as gateway:
            batch_id = make_batch(gateway, MODELS["openai_chat"])
            wait_for(lambda: len(server.requests), lambda count: count >= after)
            time.sleep(0.01 * after)
            gateway.kill()
        with serving(tmp_path, simulator, server) as gateway:
            check_end(gateway, batch_id, simulator, tmp_path)


@pytest.mark.nightly
def test_a_gateway_that_stops_and_starts_goes_on_with_its_batches(tmp_path: Path) -> None:
    simulator = Simulator("mistral")
    assert simulator.batches is not None
    simulator.batches.holds = True
    with simulator.running() as server:
        with serving(tmp_path, simulator, server) as gateway:
            batch_id = make_batch(gateway, "mistral-large-latest")
            wait_for(lambda: len(simulator.batches.jobs) if simulator.batches else 0, bool)
            gateway.process.terminate()
            gateway.process.wait(PATIENCE)
        simulator.batches.holds = False
        with serving(tmp_path, simulator, server) as gateway:
            check_end(gateway, batch_id, simulator, tmp_path)


@pytest.mark.nightly
def test_postgresql_keeps_batches_as_well(postgres_url: str, tmp_path: Path) -> None:
    simulator = Simulator("openai_chat")
    with simulator.running() as server:
        with serving(tmp_path, simulator, server, postgres_url) as gateway:
            batch_id = make_batch(gateway, MODELS["openai_chat"])
            wait_for(lambda: len(simulator.batches.jobs) if simulator.batches else 0, bool)
            gateway.kill()
        with serving(tmp_path, simulator, server, postgres_url) as gateway:
            check_end(gateway, batch_id, simulator, tmp_path)
