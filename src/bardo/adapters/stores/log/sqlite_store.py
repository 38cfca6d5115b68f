"""The writing side of a log in an SQLite file: whole batches in through the driver, or an exception that says whether to try again.

SQLAlchemy, which takes a quarter of a second and 20 MB to load, reads logs and migrates those of an older form; writing needs none of it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from bardo.adapters.stores.database.problems import LOG, in_one_line, problem_of_driver
from bardo.adapters.stores.database.sqlite_file import BUSY_SECONDS, make_file, unusable_file, use_journal
from bardo.adapters.stores.log.columns import ROLLUP_COLUMNS, TABLES, Kind, LogColumn, RowEncoder
from bardo.adapters.stores.log.rollup import RollupKey, column_values, roll_up
from bardo.adapters.stores.log.row import LARGEST_COUNT, LogGap, LogRow
from bardo.adapters.stores.migrations import LOG_BRANCH, VERSIONS

ROWS_AT_ONCE = (64, 16, 4, 1)
"""The driver gives the interpreter away for each statement, and gets it back from a busy event loop milliseconds later."""
PAUSE_SECONDS = 0.002
"""Between statements, so that an event loop on the same core answers in between: a batch of 500 rows takes 7 ms of it."""
_MOST_TEXTS = 64
_TYPES: dict[Kind, str] = {
    "row": "INTEGER",
    "id": "TEXT",
    "text": "TEXT",
    "count": "BIGINT",
    "real": "DOUBLE",
    "flag": "BOOLEAN",
    "json": "TEXT",
}


class SqliteLogStore:
    """A log in a file, open for appending. Used by one thread at a time."""

    def __init__(self, path: Path, *, keep_content: bool) -> None:
        """Open, create or migrate the log. Raises LogUnusable or LogNewer."""
        self._path = path.absolute()
        self.name = str(self._path)
        self._encoder = RowEncoder(keep_content=keep_content)
        make_file(self._path, LOG)
        try:
            self._connection = self._opened()
            self._bring_to_current()
        except sqlite3.Error as error:
            raise unusable_file(self._path, in_one_line(error), LOG) from error

    def check_writable(self) -> None:
        """Write a page, as the first call will. Raises LogUnusable where the disk has no room for it."""
        try:
            self._connection.execute(f"UPDATE {VERSIONS} SET version_num = version_num")
        except sqlite3.Error as error:
            raise unusable_file(self._path, in_one_line(error), LOG) from error

    def append(self, rows: Sequence[LogRow]) -> None:
        """Store all rows, in order, and add them to the sums beside them, in one transaction, or none.

        Raises StoreUnavailable where it may work later, RowsRefused where it will not.
        """
        with self._transaction():
            self._insert(rows)
            values = [column_values(key, sums) for key, sums in roll_up(rows).items()]
            self._connection.executemany(_upsert(), [tuple(row.values()) for row in values])

    def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these calls have a row. Raises StoreUnavailable."""
        marks = ",".join("?" * len(request_ids))
        with self._transaction():
            rows = self._connection.execute(
                f"SELECT request_id FROM inference_log WHERE request_id IN ({marks})", tuple(request_ids)
            )
            return frozenset([request_id for (request_id,) in rows])

    def note_gap(self, gap: LogGap) -> None:
        """Store that rows are missing. Raises as `append` does."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO inference_log_gaps (noticed_at, rows, why) VALUES (:noticed_at, :rows, :why)",
                msgspec.structs.asdict(gap),
            )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            use_journal(connection, BUSY_SECONDS)
            # The journal is synced when it is folded into the database, not at every commit: as `database.engines` has it.
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _bring_to_current(self) -> None:
        try:
            is_current = self._is_current()
        except BaseException:
            self._connection.close()
            raise
        if not is_current:
            self._connection.close()
            self._migrate()

    def _is_current(self) -> bool:
        """Whether the log has the form that this version writes; a file without a log gets one."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if VERSIONS in tables:
                revisions = [revision for (revision,) in connection.execute(f"SELECT version_num FROM {VERSIONS}")]
                if any(map(LOG_BRANCH.owns, revisions)):
                    return LOG_BRANCH.newest in revisions
            if LOG_BRANCH.earlier_table in tables:
                return False
            for statement in statements():
                connection.execute(statement)
            connection.execute(f"INSERT INTO {VERSIONS} (version_num) VALUES (?)", (LOG_BRANCH.newest,))
            return True
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.commit()

    def _migrate(self) -> None:
        from bardo.adapters.stores.log.database import address_of, open_current

        open_current(address_of(self._path)).dispose()
        self._connection = self._opened()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Store what the block stores, or nothing of it. Raises StoreUnavailable or RowsRefused."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except Exception as error:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise problem_of_driver(error, sqlite3) from error

    def _insert(self, rows: Sequence[LogRow]) -> None:
        """Encode a few rows at a time, so that the event loop gets its turn in between."""
        connection = self._connection
        most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(self._encoder.names)
        begin = 0
        for size in ROWS_AT_ONCE:
            while size <= min(most, len(rows) - begin):
                names, values = self._filled_columns(rows[begin : begin + size])
                connection.execute(_insertion(names, size), values)
                begin += size
                if size == ROWS_AT_ONCE[0]:
                    time.sleep(PAUSE_SECONDS)

    def _filled_columns(self, rows: Sequence[LogRow]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Return the columns in which any of the rows has a value, and these values row by row.

        Most columns of most rows are empty, and SQLite's driver takes longer for each NULL that is bound than for any value: it looks for
        an adapter of `None`.
        """
        encoder = self._encoder
        names, filled = [], []
        for name, nullable, column in zip(encoder.names, encoder.nullable, encoder.encode_columns(rows), strict=True):
            if not nullable or column.count(None) < len(column):
                names.append(name)
                filled.append(column)
        return tuple(names), tuple(chain.from_iterable(zip(*filled, strict=True)))


def statements() -> Iterator[str]:
    """Yield what creates the log's tables: what SQLAlchemy would create of the same rows."""
    for table, columns in TABLES.items():
        key = "" if columns[0].kind == "row" else f", PRIMARY KEY ({columns[0].name})"
        yield f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(map(_declared, columns))}{key})"
        for column in columns:
            if column.indexed:
                name = f"ix_{table}_{column.name}"
                yield f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({column.name})"
    yield f"CREATE TABLE IF NOT EXISTS {VERSIONS} (version_num VARCHAR(32) NOT NULL, PRIMARY KEY (version_num))"


