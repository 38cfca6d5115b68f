"""The values between the calls of a process and the store of limits, and the protocol of such a store.

A row holds how much of one limit one process uses or may give out in one period, so writing it twice does no harm. Rows of calls at a time
and of money count only while their process is seen; a process that was away for longer writes its rows anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from bardo.accounting.limits import (
    MONEY,
    WINDOWS,
    LeasedUsage,
    LeaseRequest,
    LimitName,
    Period,
    Shortage,
    day_number,
    leased,
    seconds_until,
    session_of_id,
)

STALE_SECONDS = 10.0
"""A process that was not seen for so long is over."""
KEPT_SECONDS = 40 * 86_400
"""How long unchanged rows of an account stay: longer than a month, whose budget they are about."""


class Lease(NamedTuple):
    """How much of one limit of a key a process uses or may give out in one period; 0 removes the row."""

    account: str
    period: Period
    amount: int


class Estimate(NamedTuple):
    """The estimate for a call of unknown cost, on the day it began."""

    account: str
    day: int
    nanos: int


class LeaseGrant(NamedTuple):
    """How much was leased of each limit besides what was used already, and how much is left for other leases."""

    leased: Mapping[Period, int]
    left: Mapping[LimitName, int]


class Spend(Protocol):
    """The costs of calls by the log: nano-dollars of one key, of the days from the first to the last, as 20261123.

    Of an account that stands for a session it is what that has cost, whenever that was.
    """

    def __call__(self, account: str, first_day: int, last_day: int) -> int: ...


class LeaseStore(Protocol):
    """The leases of one process among those of all. Its methods block, and raise DatabaseUnusable where the store cannot be used."""

    def claim(
        self, account: str, rows: Sequence[Lease], wants: Sequence[LeaseRequest], now: float
    ) -> LeaseGrant | Shortage:
        """Store `rows`, and lease the wanted amounts: all, or none if one limit has too little left."""

    def sync(self, rows: Sequence[Lease], estimates: Sequence[Estimate], now: float) -> int:
        """Store rows and estimates, say that this process lives, and return how many do."""

    def used(self, account: str, now: float) -> LeasedUsage:
        """Return the usage and the leases of the limits of one key by all processes."""

    def clean(self, now: float) -> None:
        """Remove what counts no longer."""

    def leave(self) -> None:
        """Return all leases of calls at a time and of money: this process ends. What it used of a minute counts on."""

    def close(self) -> None:
        """Close what was opened for this store alone."""


FIRST_DAY = 19_700_101


def days_of(account: str, now: float) -> tuple[int, int]:
    """Return the days of which estimates count for an account: those of this month, and of a session all."""
    today = day_number(now)
    return FIRST_DAY if session_of_id(account) is not None else today // 100 * 100 + 1, today


def usage_of(
    account: str, leases: Mapping[LimitName, Mapping[int, int]], estimates: Mapping[int, int], spend: Spend, now: float
) -> LeasedUsage:
    """Return the usage of an account: its leases, the estimates of calls of unknown cost by day, and the costs in the log.

    Leases are read before the log: a cost that moves from the one to the other between is counted twice rather than not at all.
    """
    estimated = sum(estimates.values())
    first, today = days_of(account, now)
    if session_of_id(account) is not None:
        return LeasedUsage(leases, 0, 0, spend(account, first, today) + estimated)
    month = spend(account, first, today) + estimated
    return LeasedUsage(leases, spend(account, today, today) + estimates.get(today, 0), month)


def is_about_money(wants: Sequence[LeaseRequest]) -> bool:
    """Whether what was spent has to be known to grant them."""
    return any(want.name in MONEY for want in wants)


def grant_of(wants: Sequence[LeaseRequest], used: LeasedUsage, now: float) -> LeaseGrant | Shortage:
    """Return what can be leased besides what all processes use: all that is wanted, or the first limit that has too little left."""
    granted: dict[Period, int] = {}
    left: dict[LimitName, int] = {}
    for want in wants:
        total = used.total(want.name, now)
        amount = leased(want, total)
        if amount is None:
            seconds = seconds_until(want, used.leases.get(want.name, {}), now)
            return Shortage(want.name, want.limit, max(0, want.limit - total), seconds)
        granted[(want.name, want.period)] = amount
        left[want.name] = want.limit - total - amount
    return LeaseGrant(granted, left)


def rows_of(account: str, wants: Sequence[LeaseRequest], grant: LeaseGrant) -> list[Lease]:
    """Return the rows that hold what was granted."""
    return [Lease(account, (cap.name, cap.period), cap.used + grant.leased[(cap.name, cap.period)]) for cap in wants]


class OwnRows:
    """The rows that count only while this process is seen, as they were stored last, to be written anew if they are gone."""

    def __init__(self) -> None:
        self._amounts: dict[tuple[str, Period], int] = {}

    def note(self, rows: Sequence[Lease]) -> None:
        """Take in rows that were stored."""
        for account, period, amount in rows:
            if period[0] in WINDOWS:
                continue
            if amount > 0:
                self._amounts[account, period] = amount
            else:
                self._amounts.pop((account, period), None)

    def all(self) -> list[Lease]:
        """Return every row."""
        return [Lease(account, period, amount) for (account, period), amount in self._amounts.items()]

    def clear(self) -> None:
        """Forget all: they were returned."""
        self._amounts.clear()
