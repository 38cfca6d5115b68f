"""A store of state in an SQLite file: it outlives a restart, and several workers of one machine share it.

The file holds what models said in plain form and is readable by its owner alone.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bardo.adapters.stores.database.sqlite_file import NUMBER_OF_STATE, open_file
from bardo.adapters.stores.state.store import Bounds, size_of

_BUSY_SECONDS = 5.0
_KEYS_AT_ONCE = 500
# Sums are kept beside the entries, so that looking at a bound costs nothing that grows.
_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS entries (
        id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, value BLOB NOT NULL, size INTEGER NOT NULL, expires REAL NOT NULL,
        reply TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS entries_of_tenant ON entries (tenant, id)",
    """
    CREATE TABLE IF NOT EXISTS keys (
        tenant TEXT NOT NULL, key TEXT NOT NULL, entry INTEGER NOT NULL, ambiguous INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (tenant, key)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS keys_of_entry ON keys (entry)",
    "CREATE TABLE IF NOT EXISTS shares (tenant TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID",
    """
    CREATE TRIGGER IF NOT EXISTS entry_added AFTER INSERT ON entries BEGIN
        INSERT INTO shares VALUES (NEW.tenant, 1, NEW.size), ('*', 1, NEW.size)
        ON CONFLICT (tenant) DO UPDATE SET entries = entries + 1, bytes = bytes + excluded.bytes;
    END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS entry_gone AFTER DELETE ON entries BEGIN
        DELETE FROM keys WHERE entry = OLD.id;
        UPDATE shares SET entries = entries - 1, bytes = bytes - OLD.size WHERE tenant IN (OLD.tenant, '*');
        DELETE FROM shares WHERE tenant = OLD.tenant AND entries = 0;
    END
    """,
)
_ALL = "*"
# A key whose latest entry is of another reply, and says something else, is ambiguous from then on.
_PUT_KEY = """
INSERT INTO keys (tenant, key, entry) VALUES (?1, ?2, ?3)
ON CONFLICT (tenant, key) DO UPDATE SET entry = ?3, ambiguous = ambiguous OR NOT EXISTS (
    SELECT 1 FROM entries AS before, entries AS now
    WHERE before.id = keys.entry AND now.id = ?3
    AND (before.value = now.value OR (now.reply != '' AND before.reply = now.reply))
)
"""
_IS_STILL = """
SELECT 1 FROM keys JOIN entries ON entries.id = keys.entry
WHERE keys.tenant = ? AND keys.key = ? AND NOT keys.ambiguous AND entries.value = ?
"""
_REMOVE_REPLACED = "DELETE FROM entries WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM keys WHERE entry = ?1)"


