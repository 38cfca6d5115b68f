"""Times as several dialects write them: ISO 8601 text for seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def seconds_of(stamp: Any) -> int | None:
    """Return a written time in seconds since 1970, or None where it is none. A time without a zone is UTC."""
    if not isinstance(stamp, str):
        return None
    try:
        time = datetime.fromisoformat(stamp)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def stamp_of(seconds: int | None) -> str | None:
    """Return seconds since 1970 as text, or None where there are none or no calendar has them."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()[:19] + "Z"
    except (ValueError, OverflowError, OSError):
        return None
