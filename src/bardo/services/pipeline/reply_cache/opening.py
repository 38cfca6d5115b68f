"""Make the layer `cache` for a running gateway or library, and open the store of replies that its configuration names."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from itertools import islice

from bardo.adapters.config.paths import named_path
from bardo.adapters.config.pipeline import CacheSettings
from bardo.adapters.config.storage import REDIS, is_file_name, place_of
from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.entries import CacheBounds, CacheEntry, IndexedEntry, ReplyStore, Selection, names_of
from bardo.context.cache.layer import CacheLayer, CacheRules, FindReply, ReleaseWaitingCalls, Similar, StoreReply
from bardo.services.pipeline.parts import LayerParts
from bardo.services.pipeline.reply_cache.cache import CountReplies, Flights, RemoveReplies, ReplyCache

_EXPIRED_AT_ONCE = 8


class MemoryReplies:
    """Entries in the order of their last use: the one that was not asked for the longest goes first.

    The entries are gone when the process ends, and each worker has its own.
    """

    waits = False
    problems: tuple[type[Exception], ...] = ()

    def __init__(self, bounds: CacheBounds | None = None) -> None:
        self._bounds = bounds or CacheBounds()
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, CacheEntry] = OrderedDict()
        self._shares: dict[str, OrderedDict[bytes, None]] = {}
        self._bytes = 0
        self._bytes_of: dict[str, int] = {}
        self._numbers: OrderedDict[int, bytes] = OrderedDict()
        self._number_of: dict[bytes, int] = {}
        self._last = 0

    def find(self, tenant: str, identity: bytes, *, now: float) -> bytes | None:
        """Return the value of an entry that has not expired."""
        with self._lock:
            entry = self._entries.get(identity)
            if entry is None or entry.tenant != tenant:
                return None
            if now >= entry.expires:
                self._remove(identity)
                return None
            self._entries.move_to_end(identity)
            self._shares[tenant].move_to_end(identity)
            return entry.value

    def put(self, entry: CacheEntry, *, now: float) -> bool:
        """Keep an entry in the place of an earlier one, and return whether it is kept."""
        bounds = self._bounds
        with self._lock:
            self._expire(now)
            self._remove(entry.identity)
            if entry.size > min(bounds.tenant_bytes, bounds.bytes) or now >= entry.expires:
                return False
            self._add(entry)
            share = self._shares[entry.tenant]
            while len(share) > bounds.tenant_entries or self._bytes_of[entry.tenant] > bounds.tenant_bytes:
                self._remove(next(iter(share)))
            while len(self._entries) > bounds.entries or self._bytes > bounds.bytes:
                self._remove(next(iter(self._entries)))
            return entry.identity in self._entries

    def indexed(self, after: int, most: int, *, now: float) -> Sequence[IndexedEntry]:
        """Return entries that have an index, a number over `after`, and have not expired, in the order of their numbers."""
        with self._lock:
            newer = reversed(_newer_than(self._numbers, after))
            living = (pair for pair in newer if now < self._entries[pair[1]].expires)
            return [self._indexed(number, identity) for number, identity in islice(living, most)]

    def purge(self, selection: Selection) -> int:
        """Remove entries, and return how many there were."""
        with self._lock:
            gone = [identity for identity, entry in self._entries.items() if is_meant(entry, selection)]
            for identity in gone:
                self._remove(identity)
            return len(gone)

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return how many entries and bytes are kept, of one tenant or of all."""
        with self._lock:
            if tenant is None:
                return len(self._entries), self._bytes
            return len(self._shares.get(tenant, ())), self._bytes_of.get(tenant, 0)

    def close(self) -> None:
        """Forget everything."""
        self.purge(Selection())

    def _indexed(self, number: int, identity: bytes) -> IndexedEntry:
        entry = self._entries[identity]
        return IndexedEntry(
            number=number, tenant=entry.tenant, identity=identity, index=entry.index, expires=entry.expires
        )

    def _add(self, entry: CacheEntry) -> None:
        self._entries[entry.identity] = entry
        self._shares.setdefault(entry.tenant, OrderedDict())[entry.identity] = None
        self._bytes += entry.size
        self._bytes_of[entry.tenant] = self._bytes_of.get(entry.tenant, 0) + entry.size
        if entry.index:
            self._last += 1
            self._numbers[self._last] = entry.identity
            self._number_of[entry.identity] = self._last

    def _remove(self, identity: bytes) -> None:
        entry = self._entries.pop(identity, None)
        if entry is None:
            return
        share = self._shares[entry.tenant]
        del share[identity]
        self._bytes -= entry.size
        self._bytes_of[entry.tenant] -= entry.size
        if not share:
            del self._shares[entry.tenant], self._bytes_of[entry.tenant]
        number = self._number_of.pop(identity, None)
        if number is not None:
            del self._numbers[number]

    def _expire(self, now: float) -> None:
        """Remove a few of those that were not asked for the longest, where they have expired."""
        for identity in list(islice(self._entries, _EXPIRED_AT_ONCE)):
            if now >= self._entries[identity].expires:
                self._remove(identity)


