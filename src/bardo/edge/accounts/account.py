"""Whose call it is: what a key says of the calls that come with it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Literal

import msgspec

from bardo.accounting.limits import KeyLimits
from bardo.catalog.matching import matches_any
from bardo.values.errors import InvalidRequest

NANOS = 1_000_000_000


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the calls of one key. `tenant` is whose earlier replies its calls may go on from.

    `models` are globs of models, aliases and workloads, empty for all. `expires` and `revoked` are Unix times.
    `operator`: whoever has the key may see the calls of all keys in the panel. `unknown_cost` is its own `[budgets]` `unknown_cost`.
    """

    id: str
    name: str = ""
    tenant: str = ""
    tags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    limits: KeyLimits = KeyLimits()
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    operator: bool = False
    unknown_cost: Literal["", "refuse", "estimate", "allow"] = ""

    @property
    def limited(self) -> bool:
        """Whether its calls have to be counted before they are sent."""
        return self.limits.any

    @property
    def has_budget(self) -> bool:
        """Whether the money of its calls is limited."""
        return self.limits.usd_per_day is not None or self.limits.usd_per_month is not None

    def may_ask(self, *names: str) -> bool:
        """Whether one of the names of a model is allowed."""
        return not self.models or any(matches_any(name, self.models) for name in names)

    def state(self, now: float) -> str:
        """Return whether the key is `active`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "active"


def nanos_of_usd(amount: float | str) -> int:
    """Return US dollars as nano-dollars. Raises InvalidRequest for what is no amount."""
    try:
        nanos = Decimal(str(amount)) * NANOS
    except InvalidOperation:
        nanos = Decimal(-1)
    if not nanos.is_finite() or not 0 <= nanos < 2**62:
        raise InvalidRequest(f"{amount!r} is no amount of US dollars", hint="write a number: 5 or 0.25")
    return int(nanos)


def expiry_of(text: str, now: float) -> float:
    """Return the Unix time that a day, a time, or a span from now like `90d` or `12h` means. Raises InvalidRequest."""
    spans = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
    number, unit = text[:-1], text[-1:]
    if unit in spans and number.isascii() and number.isdigit() and len(number) < 6:
        return now + int(number) * spans[unit].total_seconds()
    return time_of(text)


def time_of(text: str) -> float:
    """Return the Unix time of `2027-01-31` (when the day begins, in UTC) or `2027-01-31T12:00:00Z`. Raises InvalidRequest."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as problem:
        message = f"{text[:80]!r} is no time"
        raise InvalidRequest(message, hint="write a day like 2027-01-31", param="expires") from problem


def checked_globs(models: Iterable[str]) -> tuple[str, ...]:
    """Return globs of models as they are kept. Raises InvalidRequest for an empty one."""
    globs = tuple(dict.fromkeys(model.strip() for model in models))
    if "" in globs:
        raise InvalidRequest("the name of a model is empty", hint="write a model, an alias or a glob", param="models")
    return globs
