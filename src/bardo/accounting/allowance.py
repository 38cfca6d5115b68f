"""What one process may give out of a key's limits: its leases, and what the calls at hand have taken of them."""

from __future__ import annotations

from collections.abc import Mapping

from bardo.accounting.limits import (
    LEASE_SECONDS,
    MONEY,
    WINDOWS,
    Demand,
    KeyLimits,
    LeaseRequest,
    LimitName,
    Period,
    day_number,
    is_over,
    next_day,
    period_of,
)

UNKNOWN = -1
"""Nobody knows what the shared state holds: it is written anew."""


class Gauge:
    """How much of one limit a process has leased for one period, and how much of that it has used."""

    __slots__ = ("held", "stored", "used")

    def __init__(self) -> None:
        self.held = 0
        self.used = 0
        self.stored = 0
        """What the shared state holds for it."""


class Reservation:
    """What one call has taken. `settle` of its allowance puts the truth in its place."""

    __slots__ = ("day", "day_number", "month", "nanos", "slots", "tokens", "tokens_gauge")

    def __init__(self) -> None:
        self.tokens_gauge: Gauge | None = None
        self.slots: Gauge | None = None
        self.day: Gauge | None = None
        self.month: Gauge | None = None
        self.day_number = 0
        self.tokens = 0
        self.nanos = 0


class Allowance:
    """What one process may give out of a key's limits until it leases more. `now` is Unix time throughout."""

    def __init__(self, limits: KeyLimits) -> None:
        self.limits = limits
        self.gauges: dict[Period, Gauge] = {}
        self.left: dict[LimitName, int] = {}
        """What of each limit was left when this process last leased, its own leases aside."""
        self._until = 0.0
        self._day = 0
        self._current: tuple[Gauge | None, ...] = (None,) * 5

    def change(self, limits: KeyLimits) -> None:
        """Hold to other limits from now on."""
        self.limits = limits
        self._until = 0.0

    def take(self, demand: Demand, now: float) -> Reservation | None:
        """Take what one call needs, None where the leases have too little of it."""
        if now >= self._until:
            return None
        requests, tokens, slots, day, month = self._current
        nanos = demand.nanos or 0
        if (
            (requests is not None and requests.used + demand.requests > requests.held)
            or (tokens is not None and tokens.used + demand.tokens > tokens.held)
            or (slots is not None and slots.used + demand.slots > slots.held)
            or (day is not None and day.used + nanos > day.held)
            or (month is not None and month.used + nanos > month.held)
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
        if day is not None or month is not None:
            self._take_money(taken, day, month, nanos)
        return taken

    def _take_money(self, taken: Reservation, day: Gauge | None, month: Gauge | None, nanos: int) -> None:
        taken.day, taken.month, taken.nanos, taken.day_number = day, month, nanos, self._day
        for gauge in (day, month):
            if gauge is not None:
                gauge.used += nanos

    def grow(self, taken: Reservation, *, tokens: int, nanos: int, now: float) -> bool:
        """Take more for a call that has used more than was taken for it, whether or not there is more, and return whether it has."""
        extra, surplus = nanos - taken.nanos, tokens - taken.tokens
        if extra > 0:
            for money in (taken.day, taken.month):
                if money is not None:
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
        for money in (taken.day, taken.month):
            if money is not None:
                money.used += spent - taken.nanos
        return spent

    def forget(self, taken: Reservation, spent: int) -> None:
        """Count money no longer that a call spent: it is counted elsewhere from now on."""
        for money in (taken.day, taken.month):
            if money is not None:
                money.used -= spent
                money.held -= spent

    def renew(self, demand: Demand, now: float) -> list[LeaseRequest]:
        """Return all unused leases, and what is to be leased so that `demand` can be taken."""
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
        """Take in what was leased besides what is used, and what is left of each limit."""
        self.left = dict(left)
        for period, amount in granted.items():
            gauge = self._gauge(*period)
            gauge.held = gauge.used + amount
        windows = [limit for name, limit in self.limits.named() if name in WINDOWS and limit is not None]
        self._until = min(next_day(now), int(now) + LEASE_SECONDS if windows else next_day(now))

    def remaining(self, name: LimitName) -> int | None:
        """Return about how much of a limit is left for all processes; None where there is no such limit, or nothing was leased yet."""
        place = [one for one, _ in self.limits.named()].index(name)
        gauge = self._current[place]
        return None if gauge is None or name not in self.left else max(0, self.left[name] + gauge.held - gauge.used)

    def spare_nanos(self) -> int | None:
        """Return about how much money is left for all processes, below 0 where too much was used; None where that is not limited."""
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

    def _gauge(self, name: LimitName, period: int) -> Gauge:
        found = self.gauges.get((name, period))
        if found is None:
            found = self.gauges[(name, period)] = Gauge()
        return found


def _need(name: LimitName, demand: Demand) -> int | None:
    """Return what a call needs of a limit, None where it needs nothing of it and is not to be stopped by it."""
    if name == "requests_per_minute":
        return demand.requests
    if name == "tokens_per_minute":
        return demand.tokens
    return (demand.slots or None) if name == "concurrency" else demand.nanos
