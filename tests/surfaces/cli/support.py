"""Run commands: in this process, or as a program of their own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from typer.testing import CliRunner

from bardo.adapters.config.settings import Settings, log_path
from bardo.adapters.stores.log import LogReader, LogRow, LogWriter
from bardo.simulators import Running
from bardo.surfaces.cli.app import make_app
from support.any_model import Simulator
from support.patience import PATIENCE, read_line

PROGRAM = (sys.executable, "-W", "error", "-m", "bardo")


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def bardo(*arguments: str, given: str | bytes | None = None) -> Ran:
    """Run a command in this process."""
    result = CliRunner().invoke(make_app(), list(arguments), input=given, prog_name="bardo")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def program(*arguments: str, given: bytes = b"") -> Ran:
    """Run a command as a program, to its end."""
    done = subprocess.run([*PROGRAM, *arguments], input=given, capture_output=True, timeout=PATIENCE, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command as a program that goes on; it has ended when the block has."""
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def line_with(stream: IO[bytes] | None, wanted: str) -> str:
    """Read lines until one holds `wanted`. Fails where the program ends, or writes nothing for too long."""
    lines = []
    while line := read_line(stream):
        lines.append(line)
        if wanted in line:
            return line
    raise AssertionError(f"no line has {wanted!r}: {lines}")


def ended(process: subprocess.Popen[bytes], number: signal.Signals) -> int:
    """Send a signal and return the exit code."""
    process.send_signal(number)
    return process.wait(PATIENCE)


def on_terminal(
    *arguments: str, stdout: bool = True, environment: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a command whose stderr, and stdout where wanted, is a terminal; give its code, its stdout and all that terminal showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=slave if stdout else subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "COLUMNS": "100", **(environment or {})},
    )
    os.close(slave)
    with process:
        shown = _all_of(master)
        out = process.stdout.read().decode() if process.stdout else ""
    return process.returncode, out, shown


def _all_of(master: int) -> str:
    """Read a terminal to the end of its last program."""
    pieces = []
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and select.select([master], [], [], PATIENCE)[0]:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux says so that nobody holds the other end.
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    return b"".join(pieces).decode()


@contextmanager
def simulated(*simulators: Simulator, folder: Path) -> Iterator[list[Running]]:
    """Run simulators, and write a bardo.toml that points at them, with the preset's name as id."""
    from contextlib import ExitStack

    from bardo.surfaces.cli.simulate import configuration, entry_for

    with ExitStack() as stack:
        servers = [stack.enter_context(simulator.running()) for simulator in simulators]
        entries = [entry_for(one, server.base_url) for one, server in zip(simulators, servers, strict=True)]
        (folder / "bardo.toml").write_text(configuration(entries), encoding="utf-8")
        yield servers


def write_log(rows: Sequence[LogRow]) -> None:
    """Store rows where the commands look."""
    with LogWriter(log_path(Settings())) as log:
        for row in rows:
            log.write(row)


def logged() -> list[LogRow]:
    """Return the rows where the commands look, oldest first."""
    with LogReader(log_path(Settings())) as reader:
        return reader.recent(1000)[::-1]


def workers_of(gateway: subprocess.Popen[bytes]) -> list[int]:
    """Return the ids of a gateway's workers."""
    children = Path(f"/proc/{gateway.pid}/task/{gateway.pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def wait_for_workers(gateway: subprocess.Popen[bytes], count: int) -> list[int]:
    """Wait until so many workers serve: only then do they take SIGHUP, as the system tells, and return their ids."""
    until = time.monotonic() + PATIENCE
    while True:
        serving = [worker for worker in workers_of(gateway) if _takes_hangups(worker)]
        if len(serving) == count:
            return serving
        assert time.monotonic() < until, serving
        time.sleep(0.05)


def _takes_hangups(worker: int) -> bool:
    try:
        status = Path(f"/proc/{worker}/status").read_text()
    except OSError:
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & (1 << (signal.SIGHUP - 1)))


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="the system does not tell the children of a process"
)
