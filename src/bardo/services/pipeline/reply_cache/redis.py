"""A store of replies in Redis or Valkey, for several machines. Needs the extra `bardo[redis]`.

All keys begin with `bardo:{cache}:`, so that in a cluster they lie on one node and one script may change several of them:

- `entry:ID` is a hash with the value and what the entry is found and removed by. The server removes it when it expires.
- `info` is a hash by id: whose entry it is, how large, and its labels. It outlives the entry, until the next one is kept.
- `order` and `order:=TENANT` are sorted sets of ids by number, `marked` that of ids with an index, `ends` one by the time they expire.
- `entries` and `bytes` are hashes of sums by `=TENANT`, with `*` for all.
- `label:NAME` is a set of ids: `m` and a name of a model, or `t` and a tag.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.adapters.stores.database.redis import BOUNDED, connect_redis, redis_problems
from bardo.context.cache.entries import CacheBounds, CacheEntry, IndexedEntry, Selection, names_of

_DROP = (
    BOUNDED
    + """
drop = function(id)
  local found = redis.call('HMGET', prefix .. 'info', id)[1]
  if not found then return 0 end
  local info = cmsgpack.unpack(found)
  local share, size, labels = info[1], info[2], info[3]
  forget(id, share, size)
  redis.call('ZREM', prefix .. 'marked', id)
  for _, label in ipairs(labels) do redis.call('SREM', prefix .. 'label:' .. label, id) end
  return 1
end
"""
)

PUT = (
    _DROP
    + """
local id, tenant, identity, value, size = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local expires, milliseconds, marks, labels = ARGV[7], ARGV[8], ARGV[9], cmsgpack.unpack(ARGV[10])
local fits, now = ARGV[11] == '1', ARGV[12]
local share = '=' .. tenant

drop(id)
drop_expired(now)
if not fits then return 0 end

local number = redis.call('INCR', prefix .. 'number')
local entry = prefix .. 'entry:' .. id
redis.call('HSET', entry, 'value', value, 'tenant', tenant, 'identity', identity, 'expires', expires, 'marks', marks)
redis.call('PEXPIRE', entry, milliseconds)
redis.call('HSET', prefix .. 'info', id, cmsgpack.pack({share, size, labels}))
count(id, share, size, number, expires)
if marks ~= '' then redis.call('ZADD', prefix .. 'marked', number, id) end
for _, label in ipairs(labels) do redis.call('SADD', prefix .. 'label:' .. label, id) end

shrink(share, tonumber(ARGV[13]), tonumber(ARGV[14]))
shrink('*', tonumber(ARGV[15]), tonumber(ARGV[16]))
return 1
"""
)
"""Keep an entry, or forget the earlier one where the new one does not fit. Returns whether it is kept."""

PURGE = (
    _DROP
    + """
local share, most, passed = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids
if #ARGV > 4 then
  local sets = {}
  for place = 5, #ARGV do sets[#sets + 1] = prefix .. 'label:' .. ARGV[place] end
  ids = redis.call('SINTER', unpack(sets))
elseif share ~= '' then
  ids = redis.call('ZRANGE', prefix .. 'order:' .. share, passed, passed + most - 1)
else
  ids = redis.call('ZRANGE', prefix .. 'order', passed, passed + most - 1)
end
local gone = 0
for _, id in ipairs(ids) do
  if gone >= most then break end
  local found = redis.call('HGET', prefix .. 'info', id)
  if found and (share == '' or cmsgpack.unpack(found)[1] == share) then gone = gone + drop(id) end
end
return {#ids, gone}
"""
)
"""Remove some of the entries that are selected. Returns how many were looked at, and how many are gone."""


PREFIX = "bardo:{cache}:"
_FIELDS = ("tenant", "identity", "marks", "expires")
_AT_ONCE = 200


class RedisReplies:
    """Entries in a server of Redis 6.2, Valkey 7, or later. `timeout` is how many seconds one call of the server may take."""

    waits = True
    problems: tuple[type[Exception], ...]

    def __init__(self, address: str, bounds: CacheBounds | None = None, *, timeout: float = 5.0) -> None:
        """Prepare connections; none is opened yet. Raises ConfigError without the package, or for a wrong address."""
        self._bounds = bounds or CacheBounds()
        self._server: Any = connect_redis(address, timeout=timeout, what="kept replies")
        self.problems = redis_problems()
        self._put = self._server.register_script(PUT)
        self._purge = self._server.register_script(PURGE)

    def find(self, tenant: str, identity: bytes, *, now: float) -> bytes | None:
        """Return the value of an entry that has not expired."""
        value, whose, expires = self._server.hmget(f"{PREFIX}entry:{identity.hex()}", "value", "tenant", "expires")
        if value is None or whose != _bytes(tenant) or now >= float(expires):
            return None
        return bytes(value)

    def put(self, entry: CacheEntry, *, now: float) -> bool:
        """Keep an entry in the place of an earlier one, and return whether it is kept."""
        bounds = self._bounds
        fits = entry.size <= min(bounds.tenant_bytes, bounds.bytes) and now < entry.expires
        labels = [f"m{name}" for name in names_of(entry)] + [f"t{tag}" for tag in entry.tags]
        values: list[Any] = [
            PREFIX,
            entry.identity.hex(),
            _bytes(entry.tenant),
            entry.identity,
            entry.value,
            entry.size,
            repr(entry.expires),
            math.ceil((entry.expires - now) * 1000) if fits else 0,
            entry.index,
            msgspec.msgpack.encode([_bytes(label).decode() for label in labels]),
            int(fits),
            repr(now),
            *(bounds.tenant_entries, bounds.tenant_bytes, bounds.entries, bounds.bytes),
        ]
        return bool(self._put(args=values))

    def indexed(self, after: int, most: int, *, now: float) -> Sequence[IndexedEntry]:
        """Return entries that have an index, a number over `after`, and have not expired, in the order of their numbers."""
        entries: list[IndexedEntry] = []
        while len(entries) < most:
            pairs = self._server.zrange(
                f"{PREFIX}marked", f"({after}", "+inf", byscore=True, offset=0, num=most, withscores=True
            )
            if not pairs:
                break
            with self._server.pipeline(transaction=False) as asked:
                for name, _ in pairs:
                    asked.hmget(f"{PREFIX}entry:{name.decode()}", *_FIELDS)
                rows = asked.execute()
            for (_, number), (tenant, identity, marks, expires) in zip(pairs, rows, strict=True):
                after = int(number)
                if marks and now < float(expires) and len(entries) < most:
                    entries.append(
                        IndexedEntry(
                            number=after, tenant=tenant.decode(), identity=identity, index=marks, expires=float(expires)
                        )
                    )
        return entries

    def purge(self, selection: Selection) -> int:
        """Remove entries, and return how many there were."""
        labels = [_bytes(f"m{selection.model}")] if selection.model is not None else []
        labels += [_bytes(f"t{selection.tag}")] if selection.tag is not None else []
        tenant = b"" if selection.tenant is None else b"=" + _bytes(selection.tenant)
        removed = passed = 0
        while True:
            examined, deleted = map(int, self._purge(args=[PREFIX, tenant, _AT_ONCE, passed, *labels]))
            removed, passed = removed + deleted, passed + examined - deleted
            if (deleted if labels else examined) < _AT_ONCE:
                return removed

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return how many entries and bytes are kept, of one tenant or of all."""
        share = b"*" if tenant is None else b"=" + _bytes(tenant)
        entries, size = self._server.hget(f"{PREFIX}entries", share), self._server.hget(f"{PREFIX}bytes", share)
        return int(entries or 0), int(size or 0)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "replace")
