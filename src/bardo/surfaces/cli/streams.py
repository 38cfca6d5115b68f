"""The standard streams of the program, usable whatever they were started with.

A stream that is closed, full or no longer read is no reason for a traceback: output that cannot be written is one error of bardo's, and
what cannot be said on stderr is not said.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TextIO

from bardo.values.errors import BardoError

LATER = 3
UNUSABLE_ANSWER = 4
INTERRUPTED = 130
PIPE_CLOSED = 141
"""As a shell reports a program that a closed pipe ended."""


class OutputFailed(BardoError):
    """Stdout cannot be written: it is closed, or what is behind it is full."""


class StdoutClosed(Exception):
    """Whoever read stdout has stopped: the program has nothing more to say."""


class _Output(io.TextIOWrapper):
    """Stdout. Raises OutputFailed or StdoutClosed where an OSError would be mistaken for one of the program's own."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as problem:
            raise _reason_text(problem) from problem

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as problem:
            raise _reason_text(problem) from problem


class _Messages(io.TextIOWrapper):
    """Stderr. Where a message cannot be written, nobody can be told so."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


@contextmanager
def standard_streams() -> Iterator[None]:
    """Use streams that keep the promises of this module, until the block ends.

    A descriptor that is closed is opened first: its number would go to the next file or socket, the log's database for instance.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        # Stdout is opened for reading: what is written to it fails, as it does at a closed descriptor.
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            # The workers of `serve` need it as much as this process.
            os.set_inheritable(number, True)
    before = sys.stdin, sys.stdout, sys.stderr
    output, messages = _stream(_Output, sys.stdout, 1), _stream(_Messages, sys.stderr, 2)
    sys.stdout, sys.stderr = output, messages
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    try:
        yield
    finally:
        # A stream that is dropped would close the buffer it shares with the one before it.
        output.detach()
        messages.detach()
        sys.stdin, sys.stdout, sys.stderr = before


def _stream(kind: type[io.TextIOWrapper], old: TextIO | None, number: int) -> io.TextIOWrapper:
    """Return a stream like the `old` one, which may be None. A narrow encoding costs one character and not the answer."""
    # A descriptor that was closed has no stream: Python gives None for it.
    raw: BinaryIO = old.buffer if old is not None else open(number, "wb", closefd=False)  # noqa: SIM115
    encoding = old.encoding if old is not None else "utf-8"
    lines = number == 2 or os.isatty(number)
    return kind(raw, encoding=encoding, errors="replace", line_buffering=lines)


def _reason_text(problem: OSError) -> Exception:
    # Send what stdout could not take, and all that follows, nowhere: the interpreter flushes once more at its end.
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
    if isinstance(problem, BrokenPipeError):
        return StdoutClosed()
    reason = "stdout is closed" if problem.errno == errno.EBADF else problem.strerror or str(problem)
    return OutputFailed(f"cannot write the output: {reason}")
