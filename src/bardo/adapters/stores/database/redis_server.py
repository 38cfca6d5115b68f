"""Connect to a server of Redis 6.2, Valkey 7, or later. Needs the extra `bardo[redis]`, and loads it: import it where a store is opened."""

from __future__ import annotations

from typing import Any

from bardo.values.errors import ConfigError
from bardo.values.extras import how_to_install


def redis_problems() -> tuple[type[Exception], ...]:
    """Return what a server that cannot be used raises."""
    import redis

    return (redis.RedisError, OSError)


def connect_redis(address: str, *, timeout: float, what: str, asynchronous: bool = False) -> Any:
    """Return a client, which opens no connection yet. One call of the server may take `timeout` seconds.

    `what` is what is kept there, in errors. Raises ConfigError without the package, or for a wrong address.
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
