"""Open an SQLite file that only its owner may read, through the driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from bardo.values.errors import ConfigError


def open_file(
    path: Path, *, timeout: float, hint: str, prepare: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection:
    """Open or create a store of which `prepare` makes the tables, for use in any thread.

    `timeout` is how many seconds a statement waits for other processes. Raises ConfigError, with `hint`, where the file
    cannot be opened or used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as problem:
        raise ConfigError(f"the store {path} cannot be opened: {problem}", hint=hint) from problem
    try:
        prepare(connection)
    except sqlite3.Error as problem:
        connection.close()
        raise ConfigError(f"the store {path} cannot be used: {problem}", hint=hint) from problem
    return connection
