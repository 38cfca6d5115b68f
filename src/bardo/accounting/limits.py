"""The limits of a key (requests and tokens of a minute, calls at a time, money of a day and a month in UTC), and leases of them.

Each process that serves calls leases parts of these limits and gives out what it leased, so that all of them together never give out more
than there is. A lease on requests or tokens belongs to the second in which it was taken, and is good for two: it counts for 62 seconds, so
that no 60 seconds hold more than the limit. Leases on calls at a time and on money last until they are returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import msgspec

LimitName = Literal[
    "requests_per_minute", "tokens_per_minute", "concurrency", "usd_per_day", "usd_per_month", "usd_per_session"
]
Period = tuple[LimitName, int]
"""A limit and what a lease on it belongs to: a second of Unix time, a day as 20261123, a month as 202611; 0 for calls at a time and for the
money of a session."""

LEASE_SECONDS = 2
COUNTED_SECONDS = 60 + LEASE_SECONDS
"""For how long what was leased in a second counts."""
_PARTS = 20
"""A lease is this part of a limit, where a call needs no more."""
WINDOWS = ("requests_per_minute", "tokens_per_minute")
"""The limits of a minute."""
MONEY = ("usd_per_day", "usd_per_month", "usd_per_session")
"""The limits of money."""
_WITHOUT_PERIOD = ("concurrency", "usd_per_session")


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of the calls of one key together, and of those of each of its sessions. None is no limit; money is nano-dollars."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    usd_per_day: int | None = None
    usd_per_month: int | None = None
    usd_per_session: int | None = None

    def of_session(self) -> KeyLimits:
        """Return what the calls of one session may take."""
        return KeyLimits(usd_per_session=self.usd_per_session)

    def of_key(self) -> KeyLimits:
        """Return what the calls of all sessions may take together."""
        return self if self.usd_per_session is None else msgspec.structs.replace(self, usd_per_session=None)

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
        yield "usd_per_session", self.usd_per_session


class SessionAccount(NamedTuple):
    """The session of a key, whose money is counted beside that of the key.

    Calls that name no session are one session a day: `name` is empty then, and `day` that day, as 20261123.
    """

    key_id: str
    name: str = ""
    day: int = 0

    @property
    def id(self) -> str:
        """Its name in the store of leases. No name of a session holds the separator: it is not printable."""
        return _SEPARATOR.join((self.key_id, str(self.day), self.name))


_SEPARATOR = "\x1f"


def session_account(key_id: str, name: str, now: float) -> SessionAccount:
    """Return the session of a key that a call at `now` belongs to."""
    return SessionAccount(key_id, name, 0 if name else day_number(now))


def session_of_id(account: str) -> SessionAccount | None:
    """Return the session that an account stands for; None for that of a key itself."""
    parts = account.rsplit(_SEPARATOR, 2)
    return SessionAccount(parts[0], parts[2], int(parts[1])) if len(parts) == 3 else None


_NO_LIMITS = KeyLimits()


class Demand(NamedTuple):
    """The known demand of one call before it is sent. `nanos` is None for a call that can cost nothing."""

    requests: int = 1
    tokens: int = 0
    nanos: int | None = None
    slots: int = 1
    """0 for a call that is made while another one of the same request waits for it."""


class LeaseRequest(NamedTuple):
    """A process's need of one limit, and its usage of it in this period."""

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
    """The leases of a key's limits by all processes, and the spent part of its budgets."""

    leases: Mapping[LimitName, Mapping[int, int]]
    spent_today: int
    spent_this_month: int
    spent_in_session: int = 0

    def total(self, name: LimitName, now: float) -> int:
        """Return how much of a limit is used or leased now."""
        taken = sum(amount for number, amount in self.leases.get(name, {}).items() if is_counted((name, number), now))
        if name == "usd_per_day":
            return taken + self.spent_today
        if name == "usd_per_session":
            return taken + self.spent_in_session
        return taken + self.spent_this_month if name == "usd_per_month" else taken


def leased(want: LeaseRequest, total: int) -> int | None:
    """Return how much of a limit is leased where all processes hold or used `total` of it, or None if too little is left."""
    free = want.limit - total
    return None if want.need > free else min(free, want.most)


