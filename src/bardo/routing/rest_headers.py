"""How long a provider asks to wait, by the headers of its refusal.

A value tells its own form: a number of seconds, a duration as Go writes it (`6m0s`, `120ms`), a time as RFC 3339 or HTTP writes it, or Unix
time in seconds or milliseconds. Which headers count, a provider's row says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bardo.catalog.rows import LimitHeaders

MOST_REST_SECONDS = 24 * 3600.0
"""Who asks to wait longer is asked again after a day."""

_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_DURATION = re.compile(r"(?:([0-9]{1,6}(?:\.[0-9]{1,9})?)(ns|us|µs|ms|s|m|h|d))+")
_PART = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)(ns|us|µs|ms|s|m|h|d)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 64
# Numbers from here on are Unix time, in seconds or in milliseconds: a wait of 30 years is a date.
_UNIX_SECONDS = 1_000_000_000.0
_UNIX_MILLISECONDS = 1_000_000_000_000.0


def rest_seconds(headers: Mapping[str, str], limits: Sequence[LimitHeaders], now: float) -> float | None:
    """Return how long to wait by the headers of a refusal, in seconds, or None if they do not say. `now` is Unix time.

    `retry-after-ms` and `retry-after` go before the limits. Of these, the ones with nothing left count, and the one that takes longest;
    where none says so, the one that comes back first.
    """
    waits = _milliseconds(headers.get("retry-after-ms"))
    if waits is None:
        waits = parse_wait(headers.get("retry-after"), now)
    return waits if waits is not None else _until_reset(headers, limits, now)


def parse_wait(value: str | None, now: float) -> float | None:
    """Return the seconds from `now` (Unix time) to what a header names: 0 for a time that has passed, None if it is not a time."""
    if not value or len(value) > _LONGEST:
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _of_number(float(text), now)
    if _DURATION.fullmatch(text):
        return _bounded(math.fsum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    moment = _moment(text)
    return None if moment is None else _bounded(moment - now)


def _until_reset(headers: Mapping[str, str], limits: Sequence[LimitHeaders], now: float) -> float | None:
    exhausted: list[float] = []
    unsaid: list[float] = []
    for limit in limits:
        waits = parse_wait(headers.get(limit.reset), now)
        if waits is None:
            continue
        left = headers.get(limit.remaining, "").strip()
        if not left:
            unsaid.append(waits)
        elif _NUMBER.fullmatch(left) and float(left) == 0:
            exhausted.append(waits)
    return max(exhausted) if exhausted else min(unsaid, default=None)


def _milliseconds(value: str | None) -> float | None:
    if not value or len(value) > _LONGEST or not _NUMBER.fullmatch(value.strip()):
        return None
    return _bounded(float(value) / 1000)


def _of_number(number: float, now: float) -> float:
    if number >= _UNIX_MILLISECONDS:
        return _bounded(number / 1000 - now)
    return _bounded(number - now if number >= _UNIX_SECONDS else number)


def _moment(text: str) -> float | None:
    """Return the Unix time that a date names; one of RFC 3339 without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    try:
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError, OSError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), MOST_REST_SECONDS)
