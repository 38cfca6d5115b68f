"""How much a log holds, and how much room it takes.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, Connection, func, select, text

from bardo.adapters.stores.database.engines import is_file
from bardo.adapters.stores.log.row import LogExtent
from bardo.adapters.stores.log.schema import inference_log_gaps, inference_rollup, metadata

_BESIDE = ("", "-wal")


def extent(connection: Connection, address: URL) -> LogExtent:
    """Return the extent of the log at `address`. Its calls are counted by the sums beside the rows, which are few."""
    column = inference_rollup.c
    sums = select(func.coalesce(func.sum(column.calls), 0), func.min(column.day), func.max(column.day))
    rows, first, last = connection.execute(sums).one()
    dropped = connection.scalar(select(func.coalesce(func.sum(inference_log_gaps.c.rows), 0)))
    size = size_of(connection, address)
    return LogExtent(rows=int(rows), dropped=int(dropped or 0), bytes=size, first=first, last=last)


def size_of(connection: Connection, address: URL) -> int | None:
    """Return how many bytes the log at `address` takes; None where that is not known."""
    return _file_size(address) if is_file(address) else _table_size(connection)


def _file_size(address: URL) -> int | None:
    try:
        files = [Path(f"{address.database}{end}") for end in _BESIDE]
        return sum(file.stat().st_size for file in files if file.exists())
    except OSError:
        return None


def _table_size(connection: Connection) -> int | None:
    sizes = " + ".join(f"coalesce(pg_total_relation_size(to_regclass('{name}')), 0)" for name in metadata.tables)
    size = connection.scalar(text(f"SELECT {sizes}"))
    return None if size is None else int(size)
