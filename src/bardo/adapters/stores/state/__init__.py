"""State that outlives a request, bounded and expiring: in memory, in an SQLite file, or in a server that several machines share."""

from bardo.adapters.config.paths import named_path
from bardo.adapters.config.storage import POSTGRESQL, REDIS
from bardo.adapters.stores.state.memory import MemoryStore
from bardo.adapters.stores.state.sqlite import SqliteStore
from bardo.adapters.stores.state.store import Bounds, KeyedStore

__all__ = ["Bounds", "KeyedStore", "MemoryStore", "SqliteStore", "open_store"]


def open_store(where: str, bounds: Bounds, *, space: str = "replay") -> KeyedStore | None:
    """Return the store in `memory`, in the file `where`, or at that address, or None if it is empty.

    `space` sets it apart from others at the same address. A server is asked for nothing yet. Raises OperatorError where a file cannot be
    used, for a wrong address, and where a package is missing.
    """
    if where == "memory":
        return MemoryStore(bounds)
    if where.startswith(REDIS):
        from bardo.adapters.stores.state.redis import RedisStore

        return RedisStore(where, bounds, space=space)
    if where.startswith(POSTGRESQL):
        from bardo.adapters.stores.state.sql import PostgresStore

        return PostgresStore(where, bounds, space=space)
    return SqliteStore(named_path(where), bounds) if where else None
