"""The processes that a run of the tests has started, found by a mark in their environment, and a watcher that ends them after pytest.

Every process inherits the variable `BARDO_TEST_RUN`, also one in a session of its own or under another user. Some programs write over
their environment, as Redis does: what pytest itself starts is known by its number and the time of its start, too. The watcher is a
process in a session of its own, so it outlives a pytest that is killed in any way; only what kills the watcher too (the end of a
container) is left to the system. Where there is no `/proc`, the descendants of pytest are found, and only while it lives.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

VARIABLE = "BARDO_TEST_RUN"
"""Holds the run and the part of it that started the process: `run/part`."""
Identity: TypeAlias = tuple[int, str]
"""The number of a process, and when it began."""
_WATCHER = "watcher"
_PROC = Path("/proc")
_LOOK_SECONDS = 1.0
_GIVE_UP_SECONDS = 30.0
# They serve the whole pytest, whichever test came first, and end when it closes their pipe.
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "structured/judging_worker.py")


@dataclass(frozen=True)
class Process:
    """A process that is alive."""

    number: int
    parent: int
    command: str
    mark: str
    began: str
    """When it was started, as the system counts: another process of the same number began later."""

    @property
    def identity(self) -> Identity:
        """What no other process has."""
        return self.number, self.began


def identity_of(number: int) -> Identity:
    """Return the identity of a process that was started just now."""
    try:
        return number, _stat(_PROC / str(number))[19].decode()
    except OSError:
        return number, ""


def started(run: str, *, root: int, known: Mapping[Identity, str]) -> dict[str, list[Process]]:
    """Return the living processes of a run by its parts; `root` is pytest's own process, and `known` has parts of what it started itself.

    A process without a mark belongs to the part of its parent: some hide their environment, and some are started with one of their own.
    What pytest has forked without a mark belongs to the part `""`.
    """
    found = {one.number: one for one in living()}
    parts: dict[str, list[Process]] = {}
    for one in found.values():
        part = _part(one, found, run, root, known)
        if part is not None and not any(name in one.command for name in _HELPERS):
            parts.setdefault(part, []).append(one)
    return parts


def end(run: str, *, root: int, known: Mapping[Identity, str], parts: Sequence[str] | None = None) -> list[str]:
    """Kill the processes of a run, or of some parts of it, until none is left, and return the part and the command of each."""
    ended: dict[int, str] = {}
    give_up = time.monotonic() + _GIVE_UP_SECONDS
    while time.monotonic() < give_up:
        left = [
            (part, one)
            for part, processes in started(run, root=root, known=known).items()
            if parts is None or part in parts
            for one in processes
            if one.number != os.getpid()
        ]
        if not left:
            break
        for part, one in left:
            ended[one.number] = f"{part or 'forked'}: {one.command[:150]}"
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one.number, signal.SIGKILL)
        time.sleep(0.01)
    return list(ended.values())


def _part(one: Process, found: dict[int, Process], run: str, root: int, known: Mapping[Identity, str]) -> str | None:
    while True:
        name, _, part = one.mark.partition("/")
        if name == run:
            return part
        if one.identity in known:
            return known[one.identity]
        # A watcher is needed until it has done its work, also that of another pytest which this one has started.
        if name == _WATCHER or one.number == root:
            return None
        if one.parent == root:
            return ""
        if one.parent not in found:
            return None
        one = found[one.parent]


def living() -> Iterator[Process]:
    """Return all processes of this machine that have not ended."""
    if not (_PROC / "self" / "environ").exists():
        yield from _listed()
        return
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            # It may end while it is looked at, and that of another user may not be read.
            with suppress(OSError):
                state, parent, *further = _stat(folder)
                if state in (b"Z", b"X"):
                    continue
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                mark = ""
                with suppress(PermissionError):
                    mark = _mark((folder / "environ").read_bytes())
                yield Process(int(folder.name), int(parent), command, mark, further[17].decode())


def _stat(folder: Path) -> list[bytes]:
    """Return the fields of a process from its state on: the name before it may hold anything."""
    return (folder / "stat").read_bytes().rpartition(b") ")[2].split()


def _mark(environment: bytes) -> str:
    begin = f"{VARIABLE}=".encode()
    return next((os.fsdecode(one[len(begin) :]) for one in environment.split(b"\0") if one.startswith(begin)), "")


def _listed() -> Iterator[Process]:
    lister = ["ps", "-A", "-o", "pid=,ppid=,command="]
    with subprocess.Popen(lister, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as listing:
        lines = listing.communicate()[0].splitlines()
    for line in lines:
        number, parent, command = line.split(maxsplit=2)
        if int(number) != listing.pid:
            yield Process(int(number), int(parent), command, "", "")


class Watcher:
    """A process that ends all processes of a run as soon as this one is gone."""

    def __init__(self, run: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, run, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, VARIABLE: f"{_WATCHER}/"},
            start_new_session=True,
        )

    def tell(self, started: Identity) -> None:
        """Have the watcher know a process that this one has started."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), f"{started[0]} {started[1]}\n".encode())

    def stop(self) -> None:
        """End the watcher without ending anything else."""
        self._process.kill()
        self._process.communicate()


def watch(run: str, root: int) -> None:
    """Wait until pytest is gone, in whichever way, and end what it has left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    told = b""
    # Its end of the pipe is closed when it ends, unless a process that it has forked holds that too.
    while os.getppid() == root:
        if select.select([0], [], [], _LOOK_SECONDS)[0]:
            piece = os.read(0, 1 << 16)
            if not piece:
                break
            told += piece
    # What it wrote last is still in the pipe.
    while select.select([0], [], [], 0)[0] and (piece := os.read(0, 1 << 16)):
        told += piece
    fields = [line.split(" ") for line in told.decode().splitlines()]
    end(run, root=root, known={(int(number), began): "" for number, began in fields})


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