def seconds_until(want: LeaseRequest, taken: Mapping[int, int], now: float) -> float:
    """Return after how many seconds a limit may have enough. `taken` is what was leased of it, by periods."""
    if want.name not in WINDOWS:
        if want.name == "concurrency":
            return 1.0
        return seconds_of_budget(want.name, now)
    total = sum(taken.values())
    for second in sorted(taken):
        total -= taken[second]
        if total + want.need <= want.limit:
            return max(0.1, second + COUNTED_SECONDS - now)
    return float(COUNTED_SECONDS)


def seconds_of_budget(name: LimitName, now: float) -> float:
    """Return after how many seconds a budget begins anew; that of a session goes with its day, where it has no name."""
    return (next_month(now) if name == "usd_per_month" else next_day(now)) - now


def is_counted(period: Period, now: float) -> bool:
    """Whether a lease of this period counts at `now`."""
    name, number = period
    return number > int(now) - COUNTED_SECONDS if name in WINDOWS else number == period_of(name, now)


def is_over(period: Period, now: float) -> bool:
    """Whether nothing of this period counts any more."""
    return period[0] not in _WITHOUT_PERIOD and not is_counted(period, now)


def period_of(name: LimitName, now: float) -> int:
    """Return the period of a limit that holds `now`."""
    if name in WINDOWS:
        return int(now)
    if name in _WITHOUT_PERIOD:
        return 0
    return day_number(now) if name == "usd_per_day" else day_number(now) // 100


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


UNKNOWN = -1
"""The content of the shared state is unknown: it is written anew."""


class Gauge:
    """How much of one limit a process has leased for one period, and how much of that it has used."""

    __slots__ = ("held", "stored", "used")

    def __init__(self) -> None:
        self.held = 0
        self.used = 0
        self.stored = 0
        """What the shared state holds for it."""


class Reservation:
    """The amounts that one call has taken. `settle` of its allowance puts the truth in its place."""

    __slots__ = ("day_number", "money", "nanos", "slots", "tokens", "tokens_gauge")

    def __init__(self) -> None:
        self.tokens_gauge: Gauge | None = None
        self.slots: Gauge | None = None
        self.money: tuple[Gauge, ...] = ()
        self.day_number = 0
        self.tokens = 0
        self.nanos = 0