def _newer_than(numbers: OrderedDict[int, bytes], after: int) -> list[tuple[int, bytes]]:
    """Return the pairs with a number over `after`, the newest first: few of many, for whoever asks again and again."""
    numbered: list[tuple[int, bytes]] = []
    for number in reversed(numbers):
        if number <= after:
            break
        numbered.append((number, numbers[number]))
    return numbered


def is_meant(entry: CacheEntry, selection: Selection) -> bool:
    """Whether an entry is one of those that are selected."""
    return (
        selection.tenant in (None, entry.tenant)
        and (selection.tag is None or selection.tag in entry.tags)
        and (selection.model is None or selection.model in names_of(entry))
    )


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


def cache_layer(parts: LayerParts) -> CacheLayer:
    """Return the layer of a configuration, and have its effects performed. Its store is opened at the first call."""
    settings, host = parts.pipeline.cache, parts.host
    where = place_of(settings, parts.environment, "kept replies")
    opening = partial(open_replies, where, bounds_of(settings), timeout=settings.timeout_seconds)
    renewable = RenewableFile(named_path(where), name="kept replies", area="cache") if is_file_name(where) else None
    opened = opening if renewable is None else partial(renewable.open, opening)
    calls = StoreCalls(opened, in_memory=where == "memory", watch=host.watch, renewable=renewable)
    flights = Flights(settings.wait_seconds, host.watch)
    cache = ReplyCache(calls, flights, seconds=settings.timeout_seconds, clock=host.clock)
    parts.effects.register_at_once(FindReply, cache.find)
    parts.effects.register(StoreReply, cache.keep, writes=True)
    parts.effects.register_at_once(ReleaseWaitingCalls, cache.leave, writes=True)
    parts.effects.register(CountReplies, cache.count)
    parts.effects.register(RemoveReplies, cache.remove, writes=True)
    parts.closing.append(cache.close)
    return CacheLayer(rules_of(settings), _similar(parts, cache))


def _similar(parts: LayerParts, cache: ReplyCache) -> Similar | None:
    """Return what looks for similar questions, or None if that is off."""
    settings = parts.pipeline.cache
    if settings.semantic == "off":
        return None
    # Loaded where it is wanted: it reads tables of words.
    from bardo.context.cache.similar import SimilarRules
    from bardo.services.pipeline.reply_cache.similarity import similar_answers

    rules = SimilarRules(
        mode=settings.semantic,
        max_false_hit=settings.max_false_hit,
        least_cosine=settings.min_cosine,
        recheck_share=settings.recheck_share,
    )
    return similar_answers(parts, cache, rules, most=settings.max_questions)


def rules_of(settings: CacheSettings) -> CacheRules:
    """Return what the layer of a configuration decides by."""
    return CacheRules(
        ttl_seconds=settings.ttl_seconds,
        ttl_seconds_at=settings.ttl_seconds_at,
        allow=settings.allow,
        most_temperature=settings.max_temperature,
        most_bytes=settings.max_reply_bytes,
        single_flight=settings.single_flight,
    )