def _declared(column: LogColumn) -> str:
    default = f" DEFAULT '{column.default}'" if column.default else ""
    null = "" if column.nullable else " NOT NULL"
    key = " PRIMARY KEY AUTOINCREMENT" if column.kind == "row" else ""
    return f"{column.name} {_TYPES[column.kind]}{default}{null}{key}"


@lru_cache(maxsize=_MOST_TEXTS)
def _insertion(names: tuple[str, ...], rows: int) -> str:
    """Return the statement that inserts so many rows with these columns."""
    values = f"({','.join('?' * len(names))})"
    return f"INSERT INTO inference_log ({','.join(names)}) VALUES {','.join([values] * rows)}"


@cache
def _upsert() -> str:
    """Return the statement that adds to the sums of a group, as far as all readers hold them exactly: a provider can report any number."""
    names = [column.name for column in ROLLUP_COLUMNS]
    added = [
        f"{name} = inference_rollup.{name} + excluded.{name}"
        if name == "seconds"
        else f"{name} = min(max(inference_rollup.{name} + excluded.{name}, -{LARGEST_COUNT}), {LARGEST_COUNT})"
        for name in names[len(RollupKey._fields) + 1 :]
    ]
    return (
        f"INSERT INTO inference_rollup ({', '.join(names)}) VALUES ({','.join('?' * len(names))}) "
        f"ON CONFLICT (group_id) DO UPDATE SET {', '.join(added)}"
    )
