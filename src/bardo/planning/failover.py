"""What follows a failed attempt, and whose fault a provider's refusal is where its status alone does not say so.

A wrong key, an empty account and an unknown model are the operator's, whatever the status: another provider may answer. A prompt that
was refused for its content is the caller's, and no other provider is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from bardo.values.errors import (
    BardoError,
    BrokenStream,
    EmptyReply,
    MissingKey,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)

_OPERATOR_STATUSES = frozenset({401, 402, 403, 404})
# Providers that say one of these with another status, as seen in 2026.
_OPERATOR_WORDS = re.compile(
    r"API key not valid|API_KEY_INVALID|api key expired"  # Gemini: 400
    r"|incorrect api key|invalid api key|invalid x-api-key"  # xAI: 400
    r"|credit balance is too low"  # Anthropic: 400
    r"|insufficient (?:balance|credits?|funds|quota)|insufficient_quota|billing_hard_limit"  # OpenAI, DeepSeek
    r"|unknown model|model not exist|is not a valid model|invalid model\b"  # Z.ai, DeepSeek, OpenRouter, Mistral: 400
    r"|model identifier is invalid|model_not_found|model_not_supported"  # Bedrock: 400; OpenAI and those like it
    r"|not been granted access|don't have access to the model",  # Bedrock: 400 and 403
    re.IGNORECASE,
)
_MODEL_WORDS = re.compile(
    r"unknown model|model not exist|is not a valid model|invalid model\b|model identifier is invalid"
    r"|model_not_found|model_not_supported|not supported model|model .{0,200}(?:does not exist|not found)",
    re.IGNORECASE,
)
_NOT_FOUND, _FAILED = 404, 500
_CONTENT_WORDS = re.compile(
    r"content[ _]filter|content[ _](?:management )?policy|content_policy_violation|responsible ?ai ?policy"  # OpenAI, Azure
    r"|requires moderation|input was flagged|flagged_input"  # OpenRouter: 403
    r"|data_inspection_failed|inappropriate content|content exists risk"  # Qwen, DeepSeek
    r"|sensitive (?:information|content)|moderation_blocked|safety (?:system|filter)",  # Z.ai, OpenAI
    re.IGNORECASE,
)
_LOOKED_AT = 600
"""Characters of a message that are looked at."""
_MODERATED = ("flagged_input", "reasons")
"""Names in the metadata of OpenRouter's refusal of a prompt that was flagged."""


def is_operators(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses because of its key, its account or its models: another one may take the same request."""
    if is_about_content(refusal) or refusal.overflow is not None:
        return False
    if refusal.status in _OPERATOR_STATUSES:
        return True
    return 400 <= refusal.status < 500 and _says(refusal, _OPERATOR_WORDS)


def is_about_model(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses a model that it does not have."""
    return refusal.status == _NOT_FOUND or (refusal.status < _FAILED and _says(refusal, _MODEL_WORDS))


def is_about_content(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses what the prompt says."""
    if refusal.status >= 500 or refusal.status == 429:
        return False
    return _says(refusal, _CONTENT_WORDS) or _is_moderated(refusal.detail)


def _says(refusal: UpstreamRefused, words: re.Pattern[str]) -> bool:
    named = (refusal.said[:_LOOKED_AT], refusal.upstream_code, refusal.upstream_type, _reason(refusal.detail))
    return any(word and words.search(word) for word in named)


def _reason(detail: Any) -> str:
    """Return the reason that Google's error details give; empty where there is none."""
    details = detail.get("details") if isinstance(detail, dict) else None
    for one in details if isinstance(details, list) else ():
        reason = one.get("reason") if isinstance(one, dict) else None
        if isinstance(reason, str):
            return reason
    return ""


def _is_moderated(detail: Any) -> bool:
    metadata = detail.get("metadata") if isinstance(detail, dict) else None
    return isinstance(metadata, dict) and any(metadata.get(name) for name in _MODERATED)


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
