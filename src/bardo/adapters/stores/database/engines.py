"""Open a database, SQLite or PostgreSQL, and describe its faults in plain words.

Loads SQLAlchemy: import it where a database is opened, and nowhere above.
"""

from __future__ import annotations

import selectors
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from sqlalchemy import URL, Connection, Engine, TextClause, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InvalidatePoolError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from bardo.adapters.config.paths import is_file as is_existing_file
from bardo.adapters.stores.database.problems import STATE, DatabaseProblem, DatabaseUse, in_one_line
from bardo.adapters.stores.database.sqlite_file import BUSY_SECONDS, make_file, unusable_file, use_journal

# Of a server that a network no longer reaches libpq would wait for hours. These are its parameters; an address may name others.
_SERVER_TIMEOUTS: dict[str, float] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

LONGEST_WAIT_SECONDS = 20.0
"""How long a transaction waits for the writers of other threads and processes."""
_ADDRESSES = "give a file, or an address like postgresql://user@host/database"


def address_of(path: str | Path, use: DatabaseUse = STATE) -> URL:
    """Return the address of a database: a file is SQLite, anything with `://` is an address already.

    Raises DatabaseUnusable where it is neither.
    """
    if not isinstance(path, str) or "://" not in path:
        return URL.create("sqlite+pysqlite", database=str(Path(path).absolute()))
    try:
        address = make_url(path)
    except (ArgumentError, ValueError) as error:  # A port that is no number is the latter.
        raise use.unusable(f"the address of the {use.name} cannot be read", hint=_ADDRESSES) from error
    if address.drivername in ("postgresql", "postgres"):
        return address.set(drivername="postgresql+psycopg")
    if address.get_backend_name() == "sqlite" and address.database:
        return address_of(Path(address.database), use)
    if address.get_backend_name() != "postgresql":
        raise use.unusable(f"no {use.name} can be kept at {shown(address)}", hint=_ADDRESSES)
    return address


def shown(address: URL) -> str:
    """Return the address for a message, without what may be secret."""
    if is_file(address) and address.database:
        # A file that is read has the form of a URI.
        return unquote(address.database.removeprefix("file:")) if "uri" in address.query else address.database
    return address.set(query={}).render_as_string(hide_password=True)


def is_file(address: URL) -> bool:
    """Whether the database is an SQLite file of ours to create."""
    return address.get_backend_name() == "sqlite"


def open_for_writing(address: URL, use: DatabaseUse = STATE) -> Engine:
    """Return an engine whose every transaction is a writer's: one at a time, in the order they end."""
    if is_file(address):
        make_file(Path(str(address.database)), use)
    engine = _engine(address, use)
    if is_file(address):
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_immediately)
    elif address.get_backend_name() == "postgresql":
        event.listen(engine, "begin", partial(_take_turns, use.lock))
    return engine


def open_for_reading(address: URL, use: DatabaseUse = STATE) -> Engine:
    """Return an engine that changes nothing. Raises DatabaseMissing where there is no file."""
    if not is_file(address):
        return _engine(address, use)
    file = Path(str(address.database))
    if not is_existing_file(file):
        raise use.missing(f"there is no {use.name} at {file}", hint=use.how_to_find)
    # `rw` rather than `ro`: after a crash the first to open a database, even to read it, finishes what the journal holds.
    engine = _engine(address.set(database=f"file:{quote(str(file))}", query={"mode": "rw", "uri": "true"}), use)
    event.listen(engine, "connect", _set_up_reading)
    event.listen(engine, "begin", _begin)
    return engine


_TAKES_NO_TURNS = "bardo_takes_no_turns"


def without_transactions(engine: Engine) -> Engine:
    """Return an engine over the same connections whose statements are transactions of their own; SQLite's is returned as it is.

    A server is asked once for each statement then, and not for a beginning and an end too.
    """
    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", _TAKES_NO_TURNS: True}
    return engine if is_file(engine.url) else engine.execution_options(**options)


def without_turns(engine: Engine) -> Engine:
    """Return an engine over the same connections whose transactions on a server run beside each other."""
    return engine.execution_options(**{_TAKES_NO_TURNS: True})


Statement = tuple[TextClause, Mapping[str, Any] | Sequence[Mapping[str, Any]]]
"""A statement and its values, or those of each time that it is executed."""


def execute_together(connection: Connection, statements: Sequence[Statement], *, commits: bool = False) -> list[Any]:
    """Execute statements of one transaction, and return the rows of each.

    PostgreSQL gets them at once, and the end of the transaction too where this `commits`: the way there and back is made once.
    """
    raw: Any = connection.connection.dbapi_connection
    if connection.dialect.driver != "psycopg":
        results = [connection.execute(statement, values) for statement, values in statements]
        return [result.all() if result.returns_rows else [] for result in results]
    try:
        cursors = []
        with raw.pipeline():
            for statement, values in statements:
                cursor = raw.cursor()
                written = str(statement.compile(dialect=connection.dialect))
                (cursor.execute if isinstance(values, Mapping) else cursor.executemany)(written, values)
                cursors.append(cursor)
            if commits:
                raw.commit()
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
    except raw.Error as error:
        # The first of several errors is about the statements, the others about a pipeline that could not be ended.
        first = error
        while isinstance(first.__context__, raw.Error):
            first = first.__context__
        if raw.closed or raw.pgconn.pipeline_status:
            connection.invalidate(first)
        # Statements that the driver is given directly fail in its words.
        raise DBAPIError.instance(None, None, first, raw.Error) from error


