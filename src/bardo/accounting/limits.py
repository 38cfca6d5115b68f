"""What the calls of one key may take: requests and tokens of a minute, calls at a time, money of a day and of a month (UTC).

Each process that serves calls leases parts of these limits and gives out what it leased, so that all of them together never give out more
than there is. A lease on requests or tokens belongs to the second in which it was taken, and is good for two: what was leased counts for
62 seconds, so that no 60 seconds hold more than the limit. Leases on calls at a time and on money last until they are returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import msgspec

LimitName = Literal["requests_per_minute", "tokens_per_minute", "concurrency", "usd_per_day", "usd_per_month"]
Period = tuple[LimitName, int]
"""A limit and what a lease on it belongs to: a second of Unix time, a day as 20261123, a month as 202611, 0 for calls at a time."""

LEASE_SECONDS = 2
COUNTED_SECONDS = 60 + LEASE_SECONDS
"""For how long what was leased in a second counts."""
_PARTS = 20
"""A lease is this part of a limit, where a call needs no more."""
WINDOWS = ("requests_per_minute", "tokens_per_minute")
"""The limits of a minute."""
MONEY = ("usd_per_day", "usd_per_month")
"""The limits of money."""


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one key may take together. None is no limit; money is nano-dollars."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    usd_per_day: int | None = None
    usd_per_month: int | None = None

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return self != _NO_LIMITS

    def named(self) -> Iterator[tuple[LimitName, int | None]]:
        """Yield each limit with its name."""
        yield "requests_per_minute", self.requests_per_minute
        yield "tokens_per_minute", self.tokens_per_minute
        yield "concurrency", self.concurrency
        yield "usd_per_day", self.usd_per_day
        yield "usd_per_month", self.usd_per_month


_NO_LIMITS = KeyLimits()


class Demand(NamedTuple):
    """What one call takes, as far as it is known before it is sent. `nanos` is None for a call that can cost nothing."""

    requests: int = 1
    tokens: int = 0
    nanos: int | None = None
    slots: int = 1
    """0 for a call that is made while another one of the same request waits for it."""


class LeaseRequest(NamedTuple):
    """What a process needs of one limit, and how much of it it has used already in this period."""

    name: LimitName
    period: int
    limit: int
    used: int
    need: int

    @property
    def most(self) -> int:
        """How much is leased where there is enough."""
        return max(self.need, self.limit // _PARTS)


class Shortage(NamedTuple):
    """A limit that has too little left, and after how many seconds it may have enough."""

    name: LimitName
    limit: int
    left: int
    seconds: float


class LeasedUsage(NamedTuple):
    """What of the limits of a key is leased by all processes, and what of its budgets is spent."""

    leases: Mapping[LimitName, Mapping[int, int]]
    spent_today: int
    spent_this_month: int

    def total(self, name: LimitName, now: float) -> int:
        """Return how much of a limit is used or leased now."""
        taken = sum(amount for number, amount in self.leases.get(name, {}).items() if is_counted((name, number), now))
        if name == "usd_per_day":
            return taken + self.spent_today
        return taken + self.spent_this_month if name == "usd_per_month" else taken


def leased(want: LeaseRequest, total: int) -> int | None:
    """Return how much of a limit is leased where all processes hold or used `total` of it; None where too little is left."""
    free = want.limit - total
    return None if want.need > free else min(free, want.most)


def seconds_until(want: LeaseRequest, taken: Mapping[int, int], now: float) -> float:
    """Return after how many seconds a limit may have enough. `taken` is what was leased of it, by periods."""
    if want.name not in WINDOWS:
        if want.name == "concurrency":
            return 1.0
        return (next_day(now) if want.name == "usd_per_day" else next_month(now)) - now
    total = sum(taken.values())
    for second in sorted(taken):
        total -= taken[second]
        if total + want.need <= want.limit:
            return max(0.1, second + COUNTED_SECONDS - now)
    return float(COUNTED_SECONDS)


def is_counted(period: Period, now: float) -> bool:
    """Whether a lease of this period counts at `now`."""
    name, number = period
    return number > int(now) - COUNTED_SECONDS if name in WINDOWS else number == period_of(name, now)


def is_over(period: Period, now: float) -> bool:
    """Whether nothing of this period counts any more."""
    return period[0] != "concurrency" and not is_counted(period, now)


def period_of(name: LimitName, now: float) -> int:
    """Return the period of a limit that holds `now`."""
    if name in WINDOWS:
        return int(now)
    return {"concurrency": 0, "usd_per_day": day_number(now), "usd_per_month": day_number(now) // 100}[name]


def day_number(now: float) -> int:
    """Return the day of `now` in UTC as a number: 20261123."""
    day = datetime.fromtimestamp(now, UTC)
    return day.year * 10_000 + day.month * 100 + day.day


def next_day(now: float) -> float:
    """Return when the next day begins in UTC."""
    return (now // 86_400 + 1) * 86_400


def next_month(now: float) -> float:
    """Return when the next month begins in UTC."""
    first = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1).timestamp()
