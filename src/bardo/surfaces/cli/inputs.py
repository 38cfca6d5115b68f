"""What is read from files and from stdin."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from bardo.surfaces.render.console import say
from bardo.values.errors import InvalidRequest

STDIN = "-"


def read_bytes(name: str) -> bytes:
    """Return what a file, or stdin as `-`, holds. Raises InvalidRequest where it cannot be read."""
    if name == STDIN and sys.stdin.isatty():
        say("reading what you type, to Ctrl-D on a line of its own")
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as problem:
        raise InvalidRequest(
            f"cannot read {name}: {problem.strerror or problem}", hint="give a file, or - for stdin"
        ) from problem


def read_prompt(written: str | None) -> str:
    """Return the prompt: as written, from stdin where it is `-` or absent, and what is piped in below what is written.

    Raises InvalidRequest where there is none.
    """
    if written is None or written == STDIN:
        prompt = _stdin_text() if written == STDIN or not sys.stdin.isatty() else ""
    else:
        piped = _stdin_text().strip("\n") if _is_fed() else ""
        prompt = f"{written}\n\n{piped}" if piped else written
    if not prompt.strip():
        raise InvalidRequest("there is no prompt", hint='write it, as in: bardo ask "Why?" --model …, or pipe it in')
    # Arguments that are no text of the user's locale arrive as surrogates, which no provider takes.
    return prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _stdin_text() -> str:
    return read_bytes(STDIN).decode("utf-8", "replace")


def _is_fed() -> bool:
    """Whether stdin is a pipe or a file. Anything else, such as a service's socket, may never end."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
