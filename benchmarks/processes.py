"""Processes under measurement: started on chosen cores, measured with all their children, and ended by their own ids.

Reads /proc, so it works on Linux only.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

ROOT = Path(__file__).resolve().parents[1]
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


class Cores(msgspec.Struct, frozen=True):
    """Which cores the measured program has, and which the rest has. The same where there is one only."""

    measured: frozenset[int]
    rest: frozenset[int]

    @classmethod
    def of_this_machine(cls) -> Cores:
        """Return the last core for what is measured, and the others for the rest."""
        usable = sorted(os.sched_getaffinity(0))
        return cls(frozenset(usable[-1:]), frozenset(usable[:-1] or usable))

    @property
    def all(self) -> frozenset[int]:
        """Every core."""
        return self.measured | self.rest


class Started:
    """A process and everything it starts."""

    def __init__(
        self,
        command: Sequence[str],
        cores: frozenset[int],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        talks: bool = False,
    ) -> None:
        """Start `command`; `talks` keeps its input and output as pipes, else its output goes to a file."""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process; `stop` closes it
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talks else self._log,
            stderr=self._log,
            cwd=folder,
            env={**_clean_environment(), **(environment or {})},
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def output(self) -> str:
        """Return the last of what it said."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-1500:]

    def tell(self, line: str) -> str:
        """Send a line to a process that talks, and return the line it answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> str:
        """Return the next line of a process that talks."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended: {self.output()}")
        return line.decode().strip()

    def cpu_seconds(self) -> float:
        """Return the processor time of the whole tree, of children that have ended too."""
        return sum(map(cpu_of, tree(self.process.pid)))

    def resident_bytes(self) -> int:
        """Return the resident memory of the tree; a page that two processes share counts twice."""
        return sum(_resident(pid) for pid in tree(self.process.pid))

    def proportional_bytes(self) -> int:
        """Return the memory of the tree with every shared page counted once."""
        return sum(_proportional(pid) for pid in tree(self.process.pid))

    def open_sockets(self) -> int:
        """Return how many sockets the tree holds."""
        return sum(_sockets(pid) for pid in tree(self.process.pid))

    def stop(self) -> None:
        """End it and its children: asked first, then killed."""
        if self._log.closed:
            return
        children = tree(self.process.pid)
        if self.running:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pid in children:
            if pid != self.process.pid and _session(pid) == self.process.pid:
                _kill(pid)
        _wait_for_the_end(children)
        for pipe in (self.process.stdin, self.process.stdout, self._log):
            if pipe is not None:
                pipe.close()


def runs(pid: int) -> bool:
    """Whether a process is still there; one that has ended and waits for its parent to ask is not."""
    state = _stat(pid)[:1]
    return bool(state) and state[0] not in "ZX"


def tree(root: int) -> list[int]:
    """Return `root` and all processes below it."""
    parents = {int(entry.name): _parent(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit()}
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _clean_environment() -> dict[str, str]:
    """Return the environment without what would change the programs: proxies, bardo's own settings, other pythons."""
    unwanted = ("BARDO_", "PYTHON", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_", "ANTHROPIC_", "LITELLM_")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(unwanted)}
    return {**kept, "NO_PROXY": "127.0.0.1,localhost"}


def _stat(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return []  # It has ended.
    # The name stands in brackets and may hold spaces: what follows is counted from its end.
    return text.rpartition(")")[2].split()


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _session(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[3]) if fields else 0


def cpu_of(pid: int) -> float:
    """Return user and system time of a process, and of its children that it has seen end."""
    ended_children = sum(int(field) / _TICK for field in _stat(pid)[13:15])
    try:
        # The same count as utime + stime, in nanoseconds instead of ticks: the kernel's clock of another process.
        return time.clock_gettime((~pid << 3) | 2) + ended_children
    except OSError:
        return 0.0  # It has ended, and its parent has its time now.


def _resident(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[21]) * _PAGE if fields else 0


def _proportional(pid: int) -> int:
    try:
        text = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def _sockets(pid: int) -> int:
    found = 0
    for entry in (_PROC / str(pid) / "fd").glob("*"):
        try:
            found += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue  # Closed meanwhile.
    return found


def _wait_for_the_end(pids: Sequence[int]) -> None:
    patience = time.monotonic() + 5
    while any(map(runs, pids)) and time.monotonic() < patience:
        time.sleep(0.01)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
