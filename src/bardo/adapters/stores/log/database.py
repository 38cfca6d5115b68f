"""The database a log lives in: opened, and brought to the form this version of bardo writes.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.stores.database import engines, revisions
from bardo.adapters.stores.database.engines import reason as reason
from bardo.adapters.stores.database.engines import shown as shown
from bardo.adapters.stores.log.problems import LOG as LOG
from bardo.adapters.stores.log.problems import LogMissing
from bardo.adapters.stores.log.schema import metadata
from bardo.adapters.stores.migrations import LOG_BRANCH, Branch
from bardo.values.errors import OperatorError


def address_of(path: str | Path) -> URL:
    """Return the database address of a log: a file or an address. Raises LogUnusable where it is neither."""
    return engines.address_of(path, LOG)


def open_for_writing(address: URL) -> Engine:
    """Return an engine whose every transaction is a writer's: one at a time, in the order they end."""
    return engines.open_for_writing(address, LOG)


def open_for_reading(address: URL) -> Engine:
    """Return an engine that changes nothing. Raises LogMissing where there is no file."""
    return engines.open_for_reading(address, LOG)


def unusable(address: URL, error: BaseException) -> OperatorError:
    """Return the LogUnusable to raise when a log cannot be opened or read."""
    return engines.unusable(address, error, LOG)


def bring_to_current(engine: Engine, *, branch: Branch = LOG_BRANCH) -> None:
    """Create or migrate a log in one transaction. Raises LogNewer, and LogUnusable where the database cannot be used."""
    revisions.migrate(engine, branch, metadata=metadata, use=LOG)


def check_readable(engine: Engine, address: URL, *, branch: Branch = LOG_BRANCH) -> None:
    """Make sure `engine` can read the log, migrating an older one first.

    Raises LogMissing where the database holds no log, LogNewer, and LogUnusable.
    """
    try:
        with engine.connect() as connection:
            stored = stored_revision(connection)
    except SQLAlchemyError as error:
        raise unusable(address, error) from error
    if stored is None:
        raise LogMissing(
            f"{shown(address)} holds no inference log", hint="name the log that your gateway writes, and check the path"
        )
    if stored != branch.newest:
        _bring_forward(address, branch)


def stored_revision(connection: Connection) -> str | None:
    """Return the revision a log is at, `None` where the database holds none."""
    return revisions.stored_revision(connection, LOG_BRANCH)


def _bring_forward(address: URL, branch: Branch) -> None:
    engine = open_for_writing(address)
    try:
        bring_to_current(engine, branch=branch)
    finally:
        engine.dispose()
