"""Messages that gateways send each other over Redis or Valkey, and leases that one of them holds at a time.

All of it is one round trip. How old a message is follows from the clock of the server alone. Messages are kept for a while, in a stream of
bounded length, for gateways that begin. Keys begin with `bardo:{SPACE}:`: `messages` is the stream, `lease:NAME` who holds a lease.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any
from uuid import uuid4

from bardo.adapters.stores.database.redis import connect_redis, redis_problems
from bardo.services.facts.exchange import LEASE_SECONDS, MOST_MESSAGES, ExchangeResult, Message

_AT_ONCE = 500
_MOST_ROUNDS = MOST_MESSAGES // _AT_ONCE
_TAKE_LEASE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_GIVE_BACK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisExchange:
    """The messages of one gateway at the server at `address`. `past_seconds` is how old the messages may be that it reads first."""

    problems: tuple[type[Exception], ...]

    def __init__(self, address: str, *, space: str, past_seconds: float, timeout: float = 2.0) -> None:
        """Prepare connections; none is opened yet. Raises ConfigError without the package, or for a wrong address."""
        self._server: Any = connect_redis(address, timeout=timeout, what=space)
        self.problems = redis_problems()
        self._prefix = f"bardo:{{{space}}}:"
        self._past_ms = int(past_seconds * 1000)
        self._own = uuid4().hex
        self._after = ""

    def exchange(self, data: bytes, *, hold: Iterable[str] = (), give_back: Iterable[str] = ()) -> ExchangeResult:
        """Send a message, unless it is empty, and return what others sent. `hold` are leases to ask for or to keep."""
        asked, given = list(hold), list(give_back)
        seconds, micros = self._server.time() if not self._after else (0, 0)
        after = self._after or str(max(0, seconds * 1000 + micros // 1000 - self._past_ms))
        with self._server.pipeline(transaction=False) as pipeline:
            for name in given:
                pipeline.eval(_GIVE_BACK, 1, self._lease(name), self._own)
            for name in asked:
                pipeline.eval(_TAKE_LEASE, 1, self._lease(name), self._own, int(LEASE_SECONDS * 1000))
            if data:
                self._add(pipeline, data)
            pipeline.time()
            pipeline.xrange(self._prefix + "messages", min=f"({after}", count=_AT_ONCE)
            answers = pipeline.execute()
        held = [name for name, answer in zip(asked, answers[len(given) :], strict=False) if answer]
        seconds, micros = answers[-2]
        entries = self._read_on(answers[-1])
        self._after = entries[-1][0].decode() if entries else after
        return ExchangeResult(self._of_others(entries, seconds + micros / 1e6), held)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _add(self, pipeline: Any, data: bytes) -> None:
        fields = {"from": self._own, "data": data}
        pipeline.xadd(self._prefix + "messages", fields, maxlen=MOST_MESSAGES, approximate=True)
        # The server forgets what nobody adds to any longer.
        pipeline.pexpire(self._prefix + "messages", self._past_ms + 60_000)

    def _read_on(self, entries: list[Any]) -> list[Any]:
        """Return entries with those that come after them."""
        latest = entries
        for _ in range(_MOST_ROUNDS):
            if len(latest) < _AT_ONCE:
                break
            after = f"({latest[-1][0].decode()}"
            latest = self._server.xrange(self._prefix + "messages", min=after, count=_AT_ONCE)
            entries = [*entries, *latest]
        return entries

    def _of_others(self, entries: Iterable[Any], at: float) -> list[Message]:
        own, found = self._own.encode(), []
        for number, fields in entries:
            data = fields.get(b"data")
            if data is not None and fields.get(b"from") != own:
                sent = int(number.partition(b"-")[0]) / 1000
                found.append(Message(max(0.0, at - sent), data))
        return found

    def _lease(self, name: str) -> str:
        return f"{self._prefix}lease:{blake2b(name.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"
