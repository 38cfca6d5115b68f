"""A program in a real pseudo-terminal, and what its screen shows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyte

from support.patience import PATIENCE

# Takes the terminal, with signals as a shell leaves them.
_BEGIN = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
PROGRAM = (sys.executable, "-W", "error", "-m", "bardo")


@dataclass
class Terminal:
    """A terminal of so many lines and columns with a program in it."""

    master: int
    process: subprocess.Popen[bytes]
    screen: pyte.HistoryScreen
    raw: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self._stream = pyte.ByteStream(self.screen)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen without blanks at their ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines).rstrip()

    @property
    def whole(self) -> list[str]:
        """All lines: those that scrolled out of the screen, then those on it."""
        gone = ["".join(line[place].data for place in sorted(line)).rstrip() for line in self.screen.history.top]
        return gone + self.lines

    def wait_for(self, wanted: str | Callable[[Terminal], bool]) -> None:
        """Read until the screen shows `wanted`. Fails where the program ends before, or it takes too long."""
        is_there = (lambda one: wanted in one.text) if isinstance(wanted, str) else wanted
        give_up = time.monotonic() + PATIENCE
        while not is_there(self):
            assert time.monotonic() < give_up, f"{wanted!r} did not come:\n{self.text}"
            assert self._read(1.0) or is_there(self), f"the program ended without {wanted!r}:\n{self.text}"

    def send(self, keys: str | bytes) -> None:
        """Press keys."""
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, lines: int, columns: int) -> None:
        """Change the size of the terminal, and tell the program."""
        self.screen.resize(lines, columns)
        _set_size(self.master, lines, columns)

    def end(self) -> int:
        """Read to the program's end and return its exit code."""
        give_up = time.monotonic() + PATIENCE
        while self._read(1.0):
            assert time.monotonic() < give_up, f"the program goes on:\n{self.text}"
        return self.process.wait(PATIENCE)

    def _read(self, seconds: float) -> bool:
        """Read what is there, or wait for it. False at the end of the program."""
        if not select.select([self.master], [], [], seconds)[0]:
            return self.process.poll() is None
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # Linux says so that nobody holds the other end.
            return False
        self.raw += piece
        self._stream.feed(piece)
        return bool(piece)


@contextmanager
def terminal(
    *arguments: str,
    lines: int = 24,
    columns: int = 80,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
    folder: Path | None = None,
) -> Iterator[Terminal]:
    """Run a program, bardo unless told which, in a terminal of its own, which it controls: Ctrl-C reaches it as from a keyboard.

    It has ended when the block has.
    """
    master, slave = pty.openpty()
    _set_size(master, lines, columns)
    inherited = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-c", _BEGIN, *program, *arguments],
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**inherited, **(environment or {})},
        start_new_session=True,
    )
    os.close(slave)
    with process:
        try:
            yield Terminal(master, process, pyte.HistoryScreen(columns, lines, history=10_000))
        finally:
            if process.poll() is None:
                process.kill()
            os.close(master)


def _set_size(descriptor: int, lines: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
