"""How long a test waits for what must come. Only a failing test waits this long: a busy machine may make a test slow, never wrong.

The deadline of a whole test (`timeout` in pyproject.toml) is above it, so that the wait that failed is the one that is shown.
"""

from __future__ import annotations

import os
import selectors
import time
from typing import IO

PATIENCE = 120.0


def read_line(stream: IO[bytes] | IO[str] | None, *, patience: float = PATIENCE) -> str:
    """Return the next line that another program writes, empty at the end of its output. Raises TimeoutError where none comes.

    The bytes are read one at a time past any buffer of `stream`: nobody else may have read from it through that buffer.
    """
    assert stream is not None
    line = bytearray()
    descriptor = stream.fileno()
    until = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError(f"no whole line came within {patience:g} s; so far: {bytes(line)!r}")
            piece = os.read(descriptor, 1)
            if not piece:
                break
            line += piece
    return line.decode()
