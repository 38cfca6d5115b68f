"""What gateways send each other, and leases that one of them holds at a time.

`RedisExchange` carries it between machines, `FileExchange` between the workers of one, over an SQLite file. Messages are kept
for a while, and up to a number, for those that begin.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from bardo.adapters.stores.database.redis import connect_redis, redis_problems
from bardo.adapters.stores.database.sqlite_file import check_number, open_file

LEASE_SECONDS = 30.0
MOST_MESSAGES = 20_000


class Message(NamedTuple):
    """What another gateway sent, and how many seconds ago."""

    age: float
    data: bytes


class ExchangeResult(NamedTuple):
    """What others sent since the last time, and which of the leases that were asked for this gateway holds."""

    messages: Sequence[Message]
    held: Sequence[str]


class Exchange(Protocol):
    """The messages of one gateway, and the leases that one gateway holds at a time. Calls may fail with `problems`."""

    @property
    def problems(self) -> tuple[type[Exception], ...]: ...

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult: ...

    def close(self) -> None: ...


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


_AT_ONCE = 500
_MOST_ROUNDS = MOST_MESSAGES // _AT_ONCE
_TAKE_LEASE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_GIVE_BACK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisExchange:
    """The messages of one gateway at the server at `address`. `past_seconds` is how old the messages may be that it reads first."""

    problems: tuple[type[Exception], ...]

    def __init__(self, address: str, *, space: str, past_seconds: float, timeout: float = 2.0) -> None:
        """Prepare connections; none is opened yet. Raises ConfigError without the package, or for a wrong address."""
        self._server: Any = connect_redis(address, timeout=timeout, what=space)
        self.problems = redis_problems()
        self._prefix = f"bardo:{{{space}}}:"
        self._past_ms = int(past_seconds * 1000)
        self._own = uuid4().hex
        self._after = ""

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult:
        """Send a message, unless it is empty, and return what others sent. `hold` are leases to ask for or to keep."""
        asked, given = list(hold), list(give_back)
        seconds, micros = self._server.time() if not self._after else (0, 0)
        after = self._after or str(max(0, seconds * 1000 + micros // 1000 - self._past_ms))
        with self._server.pipeline(transaction=False) as pipeline:
            for name in given:
                pipeline.eval(_GIVE_BACK, 1, self._lease(name), self._own)
            for name in asked:
                pipeline.eval(_TAKE_LEASE, 1, self._lease(name), self._own, int(LEASE_SECONDS * 1000))
            if data:
                self._add(pipeline, data)
            pipeline.time()
            pipeline.xrange(self._prefix + "messages", min=f"({after}", count=_AT_ONCE)
            answers = pipeline.execute()
        held = [name for name, answer in zip(asked, answers[len(given) :], strict=False) if answer]
        seconds, micros = answers[-2]
        entries = self._read_on(answers[-1])
        self._after = entries[-1][0].decode() if entries else after
        return ExchangeResult(self._of_others(entries, seconds + micros / 1e6), held)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _add(self, pipeline: Any, data: bytes) -> None:
        fields = {"from": self._own, "data": data}
        pipeline.xadd(self._prefix + "messages", fields, maxlen=MOST_MESSAGES, approximate=True)
        # The server forgets what nobody adds to any longer.
        pipeline.pexpire(self._prefix + "messages", self._past_ms + 60_000)

    def _read_on(self, entries: list[Any]) -> list[Any]:
        """Return entries with those that come after them."""
        latest = entries
        for _ in range(_MOST_ROUNDS):
            if len(latest) < _AT_ONCE:
                break
            after = f"({latest[-1][0].decode()}"
            latest = self._server.xrange(self._prefix + "messages", min=after, count=_AT_ONCE)
            entries = [*entries, *latest]
        return entries

    def _of_others(self, entries: Iterable[Any], at: float) -> list[Message]:
        own, found = self._own.encode(), []
        for number, fields in entries:
            data = fields.get(b"data")
            if data is not None and fields.get(b"from") != own:
                sent = int(number.partition(b"-")[0]) / 1000
                found.append(Message(max(0.0, at - sent), data))
        return found

    def _lease(self, name: str) -> str:
        return f"{self._prefix}lease:{blake2b(name.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"
