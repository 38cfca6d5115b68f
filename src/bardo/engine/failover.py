"""What follows an attempt that failed: the same target once more, the next one, or the end of the call.

Pure: the error, how often and how long the target was tried, a random number and the time left are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from bardo.engine.refusal_causes import is_operators
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    EmptyReply,
    MissingKey,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)

_TRANSIENT = frozenset({409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 525, 527, 529, 530})
"""Statuses after which the same server often answers a moment later. 520 to 530 are Cloudflare's, in front of many providers."""
_TOO_SLOW = frozenset({408, 524})
_LATER = 429
_MOST_DOUBLED = 6


class FailoverPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often one target is asked again, and how long is waited before.

    The wait doubles from `backoff_seconds` on; a provider that asks for more than `longest_pause_seconds` is not waited for. A target
    that was silent for `patient_seconds` is not asked again.
    """

    retries: int = 1
    backoff_seconds: float = 0.25
    longest_pause_seconds: float = 1.0
    patient_seconds: float = 60.0


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt failed.

    `retries` were made at this target before, `seconds` is how long this one took, `alone` says that nobody else can be asked.
    """

    error: BardoError
    retries: int = 0
    seconds: float = 0.0
    alone: bool = False


def moves_on(error: BardoError) -> bool:
    """Whether another target may answer a request that failed with this error."""
    if isinstance(error, UpstreamRefused):
        return error.retryable or error.status >= 500 or is_operators(error)
    return error.retryable


def pause_before_retry(
    failed: FailedAttempt, policy: FailoverPolicy, *, now: float, jitter: float = 0.5, time_left: float = math.inf
) -> float | None:
    """Return how many seconds to wait before the same target is asked again; None where it is not.

    `jitter` is a random number from 0 to 1, `now` is Unix time.
    """
    if failed.retries >= policy.retries or not _may_mend_itself(failed, policy):
        return None
    asked = retry_after_seconds(failed.error, now)
    if asked is None and _is_rate_limit(failed.error):
        return None
    if asked is not None and asked > policy.longest_pause_seconds:
        return None
    doubled = policy.backoff_seconds * 2 ** min(failed.retries, _MOST_DOUBLED)
    pause = max(asked or 0.0, min(doubled, policy.longest_pause_seconds) * (0.5 + 0.5 * jitter))
    return pause if pause < time_left else None


def retry_after_seconds(error: BardoError, now: float) -> float | None:
    """Return how long a provider asks to be left alone, from its `Retry-After` in seconds or as a date; None where it does not say."""
    said = error.retry_after if isinstance(error, UpstreamRefused) else None
    if not said:
        return None
    try:
        seconds = float(said.strip().removesuffix("s"))
    except ValueError:
        return _until_date(said, now)
    return seconds if 0 <= seconds < math.inf else None


def error_to_tell(errors: Sequence[BardoError]) -> BardoError:
    """Return the error that a caller is told when every target failed: the last that is no fault of the operator's, else the last.

    A wrong key of the second provider would hide that the first one only asks to wait.
    """
    return next((one for one in reversed(errors) if not _is_operators(one)), errors[-1])


def _may_mend_itself(failed: FailedAttempt, policy: FailoverPolicy) -> bool:
    """Whether the same target may answer a moment later. One that was too slow, or asks to wait, is asked again only without others."""
    error = failed.error
    if _is_too_slow(error):
        return failed.alone and failed.seconds < policy.patient_seconds
    if isinstance(error, UpstreamRefused):
        return error.status in _TRANSIENT or (failed.alone and _is_rate_limit(error))
    return isinstance(error, Unreachable | BrokenStream | EmptyReply)


def _is_too_slow(error: BardoError) -> bool:
    return isinstance(error, UpstreamTimeout) or (isinstance(error, UpstreamRefused) and error.status in _TOO_SLOW)


def _is_rate_limit(error: BardoError) -> bool:
    return isinstance(error, UpstreamRefused) and error.status == _LATER


def _is_operators(error: BardoError) -> bool:
    return isinstance(error, MissingKey) or (isinstance(error, UpstreamRefused) and is_operators(error))


def _until_date(said: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, at.timestamp() - now)
