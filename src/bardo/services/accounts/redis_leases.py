"""The leases of the limits of keys by processes, in Redis or Valkey. Money that was spent is read from the log, as it is everywhere.

Keys begin with `bardo:{limits}:`. `leases:ACCOUNT` has a field `NAME|PERIOD|WORKER` for each row, `estimates:ACCOUNT` what calls of unknown
cost count as by day, `stored:WORKER` how many estimates of which series of a process are in them, `workers` when each process was
seen by the server's clock, and `versions` a number by account that goes up with each change of its rows. A
lease is granted from rows that were read, and stored only while their version is still the same: of two processes that want the last of a
limit, the second reads again. The version also orders rows and log: no cost leaves the rows for the log unseen between reading the two.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from bardo.accounting.limits import COUNTED_SECONDS, WINDOWS, LeasedUsage, LeaseRequest, LimitName, Shortage, is_counted
from bardo.adapters.stores.database.problems import DatabaseUnusable
from bardo.adapters.stores.database.redis import connect_redis, redis_problems
from bardo.services.accounts.leases import (
    KEPT_SECONDS,
    STALE_SECONDS,
    Estimate,
    Lease,
    LeaseGrant,
    OwnRows,
    Spend,
    days_of,
    grant_of,
    is_about_money,
    rows_of,
    usage_of,
)

_PREFIX = "bardo:{limits}:"
_ANSWER_SECONDS = 2.0
_MOST_TRIES = 200
"""How often rows are read again that others changed meanwhile. Each time one of these others got what it wanted."""
_PAST_SECONDS = COUNTED_SECONDS + 60
"""When what was leased of a minute is removed: clocks of machines may differ."""
# Returns -1 and changes nothing where the rows of an account are no longer those that were read; else how many processes live, after
# 0 where this one was not among them.
_STORE = """
local prefix, asked, time = KEYS[1], cjson.decode(ARGV[1]), redis.call('TIME')
local now = asked.now or time[1] + time[2] / 1000000
local since = now - asked.stale
if asked.version and (redis.call('HGET', prefix .. 'versions', asked.account) or '0') ~= asked.version then return {-1} end
local seen = redis.call('ZSCORE', prefix .. 'workers', asked.worker)
redis.call('ZADD', prefix .. 'workers', now, asked.worker)
local changed = {}
for _, row in ipairs(asked.rows) do
  local key = prefix .. 'leases:' .. row[1]
  if (redis.call('HGET', key, row[2]) or '0') ~= row[3] then
    changed[row[1]] = true
    if row[3] == '0' then redis.call('HDEL', key, row[2]) else redis.call('HSET', key, row[2], row[3]) end
    redis.call('EXPIRE', key, asked.kept)
  end
end
local stored = prefix .. 'stored:' .. asked.worker
local before = #asked.estimates > 0 and redis.call('HMGET', stored, 'series', 'count') or {}
for place = before[1] == asked.series and before[2] + 1 or 1, #asked.estimates do
  local one = asked.estimates[place]
  changed[one[1]] = true
  redis.call('HINCRBY', prefix .. 'estimates:' .. one[1], one[2], one[3])
  redis.call('EXPIRE', prefix .. 'estimates:' .. one[1], asked.kept)
