"""The processes of the soak and of chaos: a simulated provider, `bardo serve` with workers, and the clients."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.counting_app import PATH
from benchmarks.processes import ROOT, Cores, Started, free_port, tree

_PATIENCE_SECONDS = 60.0
_CONFIG = """\
[log]
{log}

[failover]
retries = 1
backoff_seconds = 0.01

[[providers]]
id = "p"
preset = "vllm"
base_url = "http://127.0.0.1:{upstream}/v1"
models = ["m1"]

[[prices]]
match = ["m1*"]
input = 3.0
output = 15.0
from = 2026-01-01
"""
# `bardo serve` as it is, with one more endpoint that counts what a worker holds.
SERVE = """\
import sys
from pathlib import Path
import bardo.surfaces.cli.serve as command
command.APP = "benchmarks.counting_app:create_app"
if __name__ == "__main__":
    command.serve(config=Path(sys.argv[1]), port=int(sys.argv[2]), workers=int(sys.argv[3]))
"""


class CannotRun(Exception):
    """A process of the place did not start."""


class MixedPlace:
    """One simulator, one gateway and one client process over one folder. Leaving it ends them."""

    def __init__(self, folder: Path, *, workers: int, log: str = "") -> None:
        self.folder = folder
        self.port, self.upstream_port = free_port(), free_port()
        self._workers = workers
        self._cores = Cores.of_this_machine().all
        self._config = folder / "bardo.toml"
        self._config.write_text(_CONFIG.format(log=log or f'path = "{folder / "log.db"}"', upstream=self.upstream_port))
        (folder / "serve_counted.py").write_text(SERVE)
        self.simulator = self._start_simulator()
        self.gateway = self.start_gateway()
        self.clients = Started([sys.executable, "-m", "benchmarks.mixed_client"], self._cores, talks=True)

    def _start_simulator(self) -> Started:
        command = [sys.executable, "-m", "bardo", "simulate", "vllm", "--any-model", "--port", str(self.upstream_port)]
        started = Started(command, self._cores)
        _wait_for(self.upstream_port, started)
        return started

    def start_gateway(self) -> Started:
        """Start `bardo serve` on the place's port and wait until it answers."""
        command = [
            sys.executable,
            str(self.folder / "serve_counted.py"),
            str(self._config),
            str(self.port),
            str(self._workers),
        ]
        environment = {"PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(self.folder)}
        self.gateway = Started(command, self._cores, environment=environment)
        _wait_for(self.port, self.gateway)
        return self.gateway

    def workers(self) -> list[int]:
        """Return the ids of the worker processes, in order."""
        below = tree(self.gateway.process.pid)[1:]
        return sorted(pid for pid in below if "spawn_main" in _command(pid))

    def kill_worker(self, place: int) -> None:
        """Kill one worker as `kill -9` does; `bardo serve` starts another in its place."""
        workers = self.workers()
        if workers:
            os.kill(workers[place % len(workers)], signal.SIGKILL)

    def kill_simulator(self) -> None:
        """Kill the provider."""
        self.simulator.process.kill()
        self.simulator.process.wait()

    def restart_simulator(self) -> None:
        """Start the provider again, on the same port."""
        self.simulator.stop()
        self.simulator = self._start_simulator()

    def state(self) -> dict[int, dict[str, int]]:
        """Return what each worker says it holds, by its id."""
        return state_of(self.port, self._workers)

    def stop_gateway(self) -> None:
        """End the gateway as Ctrl-C does: what is open is ended, and the log is written."""
        self.gateway.stop()

    def journals(self) -> list[str]:
        """Return the names of journals that are left, which hold calls that have no row."""
        return sorted(path.name for path in self.folder.rglob("*.journal"))


@contextmanager
def mixed_place(folder: Path, *, workers: int, log: str = "") -> Iterator[MixedPlace]:
    """Start all, and end all."""
    with ExitStack() as ending:
        place = MixedPlace(folder, workers=workers, log=log)
        ending.callback(lambda: place.simulator.stop())
        ending.callback(lambda: place.gateway.stop())
        ending.callback(place.clients.stop)
        yield place


def _wait_for(port: int, started: Started) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until and started.running:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/v1/models")
            connection.getresponse().read()
            return
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        finally:
            connection.close()
    raise CannotRun(f"{started.process.args!r} does not answer: {started.output()}")


def state_of(port: int, workers: int, query: str = "") -> dict[int, dict[str, int]]:
    """Return what each worker of a gateway says it holds, by its id."""
    found: dict[int, dict[str, int]] = {}
    for _ in range(60):
        if len(found) == workers:
            break
        held = _held(port, query)
        found[held.pop("pid")] = held
    return found


def _held(port: int, query: str) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", f"{PATH}{query}")
        held: dict[str, int] = json.loads(connection.getresponse().read())
        return held
    finally:
        connection.close()


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
