"""Times, names in paths, and the words of refusals, as the dialects spell them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

from bardo.values.context_overflow import Overflow
from bardo.values.errors import BardoError, ContextOverflow, InvalidRequest, UpstreamRefused


def seconds_of(stamp: object) -> int | None:
    """Return a written time in seconds since 1970, or None if it is none. A time without a zone is UTC."""
    if not isinstance(stamp, str):
        return None
    try:
        time = datetime.fromisoformat(stamp)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def stamp_of(seconds: int | None) -> str | None:
    """Return seconds since 1970 as text, or None if there are none or no calendar has them."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()[:19] + "Z"
    except (ValueError, OverflowError, OSError):
        return None


def path_segment(model: str) -> str:
    """Return a model's name as one segment. Raises InvalidRequest for `.` and `..`, which name no segment however they are written."""
    if model in (".", ".."):
        raise InvalidRequest(f"there is no model {model!r}", param="model")
    return quote(model, safe="")


def own_refusal(error: BardoError, *dialects: str) -> UpstreamRefused | None:
    """Return a provider's refusal that came in one of these dialects; one without a dialect is taken for one."""
    own = isinstance(error, UpstreamRefused) and (not error.dialect or error.dialect in dialects)
    return error if own and isinstance(error, UpstreamRefused) else None


def message_in(
    words: Callable[[Overflow], str], error: BardoError, *dialects: str, known: re.Pattern[str] | None = None
) -> str:
    """Return an error's message. Of a prompt that is too long a client reads its own API's words first.

    A provider that speaks one of these dialects keeps its message where it holds words that clients know (`known`; None for any words:
    they look at a code).
    """
    overflow = overflow_of(error)
    if overflow is None:
        return str(error)
    if own_refusal(error, *dialects) is not None and (known is None or known.search(str(error))):
        return str(error)
    whose = "the provider said: " if isinstance(error, UpstreamRefused) else ""
    return f"{words(overflow)} ({whose}{error})"


def overflow_of(error: BardoError) -> Overflow | None:
    """Return what a refusal says of a prompt that is too long, or None if the error is about something else."""
    return error.overflow if isinstance(error, UpstreamRefused | ContextOverflow) else None
