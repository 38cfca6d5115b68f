"""Load the packages that sign payments: `eth-account` and `x402`, of the extra `bardo[x402]`.

Importing py_ecc, which eth-account needs, raises the recursion limit of the whole process to 100,000 (py_ecc 8.0, seen 2026-11). At that
limit a body of nested brackets overflows the stack of the JSON decoder and ends the process, so the limit stays what it was.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install

INSTALL = how_to_install("x402")
_LOCK = threading.Lock()


def load(module: str) -> Any:
    """Return a module of these packages. Raises ConfigError where it is not installed."""
    try:
        with _LOCK, recursion_limit_kept():
            return importlib.import_module(module)
    except ImportError as missing:
        raise ConfigError("payments need packages that are not installed", hint=INSTALL) from missing


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """Keep the recursion limit as it is meanwhile."""
    given = sys.setrecursionlimit
    sys.setrecursionlimit = lambda limit, /: None
    try:
        yield
    finally:
        sys.setrecursionlimit = given