class SqliteStore:
    """One connection, used by one thread at a time."""

    waits = True
    problems: tuple[type[Exception], ...] = (OSError, sqlite3.Error)

    def __init__(self, path: str | Path, bounds: Bounds | None = None) -> None:
        """Open or create the file. Raises ConfigError where that cannot be done."""
        self._bounds = bounds or Bounds()
        self._lock = threading.Lock()
        self._connection = open_file(Path(path), timeout=_BUSY_SECONDS, hint=_HINT, prepare=_prepare)

    def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> bool:
        """Keep a value under its keys."""
        size = size_of(keys, value)
        if not keys or size > min(self._bounds.tenant_bytes, self._bounds.bytes):
            return False
        with self._transaction() as rows:
            rows.execute(
                "DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE expires <= ? LIMIT 100)", (now,)
            )
            if before is not None and not rows.execute(_IS_STILL, (_tenant_key(tenant), keys[0], before)).fetchone():
                return False
            expires = now + self._bounds.seconds
            added = rows.execute(
                "INSERT INTO entries (tenant, value, size, expires, reply) VALUES (?, ?, ?, ?, ?)",
                (_tenant_key(tenant), value, size, expires, reply),
            )
            replaced = _entries_of_reply(rows, _tenant_key(tenant), keys, reply)
            rows.executemany(_PUT_KEY, [(_tenant_key(tenant), key, added.lastrowid) for key in keys])
            rows.executemany(_REMOVE_REPLACED, replaced)
            self._shrink(rows, _tenant_key(tenant))
        return True

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        """Return what these keys lead to."""
        values: dict[str, bytes] = {}
        with self._lock:
            for begin in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[begin : begin + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                statement = (
                    "SELECT keys.key, entries.value FROM keys JOIN entries ON entries.id = keys.entry "
                    f"WHERE keys.tenant = ? AND NOT keys.ambiguous AND entries.expires > ? AND keys.key IN ({marks})"
                )
                values |= dict(self._connection.execute(statement, (_tenant_key(tenant), now, *some)))
        return values

    def remove(self, tenant: str, key: str) -> bool:
        """Forget the value that a key leads to."""
        statement = "DELETE FROM entries WHERE id = (SELECT entry FROM keys WHERE tenant = ? AND key = ?)"
        with self._transaction() as rows:
            return rows.execute(statement, (_tenant_key(tenant), key)).rowcount > 0

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return the number of values and their bytes."""
        with self._lock:
            return _share(self._connection, _ALL if tenant is None else _tenant_key(tenant))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _shrink(self, rows: sqlite3.Connection, tenant: str) -> None:
        bounds = self._bounds
        oldest = "DELETE FROM entries WHERE id = (SELECT min(id) FROM entries{})"
        while _over(_share(rows, tenant), bounds.tenant_entries, bounds.tenant_bytes):
            rows.execute(oldest.format(" WHERE tenant = ?"), (tenant,))
        while _over(_share(rows, _ALL), bounds.entries, bounds.bytes):
            rows.execute(oldest.format(""))


def _entries_of_reply(rows: sqlite3.Connection, tenant: str, keys: Sequence[str], reply: str) -> list[tuple[int]]:
    """Return the entries of the same reply that these keys led to so far."""
    rows_held: set[tuple[int]] = set()
    if not reply:
        return []
    for begin in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[begin : begin + _KEYS_AT_ONCE]
        statement = (
            "SELECT entries.id FROM keys JOIN entries ON entries.id = keys.entry "
            f"WHERE keys.tenant = ? AND entries.reply = ? AND keys.key IN ({','.join('?' * len(some))})"
        )
        rows_held.update(rows.execute(statement, (tenant, reply, *some)))
    return list(rows_held)


def _tenant_key(tenant: str) -> str:
    # The row with all sums must not be a tenant's.
    return f"t:{tenant}"


def _share(rows: sqlite3.Connection, tenant: str) -> tuple[int, int]:
    sums = rows.execute("SELECT entries, bytes FROM shares WHERE tenant = ?", (tenant,)).fetchone()
    return (int(sums[0]), int(sums[1])) if sums else (0, 0)


def _over(share: tuple[int, int], entries: int, size: int) -> bool:
    return share[0] > entries or share[1] > size


def _prepare(connection: sqlite3.Connection) -> None:
    # A power cut may cost the last seconds; a conversation then goes on without its reasoning.
    connection.execute("PRAGMA synchronous = NORMAL")
    with connection:
        # Workers that start at once take turns, so that none drops what another has just made.
        connection.execute("BEGIN IMMEDIATE")
        written = connection.execute("PRAGMA user_version").fetchone()[0]
        if written not in (0, 1, NUMBER_OF_STATE):
            raise sqlite3.DatabaseError(f"it is of version {written}, and this bardo writes version {NUMBER_OF_STATE}")
        if written == 1:
            # Version 1 did not tell replies apart. What it holds would expire within hours, so nothing is converted.
            for table in ("keys", "entries", "shares"):
                connection.execute(f"DROP TABLE {table}")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {NUMBER_OF_STATE}")


_HINT = 'choose a file in a directory that this user may write to, or store = "memory"'
