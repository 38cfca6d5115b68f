"""The period that a page is about: whole days of UTC, so that it is told by the sums of days."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, day_of
from bardo.surfaces.render.costs import day_text
from bardo.values.errors import InvalidRequest

CHOICES: Mapping[str, tuple[str, int | None]] = {
    "1d": ("today", 1),
    "7d": ("7 days", 7),
    "30d": ("30 days", 30),
    "90d": ("90 days", 90),
    "365d": ("a year", 365),
    "all": ("all", None),
}
OWN = "own"


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Whole days from `first` to `last`, both included and counted from 1970 in UTC, or None if the period is open.

    `name` is the choice, `from_day` and `to_day` are the days of a period of one's own as they were written.
    """

    name: str
    first: int | None
    last: int | None
    from_day: str = ""
    to_day: str = ""

    @property
    def since(self) -> float | None:
        """When it begins, as Unix time."""
        return None if self.first is None else float(self.first * SECONDS_PER_DAY)

    @property
    def until(self) -> float | None:
        """When it ends, as Unix time."""
        return None if self.last is None else float((self.last + 1) * SECONDS_PER_DAY)

    @property
    def words(self) -> str:
        """The period as a part of a sentence."""
        if self.name in CHOICES:
            days = CHOICES[self.name][1]
            return {None: "since the log began", 1: "today (UTC)"}.get(days, f"the last {days} days (UTC)")
        begin = "the beginning" if self.first is None else day_text(self.first)
        return f"{begin} to {'today' if self.last is None else day_text(self.last)} (UTC)"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a form or an address that mean this period."""
        own = {"from": self.from_day, "to": self.to_day} if self.name == OWN else {}
        return {"period": self.name, **own}


def read_period(query: Mapping[str, str], now: float, default: str = "30d") -> Period:
    """Return the period that a query names. Raises InvalidRequest for days that are none."""
    begin, end = query.get("from", "").strip(), query.get("to", "").strip()
    name = query.get("period", "") or (OWN if begin or end else default)
    if name == OWN and (begin or end):
        first, last = (_day(text, field) if text else None for text, field in ((begin, "from"), (end, "to")))
        if first is not None and last is not None and first > last:
            raise InvalidRequest("the period ends before it begins", hint="change its days", param="to")
        return Period(name=OWN, first=first, last=last, from_day=begin, to_day=end)
    name = name if name in CHOICES else default
    days = CHOICES[name][1]
    return Period(name=name, first=None if days is None else day_of(now) - days + 1, last=None)


def _day(text: str, field: str) -> int:
    try:
        return day_of(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError as problem:
        raise InvalidRequest(f"{text[:40]!r} is no day", hint="write it as 2026-01-31", param=field) from problem
