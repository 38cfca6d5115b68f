"""Keys that are pressed in a terminal, one by one as they are pressed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAMES = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b"\r": "enter", b"\n": "enter", b"\x7f": "backspace", b"\x08": "backspace", b"\x1b": "escape",
}  # fmt: skip
_MOST_BYTES = 1024


def keys_of(data: bytes) -> Iterator[str]:
    """Yield the names of keys, or the letters that they write; sequences that are not known are passed over."""
    while data:
        name = next((one for one in sorted(_NAMES, key=len, reverse=True) if data.startswith(one)), b"")
        if data.startswith(b"\x1b") and len(name) < 2 and len(data) > 1:
            data = data[_sequence_length(data) :]
        elif name:
            yield _NAMES[name]
            data = data[len(name) :]
        else:
            size = _letter_length(data[0])
            letter = data[:size].decode("utf-8", "replace")
            if letter.isprintable():
                yield letter
            data = data[size:]


def _sequence_length(data: bytes) -> int:
    """Return the length of an escape sequence: to its final letter."""
    for place, byte in enumerate(data[2:], 2):
        if 0x40 <= byte <= 0x7E:
            return place + 1
    return len(data)


def _letter_length(first: int) -> int:
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


@contextmanager
def pressed_keys(take: Callable[[str], None]) -> Iterator[None]:
    """Pass each key press to `take`, in the running event loop; the terminal's mode is restored when the block ends.

    Without a terminal on stdin that can be read so, no keys are read.
    """
    try:
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, OSError, ValueError):
        yield
        return
    except termios.error:
        yield
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = os.read(descriptor, _MOST_BYTES)
        if not data:
            loop.remove_reader(descriptor)
        for key in keys_of(data):
            take(key)

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
