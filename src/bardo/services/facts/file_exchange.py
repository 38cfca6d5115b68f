"""Messages that the workers of one machine send each other over an SQLite file, and leases that one of them holds at a time.

One call is one short transaction. Messages are kept for a while, and up to a number, for workers that begin.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

from bardo.adapters.stores.database.sqlite_file import check_number, open_file
from bardo.services.facts.exchange import LEASE_SECONDS, MOST_MESSAGES, ExchangeResult, Message

_HINT = "choose a file in a directory that this user may write to"
_KEPT_LONGER_SECONDS = 60.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sender TEXT NOT NULL, sent REAL NOT NULL, data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_by_time ON messages (sent);
CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
"""
_HOLD = """
INSERT INTO leases (name, holder, until) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4
"""


class FileExchange:
    """The messages of one worker in a file, which is readable by its owner alone.

    `past_seconds` is how old the messages may be that it reads first; `clock` is a clock that all workers share.
    """

    problems: tuple[type[Exception], ...] = (OSError, sqlite3.Error)

    def __init__(
        self, path: str | Path, *, past_seconds: float, timeout: float = 2.0, clock: Callable[[], float] = time.time
    ) -> None:
        """Open or create the file. Raises ConfigError where that cannot be done."""
        self._clock = clock
        self._past_seconds = past_seconds
        self._own = uuid4().hex
        self._after: int | None = None
        self._lock = threading.Lock()
        self._connection = open_file(Path(path), timeout=timeout, hint=_HINT, prepare=_prepare)

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult:
        """Send a message, unless it is empty, and return what others sent. `hold` are leases to ask for or to keep."""
        now, asked, given = self._clock(), list(hold), list(give_back)
        with self._lock, self._connection as rows:
            rows.execute("BEGIN IMMEDIATE" if data or asked or given else "BEGIN")
            rows.executemany("DELETE FROM leases WHERE name = ? AND holder = ?", [(name, self._own) for name in given])
            held = [name for name in asked if self._hold(rows, name, now)]
            if data:
                self._send(rows, data, now)
            messages = self._read(rows, now)
        return ExchangeResult(messages, held)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _hold(self, rows: sqlite3.Connection, name: str, now: float) -> bool:
        return rows.execute(_HOLD, (name, self._own, now + LEASE_SECONDS, now)).rowcount > 0

    def _send(self, rows: sqlite3.Connection, data: bytes, now: float) -> None:
        sent = rows.execute("INSERT INTO messages (sender, sent, data) VALUES (?, ?, ?)", (self._own, now, data))
        rows.execute(
            "DELETE FROM messages WHERE sent < ? OR id <= ?",
            (now - self._past_seconds - _KEPT_LONGER_SECONDS, (sent.lastrowid or 0) - MOST_MESSAGES),
        )

    def _read(self, rows: sqlite3.Connection, now: float) -> list[Message]:
        since = now - self._past_seconds if self._after is None else 0.0
        found = rows.execute(
            "SELECT id, sent, data FROM messages WHERE id > ? AND sent >= ? AND sender != ? ORDER BY id",
            (self._after or 0, since, self._own),
        ).fetchall()
        self._after = found[-1][0] if found else self._after or 0
        return [Message(max(0.0, now - sent), bytes(data)) for _, sent, data in found]


def _prepare(connection: sqlite3.Connection) -> None:
    check_number(connection, 0)
    # News of health are of no use after a power cut.
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
