"""State that outlives a request, bounded and expiring: in memory, or in an SQLite file that outlives a restart."""

from pathlib import Path

from bardo.edge.state.memory import MemoryStore
from bardo.edge.state.sqlite import SqliteStore
from bardo.edge.state.store import Bounds, KeyedStore

__all__ = ["Bounds", "KeyedStore", "MemoryStore", "SqliteStore", "open_store"]


def open_store(where: str, bounds: Bounds) -> KeyedStore | None:
    """Return the store in `memory` or in the file `where`; None where it is empty. Raises ConfigError where the file cannot be used."""
    if where == "memory":
        return MemoryStore(bounds)
    return SqliteStore(Path(where).expanduser(), bounds) if where else None
