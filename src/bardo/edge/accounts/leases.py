"""What passes between the calls of a process and the state database: rows of leases, and what calls of unknown cost count as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bardo.accounting.limits import LimitName, Period


class Lease(NamedTuple):
    """How much of one limit of a key a process uses or may give out in one period; 0 removes the row."""

    account: str
    period: Period
    amount: int


class Estimate(NamedTuple):
    """What a call of unknown cost counts as, on the day it began."""

    account: str
    day: int
    nanos: int


class LeaseGrant(NamedTuple):
    """How much was leased of each limit besides what was used already, and how much is left for other leases."""

    leased: Mapping[Period, int]
    left: Mapping[LimitName, int]
