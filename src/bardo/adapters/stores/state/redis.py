"""A store of state in Redis or Valkey, which several machines share. Needs the extra `bardo[redis]`.

All keys begin with `bardo:{SPACE}:`, so that in a cluster they lie on one node and one script may change several of them:

- `entry:NUMBER` is a hash with a value and when it expires. The server removes it then.
- `info` is a hash by number: whose entry it is, how large, of which reply, and the keys it was put in under. It outlives the entry.
- `keys:TENANT` is a hash of numbers by key; one that ends with `!` is ambiguous.
- `order` and `order:TENANT` are sorted sets of numbers, `ends` one by the time they expire.
- `entries` and `bytes` are hashes of sums by tenant, with `*` for all. A tenant has `=` before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bardo.adapters.stores.database.redis_server import connect_redis, redis_problems
from bardo.adapters.stores.state.redis_scripts import FIND, PUT, REMOVE
from bardo.adapters.stores.state.store import Bounds, size_of


class RedisStore:
    """Values in the server at `address`. `timeout` is how many seconds one call of it may take, `space` what its keys begin with."""

    waits = True
    problems: tuple[type[Exception], ...]

    def __init__(
        self, address: str, bounds: Bounds | None = None, *, space: str = "replay", timeout: float = 5.0
    ) -> None:
        """Prepare connections; none is opened yet. Raises ConfigError without the package, or for a wrong address."""
        self._bounds = bounds or Bounds()
        self._prefix = f"bardo:{{{space}}}:"
        self._server: Any = connect_redis(address, timeout=timeout, what=space)
        self.problems = redis_problems()
        self._put = self._server.register_script(PUT)
        self._find = self._server.register_script(FIND)
        self._remove = self._server.register_script(REMOVE)

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
        size, bounds = size_of(keys, value), self._bounds
        if not keys or size > min(bounds.tenant_bytes, bounds.bytes):
            return False
        values: list[Any] = [
            self._prefix,
            _tenant_key(tenant),
            value,
            size,
            repr(now),
            repr(now + bounds.seconds),
            max(1, math.ceil(bounds.seconds * 1000)),
            _bytes(reply),
            *(bounds.tenant_entries, bounds.tenant_bytes, bounds.entries, bounds.bytes),
            int(before is not None),
            before or b"",
            *sorted({_bytes(key) for key in keys}),
        ]
        return bool(self._put(args=values))

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        """Return what these keys lead to."""
        if not keys:
            return {}
        # One script: between two questions another machine may put a later value in the place of the one that a key led to.
        places, values = self._find(args=[self._prefix, _tenant_key(tenant), *(_bytes(key) for key in keys)])
        found: dict[str, bytes] = {}
        for key, place in zip(keys, places, strict=True):
            value, expires = values[place - 1] if place else (None, b"0")
            if value is not None and now < float(expires):
                found[key] = bytes(value)
        return found

    def remove(self, tenant: str, key: str) -> bool:
        """Forget the value that a key leads to."""
        return bool(self._remove(args=[self._prefix, _tenant_key(tenant), _bytes(key)]))

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return the number of values and their bytes."""
        share = b"*" if tenant is None else _tenant_key(tenant)
        with self._server.pipeline(transaction=False) as asked:
            asked.hget(f"{self._prefix}entries", share)
            asked.hget(f"{self._prefix}bytes", share)
            entries, size = asked.execute()
        return int(entries or 0), int(size or 0)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()


def _tenant_key(tenant: str) -> bytes:
    return b"=" + _bytes(tenant)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
