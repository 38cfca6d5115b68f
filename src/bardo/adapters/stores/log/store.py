"""Open a log for appending: an SQLite file through its driver, a database server through SQLAlchemy."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bardo.adapters.stores.log.batch_writer import Store
from bardo.adapters.stores.log.journal import RecoveringStore
from bardo.adapters.stores.log.row import LogRow
from bardo.adapters.stores.log.sqlite_store import SqliteLogStore


class LogStore(Store[LogRow], RecoveringStore, Protocol):
    """A log that is open for appending. Used by one thread at a time."""


def open_store(path: str | Path, *, keep_content: bool) -> LogStore:
    """Open, create or migrate the log at `path`, a file or an address. Raises LogUnusable or LogNewer."""
    if not isinstance(path, str) or "://" not in path:
        return SqliteLogStore(Path(path), keep_content=keep_content)
    from bardo.adapters.stores.database.engines import is_file
    from bardo.adapters.stores.log.addressed_store import AddressedStore
    from bardo.adapters.stores.log.database import address_of

    address = address_of(path)
    if is_file(address):
        return SqliteLogStore(Path(str(address.database)), keep_content=keep_content)
    return AddressedStore(address, keep_content=keep_content)
