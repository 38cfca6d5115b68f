"""The protocol of a log that is open for appending, and which one a path or an address leads to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bardo.adapters.stores.log.row import LogGap, LogRow
from bardo.adapters.stores.log.sqlite_store import SqliteLogStore


class LogStore(Protocol):
    """Rows of calls and the sums beside them. A log that is absent is made, an older one migrated. Used by one thread at a time.

    A stored row is there for every reader, also of another process, as soon as the method returns. StoreUnavailable says that the same
    rows may be stored later (a full disk, a lock, a server that is away), RowsRefused that they never will be.
    """

    name: str
    """The file or the address, without what may be secret."""

    def append(self, rows: Sequence[LogRow]) -> None:
        """Store all rows, in order, and add them to the sums of their days, or do neither. Raises StoreUnavailable or RowsRefused."""

    def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these calls have a row. Raises StoreUnavailable."""
        ...

    def note_gap(self, gap: LogGap) -> None:
        """Store that rows are missing. Raises StoreUnavailable or RowsRefused."""

    def close(self) -> None:
        """Let go of the file, or of the connections."""


def open_store(path: str | Path, *, keep_content: bool) -> LogStore:
    """Open, create or migrate the log at `path`, a file or an address; what was asked and answered is stored only with `keep_content`.

    Raises LogUnusable or LogNewer.
    """
    if not isinstance(path, str) or "://" not in path:
        return SqliteLogStore(Path(path), keep_content=keep_content)
    from bardo.adapters.stores.database.engines import is_file
    from bardo.adapters.stores.log.addressed_store import AddressedStore
    from bardo.adapters.stores.log.database import address_of

    address = address_of(path)
    if is_file(address):
        return SqliteLogStore(Path(str(address.database)), keep_content=keep_content)
    return AddressedStore(address, keep_content=keep_content)