@contextmanager
def transaction(engine: Engine, use: DatabaseUse = STATE) -> Iterator[Connection]:
    """Do all that the block does, or nothing of it. Raises what `use` raises where the database cannot be used."""
    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise unusable(engine.url, error, use) from error


def overwrite_removed(engine: Engine) -> None:
    """Have SQLite overwrite data removed over the connections of this engine: it may hold questions and answers."""
    if is_file(engine.url):
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA secure_delete = ON"))


def reason(error: BaseException) -> str:
    """Return what the driver said, in one line: SQLAlchemy's own text repeats the statement."""
    return in_one_line(error.orig if isinstance(error, DBAPIError) and error.orig is not None else error)


# What PostgreSQL says to an account or a database that it does not take, in English.
_REFUSALS = ("authentication failed", "does not exist", "pg_hba.conf", "permission denied", "not permitted to log in")


def unusable(address: URL, error: BaseException, use: DatabaseUse = STATE) -> DatabaseProblem:
    """Return the problem to raise when a database cannot be opened or read."""
    if is_file(address):
        return unusable_file(shown(address), reason(error), use)
    hint = "check the server, its address and the account's rights"
    why = reason(error)
    problem = use.unusable(f"the {use.name} at {shown(address)} cannot be used: {why}", hint=hint)
    problem.away = isinstance(error, OperationalError) and not any(text in why for text in _REFUSALS)
    return problem


def _engine(address: URL, use: DatabaseUse) -> Engine:
    timeout = {"timeout": BUSY_SECONDS} if is_file(address) else _SERVER_TIMEOUTS
    timeout = {name: value for name, value in timeout.items() if name not in address.query}
    is_psycopg = address.drivername == "postgresql+psycopg"
    try:
        engine = create_engine(
            address,
            hide_parameters=True,  # Rows may hold content, and error texts go to the operator's log.
            json_deserializer=msgspec.json.decode,
            connect_args=timeout,
            pool_pre_ping=not is_psycopg and not is_file(address),
        )
    except (ImportError, NoSuchModuleError) as error:
        raise use.unusable(
            f"no driver for {shown(address)}: {reason(error)}", hint="for PostgreSQL: pip install 'psycopg[binary]'"
        ) from error
    except (SQLAlchemyError, TypeError) as error:
        raise unusable(address, error, use) from error
    if is_psycopg:
        event.listen(engine, "checkout", _check_connection)
    return engine


# Behind a firewall that forgets connections nothing tells of their end.
_ASKED_AFTER_SECONDS = 30.0


def _check_connection(connection: Any, entry: ConnectionPoolEntry, _: PoolProxiedConnection) -> None:
    """Raise InvalidatePoolError for a connection that its server has closed, as when it was started anew: no call shall find that out.

    What can be read of a connection that nothing was asked on is the server's farewell. One that was not used for long is asked.
    """
    now = time.monotonic()
    is_old = now - entry.info.setdefault("checked", now) > _ASKED_AFTER_SECONDS
    entry.info["checked"] = now
    try:
        with selectors.DefaultSelector() as waiting:
            waiting.register(connection.fileno(), selectors.EVENT_READ)
            if connection.closed or waiting.select(0):
                raise InvalidatePoolError
        if is_old:
            connection.execute("SELECT 1")
            connection.rollback()
    except (connection.Error, OSError) as error:
        raise InvalidatePoolError from error


def _set_up_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    _set_up_reading(connection, _entry)
    cursor = connection.cursor()
    try:
        use_journal(cursor, BUSY_SECONDS)
    except BaseException:
        # Before 2.0.53, SQLAlchemy leaves a connection open that could not be set up.
        connection.close()
        raise
    # The journal is synced when it is folded into the database, not at every commit. A killed process loses nothing
    # it committed; a power cut or a crashed kernel may lose the commits since the last sync (seconds of a busy log,
    # longer for a quiet one), and never leaves the database broken. FULL would cost a disk flush per batch.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA query_only = OFF")
    cursor.close()


def _set_up_reading(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver begins transactions by guesswork, and not at all for table changes: we begin them.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only = ON")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_immediately(connection: Connection) -> None:
    # A transaction that turns into a writer halfway fails at once when another got there first; this one waits. SQLite gives the file to
    # whoever asks at the right moment, not to whoever has waited longest, so that one of many may wait for longer than its own timeout.
    own: Any = connection.connection.dbapi_connection
    give_up = time.monotonic() + LONGEST_WAIT_SECONDS
    while time.monotonic() < give_up:
        try:
            own.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                break
    # What fails here fails in SQLAlchemy's words.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _take_turns(lock: int, connection: Connection) -> None:
    if connection.get_execution_options().get(_TAKES_NO_TURNS):
        return
    # PostgreSQL numbers rows before they can be seen. Without turns, a follower could pass numbers still to appear.
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock})")
