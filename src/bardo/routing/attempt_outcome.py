"""How one attempt at a provider ended, as far as it says something of the provider: well, by its fault, or by none of its doing."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from bardo.routing.health_window import Fault
from bardo.routing.rest_headers import parse_wait
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    MalformedReply,
    ProviderError,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)

NotAFault = Literal["rate_limited", "key_refused", "caller", "abandoned"]
"""A limit of the key, a key that is not taken or has no credit, a request that is wrong, and a call that nobody waited for."""
ErrorClass = Fault | NotAFault

_OVERLOADED = frozenset({503, 529})
_RATE_LIMITED = frozenset({425, 429})
_KEY_REFUSED = frozenset({401, 402, 403})
# OpenAI says 429 where the account has no credit (platform.openai.com/docs/guides/error-codes, as of 2026-11), Anthropic 400
# ("Your credit balance is too low"): waiting for a limit to reset helps neither.
_NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "credit_balance_too_low"}
)
_NO_CREDIT_WORDS = re.compile(r"credit balance is too low|exceeded your current quota, please check your plan", re.I)


class AttemptOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How one attempt ended. `error` is None where it was answered.

    `rest_seconds` is how long the provider asks to wait, `seconds` how long a whole reply took and `first_token_seconds` how long a stream
    took to begin; `key` is the label of the key that was used. `status` is the provider's, None where there was no answer.
    """

    error: ErrorClass | None = None
    status: int | None = None
    rest_seconds: float | None = None
    seconds: float | None = None
    first_token_seconds: float | None = None
    key: str = ""

    @property
    def answered(self) -> bool:
        """Whether the provider's server answered at all, be it with a refusal."""
        return self.error not in ("connection", "timeout", "abandoned")


ABANDONED = AttemptOutcome(error="abandoned")


def error_class(problem: BardoError) -> ErrorClass:
    """Return what an error says of the provider that it came from."""
    match problem:
        case UpstreamRefused():
            return _class_of_refusal(problem)
        case Unreachable():
            return "connection"
        case UpstreamTimeout():
            return "timeout"
        case BrokenStream():
            return "broken"
        case MalformedReply():
            return "malformed"
        case ProviderError():
            return "server"
    return "caller"


def outcome_of(
    problem: BardoError | None,
    *,
    seconds: float | None = None,
    first_token_seconds: float | None = None,
    key: str = "",
) -> AttemptOutcome:
    """Return the outcome of an attempt that ended with `problem`, or well."""
    if problem is None:
        return AttemptOutcome(seconds=seconds, first_token_seconds=first_token_seconds, key=key)
    refused = isinstance(problem, UpstreamRefused)
    return AttemptOutcome(
        error=error_class(problem),
        status=problem.status if refused else None,
        rest_seconds=_rest_of(problem) if isinstance(problem, ProviderError) else None,
        key=key,
    )


def _rest_of(problem: ProviderError) -> float | None:
    """Return how long a provider asks to wait: by its headers, or by an error that came inside a reply of status 200."""
    if problem.rest_seconds is not None or not isinstance(problem, UpstreamRefused):
        return problem.rest_seconds
    # Whether it is a number; dates only stand in headers.
    return parse_wait(problem.retry_after, 0.0) if (problem.retry_after or "").replace(".", "").isdecimal() else None


def _class_of_refusal(problem: UpstreamRefused) -> ErrorClass:
    status = problem.status
    if problem.overflow is not None:
        return "caller"
    if status in _KEY_REFUSED or _without_credit(problem):
        return "key_refused"
    if status in _RATE_LIMITED:
        return "rate_limited"
    if status in _OVERLOADED:
        return "overloaded"
    if status in (408, 504):
        return "timeout"
    # 404 may be about a file or an earlier response that the caller names, 400 and 422 about anything it wrote.
    return "server" if status >= 500 else "caller"


def _without_credit(problem: UpstreamRefused) -> bool:
    named = {problem.upstream_code, problem.upstream_type}
    if not _NO_CREDIT.isdisjoint(name for name in named if name):
        return True
    return problem.status in (400, 429) and _NO_CREDIT_WORDS.search(problem.said[:600]) is not None