end
if #asked.estimates > 0 then
  redis.call('HSET', stored, 'series', asked.series, 'count', #asked.estimates)
  redis.call('EXPIRE', stored, asked.kept)
end
for account in pairs(changed) do redis.call('HINCRBY', prefix .. 'versions', account, 1) end
return {seen and tonumber(seen) > since and 1 or 0, redis.call('ZCOUNT', prefix .. 'workers', '(' .. since, '+inf')}
"""


class _Rows(NamedTuple):
    """The rows of one account: what counts, the fields that count no longer, and estimates by day."""

    version: str
    leases: dict[LimitName, dict[int, int]]
    past: list[str]
    estimates: dict[int, int]


class RedisLeaseStore:
    """The leases of one process at the server at `address`. Raises ConfigError without the package, or for a wrong address.

    `by_server`: processes are seen by the server's clock, so that machines whose clocks differ see the same; else by what a method is told.
    """

    def __init__(
        self, address: str, worker: str, spend: Spend, *, by_server: bool = True, timeout: float = _ANSWER_SECONDS
    ) -> None:
        self._by_server = by_server
        self._server: Any = connect_redis(address, timeout=timeout, what="limits")
        self._problems = redis_problems()
        self._worker = worker
        self._spend = spend
        self._own = OwnRows()
        # The server may have lost the rows of this process, which are not stored anew yet.
        self._lost = False
        # Of which estimates the count is that the server has of this process: those that were given since the last ones were answered for.
        self._series = 0

    def claim(
        self, account: str, rows: Sequence[Lease], wants: Sequence[LeaseRequest], now: float
    ) -> LeaseGrant | Shortage:
        """Store `rows`, and lease the wanted amounts: all, or none if one limit has too little left."""
        with self._asking():
            self._live(rows, (), now)
            for _ in range(_MOST_TRIES):
                read = self._read(account, now)
                outcome = grant_of(wants, self._usage(account, read, now, money=is_about_money(wants)), now)
                if isinstance(outcome, Shortage):
                    return outcome
                granted = rows_of(account, wants, outcome)
                if self._store(granted, (), now, read=(account, read))[0] >= 0:
                    self._own.note(granted)
                    return outcome
        raise DatabaseUnusable("the store of limits in Redis is changed by others more often than it can be read")

    def sync(self, rows: Sequence[Lease], estimates: Sequence[Estimate], now: float) -> int:
        """Store rows and estimates, say that this process lives, and return how many do.

        After an error the estimates are to be given again, before others: those that were stored nevertheless are not added twice.
        """
        with self._asking():
            living = self._live(rows, estimates, now)
        self._series += 1
        return living

    def used(self, account: str, now: float) -> LeasedUsage:
        """Return the usage and the leases of the limits of one key by all processes."""
        with self._asking():
            return self._usage(account, self._read(account, now), now, money=True)

    def clean(self, now: float) -> None:
        """Forget processes that are over. Their rows, and those of past minutes, are removed when something of the account is leased."""
        with self._asking():
            alive = self._time(self._server.time(), now) - STALE_SECONDS
            self._server.zremrangebyscore(_PREFIX + "workers", "-inf", alive)

    def leave(self) -> None:
        """Return all leases of calls at a time and of money: this process ends. What it used of a minute counts on."""
        with self._asking():
            gone = [Lease(account, period, 0) for account, period, _ in self._own.all()]
            self._store(gone, (), 0.0)
            self._server.zrem(_PREFIX + "workers", self._worker)
            self._server.delete(_PREFIX + "stored:" + self._worker)
            self._own.clear()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _live(self, rows: Sequence[Lease], estimates: Sequence[Estimate], now: float) -> int:
        """Say that this process lives, and store rows; all of its own where it was taken for over, or the server has lost its data."""
        asked, self._lost = [*self._own.all(), *rows] if self._lost else rows, True
        is_known, living = self._store(asked, estimates, now)
        self._own.note(rows)
        if not is_known:
            self._store(self._own.all(), (), now)
        self._lost = False
        return living

    def _store(
        self, rows: Sequence[Lease], estimates: Sequence[Estimate], now: float, *, read: tuple[str, _Rows] | None = None
    ) -> list[int]:
        asked: dict[str, Any] = {
            "worker": self._worker,
            **({} if self._by_server else {"now": now}),
            "stale": STALE_SECONDS,
            "kept": KEPT_SECONDS,
            "series": str(self._series),
            # Amounts are texts: numbers of Lua are exact up to 2**53 only, which is nine million dollars.
            "rows": [(account, self._field(*period), str(amount)) for account, period, amount in rows],
            "estimates": [(account, str(day), str(nanos)) for account, day, nanos in estimates],
        }
        if read is not None:
            account, usage = read
            asked |= {"account": account, "version": usage.version}
            asked["rows"] += [(account, field, "0") for field in usage.past]
        return [int(count) for count in self._server.eval(_STORE, 1, _PREFIX, json.dumps(asked))]

    def _time(self, server_time: tuple[int, int], now: float) -> float:
        return server_time[0] + server_time[1] / 1e6 if self._by_server else now

    def _field(self, name: str, period: int) -> str:
        return f"{name}|{period}|{self._worker}"

    def _read(self, account: str, now: float) -> _Rows:
        """Read the rows of an account, all of one moment."""
        with self._server.pipeline(transaction=True) as pipeline:
            pipeline.hget(_PREFIX + "versions", account)
            pipeline.hgetall(_PREFIX + "leases:" + account)
            pipeline.hgetall(_PREFIX + "estimates:" + account)
            pipeline.zrange(_PREFIX + "workers", 0, -1, withscores=True)
            pipeline.time()
            version, fields, estimates, workers, time = pipeline.execute()
        living = {worker for worker, seen in workers if seen > self._time(time, now) - STALE_SECONDS}
        leases: dict[LimitName, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        past = []
        for field, amount in fields.items():
            name, period, worker = field.decode().split("|", 2)
            in_window, second = name in WINDOWS, int(period)
            if not in_window and worker.encode() not in living:
                past.append(field.decode())
            elif is_counted((cast("LimitName", name), second), now):
                leases[cast("LimitName", name)][second] += int(amount)
            elif in_window and second < now - _PAST_SECONDS:
                past.append(field.decode())
        days = {int(day): int(nanos) for day, nanos in estimates.items()}
        return _Rows((version or b"0").decode(), leases, past, days)

    def _usage(self, account: str, read: _Rows, now: float, *, money: bool) -> LeasedUsage:
        if not money:
            return LeasedUsage(read.leases, 0, 0)
        first, today = days_of(account, now)
        days = {day: nanos for day, nanos in read.estimates.items() if first <= day <= today}
        return usage_of(account, read.leases, days, self._spend, now)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except self._problems as problem:
            hint = "check the server, its address and its memory"
            raise DatabaseUnusable(f"the store of limits in Redis cannot be used: {problem}", hint=hint) from problem
