"""A store of state in this process: gone when it ends, and each worker has its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from bardo.adapters.stores.state.store import Bounds, size_of


class _Entry(msgspec.Struct):
    tenant: str
    keys: tuple[str, ...]
    value: bytes
    size: int
    expires: float
    reply: str = ""

    def is_same_reply(self, other: _Entry) -> bool:
        """Whether both are stored for one reply, or say the same."""
        return self.value == other.value or (self.reply != "" and self.reply == other.reply)


class _Share(msgspec.Struct):
    """The share of one tenant: its entries, oldest first, and the latest entry of each key; `ambiguous` keys have had different ones."""

    entries: OrderedDict[int, _Entry] = msgspec.field(default_factory=OrderedDict)
    by_key: dict[str, int] = msgspec.field(default_factory=dict)
    ambiguous: set[str] = msgspec.field(default_factory=set)
    bytes: int = 0


class MemoryStore:
    """Entries in the order they came. Every call costs what it touches, whatever is held."""

    waits = False
    problems: tuple[type[Exception], ...] = ()

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._lock = threading.Lock()
        self._shares: dict[str, _Share] = {}
        # Ordered dicts: the oldest leave first, and a plain dict would be searched past all that have left.
        self._order: OrderedDict[int, _Entry] = OrderedDict()
        self._bytes = 0
        self._next = 0

    def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> bool:
        """Keep a value under its keys."""
        size = size_of(keys, value)
        with self._lock:
            self._expire(now)
            if not keys or size > min(self._bounds.tenant_bytes, self._bounds.bytes):
                return False
            if before is not None and self._value(tenant, keys[0]) != before:
                return False
            self._add(_Entry(tenant, tuple(keys), value, size, now + self._bounds.seconds, reply))
            self._shrink(tenant)
            return True

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        """Return what these keys lead to."""
        values: dict[str, bytes] = {}
        with self._lock:
            share = self._shares.get(tenant)
            for key in keys if share is not None else ():
                entry = share.entries.get(share.by_key.get(key, -1)) if share is not None else None
                if entry is not None and now < entry.expires and share is not None and key not in share.ambiguous:
                    values[key] = entry.value
        return values

    def remove(self, tenant: str, key: str) -> bool:
        """Forget the value that a key leads to."""
        with self._lock:
            share = self._shares.get(tenant)
            number = share.by_key.get(key, -1) if share is not None else -1
            if number not in self._order:
                return False
            self._remove(number)
            return True

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return the number of values and their bytes."""
        with self._lock:
            if tenant is None:
                return len(self._order), self._bytes
            share = self._shares.get(tenant)
            return (0, 0) if share is None else (len(share.entries), share.bytes)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._shares.clear()
            self._order.clear()
            self._bytes = 0

    def _value(self, tenant: str, key: str) -> bytes | None:
        share = self._shares.get(tenant)
        entry = None if share is None else share.entries.get(share.by_key.get(key, -1))
        return None if share is None or entry is None or key in share.ambiguous else entry.value

    def _add(self, entry: _Entry) -> None:
        number, self._next = self._next, self._next + 1
        share = self._shares.get(entry.tenant)
        if share is None:
            share = self._shares[entry.tenant] = _Share()
        replaced = set()
        for key in entry.keys:
            earlier = share.by_key.get(key, -1)
            before = share.entries.get(earlier)
            if before is not None and not before.is_same_reply(entry):
                share.ambiguous.add(key)
            elif before is not None and before.reply:
                replaced.add(earlier)
            share.by_key[key] = number
        self._order[number] = share.entries[number] = entry
        share.bytes += entry.size
        self._bytes += entry.size
        for earlier in replaced:
            if not any(share.by_key.get(key) == earlier for key in share.entries[earlier].keys):
                self._remove(earlier)

    def _remove(self, number: int) -> None:
        entry = self._order.pop(number)
        share = self._shares[entry.tenant]
        del share.entries[number]
        share.bytes -= entry.size
        self._bytes -= entry.size
        for key in entry.keys:
            if share.by_key.get(key) == number:
                del share.by_key[key]
                share.ambiguous.discard(key)
        if not share.entries:
            del self._shares[entry.tenant]

    def _expire(self, now: float) -> None:
        # All live equally long, so the oldest expires first.
        while self._order and now >= next(iter(self._order.values())).expires:
            self._remove(next(iter(self._order)))

    def _shrink(self, tenant: str) -> None:
        bounds, share = self._bounds, self._shares[tenant]
        while len(share.entries) > bounds.tenant_entries or share.bytes > bounds.tenant_bytes:
            self._remove(next(iter(share.entries)))
        while len(self._order) > bounds.entries or self._bytes > bounds.bytes:
            self._remove(next(iter(self._order)))
