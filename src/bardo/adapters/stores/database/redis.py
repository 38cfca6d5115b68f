"""Connections to Redis 6.2, Valkey 7 or later, and what the scripts of all bounded stores have in common. Needs the extra `bardo[redis]`.

Each script runs to its end before anything else does. A store keeps `entry:ID` and `info` by id, `order` and `order:SHARE` as sorted sets
of ids by number, `ends` by the time they expire, and sums in `entries` and `bytes` by share, with `*` for all. A script that begins with
`BOUNDED` defines `drop(id)`, which forgets an entry and all that leads to it, and returns 1 where there was one.
"""

from __future__ import annotations

from typing import Any

from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install


def redis_problems() -> tuple[type[Exception], ...]:
    """Return what a server that cannot be used raises."""
    import redis

    return (redis.RedisError, OSError)


def connect_redis(address: str, *, timeout: float, what: str, asynchronous: bool = False) -> Any:
    """Return a client, which opens no connection yet. One call of the server may take `timeout` seconds.

    `what` names the stored data, in errors. Raises ConfigError without the package, or for a wrong address.
    """
    try:
        import redis
        import redis.asyncio
    except ImportError as problem:
        hint = how_to_install("redis")
        raise ConfigError(f"a store of {what} in Redis or Valkey needs the package redis", hint=hint) from problem
    plain = address.replace("valkeys://", "rediss://", 1).replace("valkey://", "redis://", 1)
    made: Any = redis.asyncio.Redis if asynchronous else redis.Redis
    try:
        return made.from_url(plain, socket_timeout=timeout, socket_connect_timeout=timeout)
    except ValueError as problem:
        hint = "write redis://host:6379/0; a password in it belongs into a variable, which is named beside it"
        raise ConfigError(f"the address of the store of {what} cannot be read", hint=hint) from problem


BOUNDED = """
local prefix = ARGV[1]
local drop

-- Count an entry of a share, which expires.
local function count(id, share, size, number, expires)
  redis.call('ZADD', prefix .. 'order', number, id)
  redis.call('ZADD', prefix .. 'order:' .. share, number, id)
  redis.call('ZADD', prefix .. 'ends', expires, id)
  for _, one in ipairs({share, '*'}) do
    redis.call('HINCRBY', prefix .. 'entries', one, 1)
    redis.call('HINCRBY', prefix .. 'bytes', one, size)
  end
end

-- Forget an entry of a share, and count it no more.
local function forget(id, share, size)
  redis.call('DEL', prefix .. 'entry:' .. id)
  redis.call('HDEL', prefix .. 'info', id)
  for _, name in ipairs({'order', 'order:' .. share, 'ends'}) do redis.call('ZREM', prefix .. name, id) end
  for _, one in ipairs({share, '*'}) do
    if redis.call('HINCRBY', prefix .. 'entries', one, -1) <= 0 then
      redis.call('HDEL', prefix .. 'entries', one)
      redis.call('HDEL', prefix .. 'bytes', one)
    else
      redis.call('HINCRBY', prefix .. 'bytes', one, -size)
    end
  end
end

-- Forget some of the entries that have expired.
local function drop_expired(now)
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'ends', '-inf', now, 'LIMIT', 0, 50)) do drop(old) end
end

-- Remove the oldest of a share, or of all ('*'), until no more are held than allowed.
local function shrink(share, entries, bytes)
  local order = share == '*' and 'order' or 'order:' .. share
  while tonumber(redis.call('HGET', prefix .. 'entries', share) or 0) > entries
      or tonumber(redis.call('HGET', prefix .. 'bytes', share) or 0) > bytes do
    local oldest = redis.call('ZRANGE', prefix .. order, 0, 0)[1]
    if not oldest or drop(oldest) == 0 then return end
  end
end
"""
