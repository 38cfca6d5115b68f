"""Where the reasoning of earlier replies is kept for clients that drop it: in memory, or in an SQLite file that outlives a restart."""

from bardo.edge.replay_store.keeper import ReplayKeeper, open_keeper
from bardo.edge.replay_store.memory import MemoryStore
from bardo.edge.replay_store.sqlite import SqliteStore
from bardo.edge.replay_store.store import Bounds, ReplayStore

__all__ = ["Bounds", "MemoryStore", "ReplayKeeper", "ReplayStore", "SqliteStore", "open_keeper"]
