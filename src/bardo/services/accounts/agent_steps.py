"""How many calls the sessions of agents have had: a temperature that changes within a session follows from that.

Counted in memory, or in a file that the workers of a gateway share.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

IDLE_SECONDS = 3600
"""After which a session begins anew."""
_MOST_SESSIONS = 20_000
_FILE_SECONDS = 5.0
_log = logging.getLogger("bardo.agent")


class SessionSteps:
    """The counts of sessions. `path` is the file that holds them, None for memory; `clock` gives Unix time."""

    def __init__(self, path: Path | None, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._lock = threading.Lock()

    async def next(self, *parts: str) -> int:
        """Return how many calls a session had before this one, and count this one. `parts` say which session it is."""
        # Clients choose names, which may be long.
        key = hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=16).hexdigest()
        if self._path is None:
            return self._in_memory(key)
        try:
            return await asyncio.to_thread(self._in_file, self._path, key)
        except (sqlite3.Error, OSError) as problem:
            # A temperature is no reason for a call to fail: this worker counts alone until the file can be used.
            _log.warning("the calls of an agent's session are counted in this worker alone: %s", problem)
            return self._in_memory(key)

    def _in_memory(self, key: str) -> int:
        now = self._clock()
        count, at = self._counts.pop(key, (0, now))
        count = count if now - at < IDLE_SECONDS else 0
        self._counts[key] = (count + 1, now)
        while len(self._counts) > _MOST_SESSIONS:
            self._counts.popitem(last=False)
        return count

    def _in_file(self, path: Path, key: str) -> int:
        now = self._clock()
        opened = sqlite3.connect(path, timeout=_FILE_SECONDS, isolation_level=None)
        with self._lock, closing(opened) as database, database:
            # Two that have read the file and then want to write it would each wait for the other: SQLite has one of them fail at once.
            database.execute("BEGIN IMMEDIATE")
            database.execute("CREATE TABLE IF NOT EXISTS step (session TEXT PRIMARY KEY, count INTEGER, at REAL)")
            database.execute("DELETE FROM step WHERE at <= ?", (now - IDLE_SECONDS,))
            counted = "INSERT INTO step VALUES (?, 1, ?) ON CONFLICT (session) DO UPDATE SET count = count + 1, at = excluded.at"
            row = database.execute(f"{counted} RETURNING count", (key, now)).fetchone()
        return int(row[0]) - 1
