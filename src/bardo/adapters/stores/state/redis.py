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

from bardo.adapters.stores.database.redis import BOUNDED, connect_redis, redis_problems
from bardo.adapters.stores.state.store import Bounds, size_of

_DROP = (
    BOUNDED
    + """
drop = function(number)
  local found = redis.call('HGET', prefix .. 'info', number)
  if not found then return 0 end
  local info = cmsgpack.unpack(found)
  local tenant, size, names = info[1], info[2], info[4]
  forget(number, tenant, size)
  for _, name in ipairs(names) do
    local leads = redis.call('HGET', prefix .. 'keys:' .. tenant, name)
    if leads == number or leads == number .. '!' then redis.call('HDEL', prefix .. 'keys:' .. tenant, name) end
  end
  return 1
end
"""
)

PUT = (
    _DROP
    + """
local tenant, value, size, now, expires, milliseconds, reply = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local names = {}
for place = 15, #ARGV do names[#names + 1] = ARGV[place] end
local keys = prefix .. 'keys:' .. tenant

-- A value that takes the place of another one is kept where that one is still there.
if ARGV[13] == '1' then
  local leads = redis.call('HGET', keys, names[1])
  if not leads or redis.call('HGET', prefix .. 'entry:' .. leads, 'value') ~= ARGV[14] then return 0 end
end
drop_expired(now)

-- A key whose latest entry is of another reply, and says something else, is ambiguous from then on.
local number = tostring(redis.call('INCR', prefix .. 'number'))
local replaced, judged = {}, {}
for _, name in ipairs(names) do
  local leads = redis.call('HGET', keys, name)
  local mark = ''
  if leads then
    local before = string.gsub(leads, '!', '')
    if judged[before] == nil then
      local found = redis.call('HGET', prefix .. 'info', before)
      local same = found and reply ~= '' and cmsgpack.unpack(found)[3] == reply
      if same then replaced[before] = true end
      judged[before] = same or redis.call('HGET', prefix .. 'entry:' .. before, 'value') == value
    end
    if before ~= leads or not judged[before] then mark = '!' end
  end
  redis.call('HSET', keys, name, number .. mark)
end

redis.call('HSET', prefix .. 'entry:' .. number, 'value', value, 'expires', expires)
redis.call('HSET', prefix .. 'info', number, cmsgpack.pack({tenant, size, reply, names}))
count(number, tenant, size, number, expires)

-- An earlier value of the same reply goes where no key leads to it any longer.
for before, _ in pairs(replaced) do
  local led = false
  for _, name in ipairs(cmsgpack.unpack(redis.call('HGET', prefix .. 'info', before))[4]) do
    local leads = redis.call('HGET', keys, name)
    led = led or leads == before or leads == before .. '!'
  end
  if not led then drop(before) end
end

shrink(tenant, tonumber(ARGV[9]), tonumber(ARGV[10]))
shrink('*', tonumber(ARGV[11]), tonumber(ARGV[12]))

-- The server forgets what nobody adds to any longer. What leads to an entry outlives it.
redis.call('PEXPIRE', prefix .. 'entry:' .. number, milliseconds)
for _, name in ipairs({'info', 'order', 'ends', 'entries', 'bytes', 'keys:' .. tenant, 'order:' .. tenant}) do
  redis.call('PEXPIRE', prefix .. name, milliseconds + 60000)
end
return 1
"""
)
"""Keep a value under its keys."""

REMOVE = (
    _DROP
    + """
local leads = redis.call('HGET', prefix .. 'keys:' .. ARGV[2], ARGV[3])
if not leads then return 0 end
return drop((string.gsub(leads, '!', '')))
"""
)
"""Forget the value that a key leads to. Returns whether there was one."""

FIND = """
local prefix, keys = ARGV[1], ARGV[1] .. 'keys:' .. ARGV[2]
local places, values, seen = {}, {}, {}
for place = 3, #ARGV do
  local leads = redis.call('HGET', keys, ARGV[place])
  if leads and not seen[leads] then
    local found = redis.call('HMGET', prefix .. 'entry:' .. leads, 'value', 'expires')
    if found[1] then values[#values + 1] = found end
    seen[leads] = found[1] and #values or 0
  end
  places[#places + 1] = leads and seen[leads] or 0
end
return {places, values}
"""
"""Find values, each once. Returns for each key the place of its value, from 1 on, or 0, and the values with when they expire."""


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
        by_key: dict[str, bytes] = {}
        for key, place in zip(keys, places, strict=True):
            value, expires = values[place - 1] if place else (None, b"0")
            if value is not None and now < float(expires):
                by_key[key] = bytes(value)
        return by_key

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