class Allowance:
    """The amounts of a key's limits that one process may give out until it leases more. `now` is Unix time throughout."""

    def __init__(self, limits: KeyLimits) -> None:
        self.limits = limits
        self.gauges: dict[Period, Gauge] = {}
        self.left: dict[LimitName, int] = {}
        """What of each limit was left when this process last leased, its own leases aside."""
        self._until = 0.0
        self._day = 0
        self._current: tuple[Gauge | None, ...] = (None,) * 6

    def change(self, limits: KeyLimits) -> None:
        """Hold to other limits from now on."""
        self.limits = limits
        self._until = 0.0

    def take(self, demand: Demand, now: float) -> Reservation | None:
        """Take what one call needs, or None if the leases have too little of it."""
        if now >= self._until:
            return None
        requests, tokens, slots, *budgets = self._current
        money = tuple([budget for budget in budgets if budget is not None])
        nanos = demand.nanos or 0
        if (
            (requests is not None and requests.used + demand.requests > requests.held)
            or (tokens is not None and tokens.used + demand.tokens > tokens.held)
            or (slots is not None and slots.used + demand.slots > slots.held)
            or any(money_limit.used + nanos > money_limit.held for money_limit in money)
        ):
            return None
        taken = Reservation()
        if requests is not None:
            requests.used += demand.requests
        if tokens is not None:
            tokens.used += demand.tokens
            taken.tokens_gauge, taken.tokens = tokens, demand.tokens
        if slots is not None and demand.slots:
            slots.used += demand.slots
            taken.slots = slots
        if money:
            taken.money, taken.nanos, taken.day_number = money, nanos, self._day
            for gauge in money:
                gauge.used += nanos
        return taken

    def grow(self, taken: Reservation, *, tokens: int, nanos: int, now: float) -> bool:
        """Take more for a call that has used more than was taken for it, whether or not there is more, and return whether it has."""
        extra, surplus = nanos - taken.nanos, tokens - taken.tokens
        if extra > 0:
            for money in taken.money:
                money.used += extra
            taken.nanos = nanos
        if surplus > 0 and taken.tokens_gauge is not None:
            self._gauge("tokens_per_minute", int(now)).used += surplus
            taken.tokens = tokens
        return extra > 0

    def settle(self, taken: Reservation, *, tokens: int | None, nanos: int | None, now: float) -> int:
        """Put the truth in the place of what was taken, and return the money that is now spent. None: unknown, the estimate holds.

        Spent money stays used until `forget` is told that it is counted elsewhere.
        """
        if taken.slots is not None:
            taken.slots.used -= 1
        if taken.tokens_gauge is not None and tokens is not None:
            surplus = tokens - taken.tokens
            gauge = taken.tokens_gauge if surplus <= 0 else self._gauge("tokens_per_minute", int(now))
            gauge.used += surplus
        spent = taken.nanos if nanos is None else nanos
        for money in taken.money:
            money.used += spent - taken.nanos
        return spent

    def forget(self, taken: Reservation, spent: int) -> None:
        """Count money no longer that a call spent: it is counted elsewhere from now on."""
        for money in taken.money:
            money.used -= spent
            money.held -= spent

    def renew(self, demand: Demand, now: float) -> list[LeaseRequest]:
        """Give all unused leases back, and return those to ask for so that `demand` can be taken."""
        self.shrink(now)
        current: list[Gauge | None] = []
        wants: list[LeaseRequest] = []
        self._day = day_number(now)
        for name, limit in self.limits.named():
            if limit is None:
                current.append(None)
                continue
            period = period_of(name, now)
            gauge = self._gauge(name, period)
            current.append(gauge)
            need = _need(name, demand)
            if need is not None:
                wants.append(LeaseRequest(name, period, limit, gauge.used, need))
        self._current = tuple(current)
        self._until = 0.0
        return wants

    def lease(self, granted: Mapping[Period, int], left: Mapping[LimitName, int], now: float) -> None:
        """Take in what was leased besides what was used when `renew` was asked, and the rest of each limit.

        Since then running calls may have used more or less: `renew` let the leases be as large as what was used, and nothing was given out.
        """
        self.left = dict(left)
        for period, amount in granted.items():
            self._gauge(*period).held += amount
        windows = [limit for name, limit in self.limits.named() if name in WINDOWS and limit is not None]
        self._until = min(next_day(now), int(now) + LEASE_SECONDS if windows else next_day(now))

    def remaining(self) -> dict[LimitName, int]:
        """Return about how much of each limit is left for all processes, of those of which something was leased."""
        return {
            name: max(0, self.left[name] + gauge.held - gauge.used)
            for (name, _), gauge in zip(self.limits.named(), self._current, strict=True)
            if gauge is not None and name in self.left
        }

    def spare_nanos(self) -> int | None:
        """Return about how much money is left for all processes, below 0 where too much was used, or None if that is not limited."""
        spare = None
        for (name, limit), gauge in zip(self.limits.named(), self._current, strict=True):
            if name in MONEY and limit is not None and gauge is not None and name in self.left:
                left = self.left[name] + gauge.held - gauge.used
                spare = left if spare is None else min(spare, left)
        return spare

    def used_nanos(self) -> dict[LimitName, tuple[int, int]]:
        """Return how much money of each limit is held and used now."""
        return {
            name: (gauge.held, gauge.used)
            for (name, _), gauge in zip(self.limits.named(), self._current, strict=True)
            if name in MONEY and gauge is not None
        }

    def correct(self, left: Mapping[LimitName, int], before: Mapping[LimitName, tuple[int, int]]) -> None:
        """Take in how much of each limit is left for all processes, when this one held and used what `before` says."""
        for name, (held, used) in before.items():
            if name in left:
                self.left[name] = left[name] + used - held

    def shrink(self, now: float) -> None:
        """Hold no more than is used, and forget periods that are over."""
        for period, gauge in list(self.gauges.items()):
            if period[0] in MONEY and period[0] in self.left and gauge in self._current:
                self.left[period[0]] += gauge.held - gauge.used
            gauge.held = gauge.used
            if is_over(period, now) and (period[0] in WINDOWS or (gauge.used <= 0 and gauge.stored == 0)):
                del self.gauges[period]

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is used, and the shared state holds nothing for it."""
        return not any(gauge.used or gauge.held or gauge.stored for gauge in self.gauges.values())

    def _gauge(self, name: LimitName, period: int) -> Gauge:
        gauge = self.gauges.get((name, period))
        if gauge is None:
            gauge = self.gauges[(name, period)] = Gauge()
        return gauge


def _need(name: LimitName, demand: Demand) -> int | None:
    """Return what a call needs of a limit, or None if it needs nothing of it and is not to be stopped by it."""
    if name == "requests_per_minute":
        return demand.requests
    if name == "tokens_per_minute":
        return demand.tokens
    return (demand.slots or None) if name == "concurrency" else demand.nanos
