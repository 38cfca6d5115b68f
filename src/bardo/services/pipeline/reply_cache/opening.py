"""Open the store of replies that a configuration names."""

from __future__ import annotations

from bardo.adapters.config.failover import REDIS
from bardo.adapters.config.paths import named_path
from bardo.adapters.config.pipeline import CacheSettings
from bardo.context.cache.entries import CacheBounds, ReplyStore
from bardo.services.pipeline.reply_cache.memory import MemoryReplies


def open_replies(where: str, bounds: CacheBounds, *, timeout: float = 5.0) -> ReplyStore:
    """Return the store in `memory`, in a file, or at an address. It waits `timeout` seconds for a server.

    Raises OperatorError where it cannot be opened.
    """
    if where == "memory":
        return MemoryReplies(bounds)
    if where.startswith(REDIS):
        from bardo.services.pipeline.reply_cache.redis import RedisReplies

        return RedisReplies(where, bounds, timeout=timeout)
    from bardo.services.pipeline.reply_cache.sql import SqlReplies

    return SqlReplies(where if "://" in where else named_path(where), bounds)


def bounds_of(settings: CacheSettings) -> CacheBounds:
    """Return how much the store of a configuration holds."""
    return CacheBounds(
        entries=settings.max_entries,
        bytes=settings.max_bytes,
        tenant_entries=settings.max_entries_per_tenant,
        tenant_bytes=settings.max_bytes_per_tenant,
    )
