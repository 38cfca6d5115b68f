"""Whether a target may be asked: a circuit that opens after failures, the window that counts them, and what one attempt says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

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

Fault = Literal["connection", "timeout", "overloaded", "server", "malformed", "broken"]
"""Faults of a provider: no connection, no answer in time, 503 or 529, another 5xx, a reply that is none of its dialect, a cut one."""

BUCKETS = 10
CERTAINTY = 1.959963984540054
"""Standard deviations on each side of the middle that hold 95 % of a normal distribution."""


def wilson_lower_bound(failed: int, calls: int, z: float = CERTAINTY) -> float:
    """Return the lower end of Wilson's interval for the share of `failed` in `calls`: 0 where there are none.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    if calls <= 0 or failed <= 0:
        return 0.0
    share, square = failed / calls, z * z
    middle = share + square / (2 * calls)
    half = z * math.sqrt(share * (1 - share) / calls + square / (4 * calls * calls))
    return max(0.0, (middle - half) / (1 + square / calls))


class HealthWindow:
    """The calls and failures of one target within the last `seconds`, in ten buckets. `calls` and `failed` are as of the last look."""

    __slots__ = ("_bucket_seconds", "_calls", "_epoch", "_faults", "calls", "failed")

    def __init__(self, seconds: float) -> None:
        self._bucket_seconds = seconds / BUCKETS
        self._epoch = -BUCKETS
        self._calls = [0] * BUCKETS
        self._faults: list[dict[Fault, int]] = [{} for _ in range(BUCKETS)]
        self.calls = 0
        self.failed = 0

    def note_success(self, now: float) -> None:
        """Count a call that went well."""
        if int(now / self._bucket_seconds) != self._epoch:
            self.look(now)
        self._calls[self._epoch % BUCKETS] += 1
        self.calls += 1

    def note_fault(self, fault: Fault, now: float) -> None:
        """Count a call that failed."""
        self.note_success(now)
        bucket = self._faults[self._epoch % BUCKETS]
        bucket[fault] = bucket.get(fault, 0) + 1
        self.failed += 1

    def note_counts(self, answered: int, faults: Mapping[Fault, int], now: float) -> None:
        """Count several calls at once: those that went well, and how often each fault occurred."""
        self.look(now)
        place, failed = self._epoch % BUCKETS, sum(faults.values())
        self._calls[place] += answered + failed
        self.calls += answered + failed
        self.failed += failed
        bucket = self._faults[place]
        for fault, count in faults.items():
            bucket[fault] = bucket.get(fault, 0) + count

    def look(self, now: float) -> None:
        """Forget the counts that are older than the window."""
        epoch = int(now / self._bucket_seconds)
        if epoch != self._epoch:
            self._advance(epoch)

    def clear(self) -> None:
        """Forget everything."""
        self._calls = [0] * BUCKETS
        self._faults = [{} for _ in range(BUCKETS)]
        self.calls = self.failed = 0

    @property
    def faults(self) -> dict[Fault, int]:
        """How often each fault occurred, as of the last look."""
        faults: dict[Fault, int] = {}
        for bucket in self._faults:
            for fault, count in bucket.items():
                faults[fault] = faults.get(fault, 0) + count
        return faults

    def _advance(self, epoch: int) -> None:
        passed = epoch - self._epoch
        if passed >= BUCKETS or passed <= -BUCKETS:
            self.clear()
        elif passed < 0:
            # The clock went back a little: what comes counts into the latest bucket.
            return
        else:
            for bucket in range(self._epoch + 1, epoch + 1):
                self._drop(bucket % BUCKETS)
        self._epoch = epoch

    def _drop(self, place: int) -> None:
        self.calls -= self._calls[place]
        self.failed -= sum(self._faults[place].values())
        self._calls[place] = 0
        self._faults[place] = {}


TRIAL_SECONDS = 30.0
"""How long the call that is let through has before another one may be."""


class HealthPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a target is down: of `least_calls` within `window_seconds` more than `error_rate` fail, as sure as Wilson's interval of 95 %.

    It is tried again after `rest_seconds`, then after twice that, up to `most_rest_seconds`.
    """

    error_rate: float = 0.05
    window_seconds: float = 300.0
    least_calls: int = 5
    rest_seconds: float = 15.0
    most_rest_seconds: float = 300.0


class Circuit:
    """One target: its window, and since when it is down. Closed while `down_since` is None."""

    __slots__ = (
        "_closed_at",
        "_rest",
        "_trial_until",
        "consecutive_failures",
        "down_since",
        "due_at",
        "last_fault",
        "policy",
        "window",
    )

    def __init__(self, policy: HealthPolicy) -> None:
        self.policy = policy
        self.window = HealthWindow(policy.window_seconds)
        self.down_since: float | None = None
        self.due_at = 0.0
        self.consecutive_failures = 0
        self.last_fault: Fault | None = None
        self._closed_at: float | None = None
        self._rest = policy.rest_seconds
        self._trial_until: float | None = None

    def note_success(self, now: float) -> bool:
        """Note an answer. Returns whether the target is up again: it was down, and due."""
        self.consecutive_failures = 0
        if self.down_since is None:
            self.window.note_success(now)
            return False
        if not self.is_due(now):
            return False
        self._close(now)
        self.window.note_success(now)
        return True

    def note_fault(self, fault: Fault, now: float) -> bool:
        """Note a failure. Returns whether the target went down by it."""
        self.consecutive_failures += 1
        self.last_fault = fault
        self.window.note_fault(fault, now)
        if self.down_since is not None:
            if self.is_due(now):
                self._open(now, min(2 * self._rest, self.policy.most_rest_seconds))
            return False
        if not self.fails_too_often():
            return False
        self._open(now, self._next_rest(now))
        return True

    def note_counts(self, answered: int, faults: Mapping[Fault, int], now: float) -> bool:
        """Note calls that others made, which tried nothing that is down. Returns whether the target went down by them."""
        self.window.note_counts(answered, faults, now)
        if faults:
            self.last_fault = list(faults)[-1]
        if self.down_since is not None or not faults or not self.fails_too_often():
            return False
        self._open(now, self._next_rest(now))
        return True

    @property
    def rest_seconds(self) -> float:
        """For how long the target rests, or rested last."""
        return self._rest

    def open_as_others(self, rest_seconds: float, due_at: float, fault: Fault | None, now: float) -> bool:
        """Take over that the target is down for others, who try it again at `due_at`. Returns whether it was not down here."""
        was_up = self.down_since is None
        if due_at > now and (was_up or rest_seconds > self._rest or self.is_due(now)):
            self._open(now, rest_seconds)
            self.due_at, self.last_fault = due_at, fault or self.last_fault
        return was_up and self.down_since is not None

    def close_as_others(self, closed_at: float, now: float) -> bool:
        """Take over that the target answered others again at `closed_at`. Returns whether it was down here, and since before that."""
        if self.down_since is None or closed_at < self.down_since <= now:
            return False
        self._close(now)
        return True

    def end_trial(self) -> None:
        """Let another call be tried: the one that was let through said nothing."""
        self._trial_until = None

    def fails_too_often(self) -> bool:
        """Whether it is certain that more of its calls fail than may, as of the last look at the window."""
        calls = self.window.calls
        if calls < self.policy.least_calls:
            return False
        return wilson_lower_bound(self.window.failed, calls) > self.policy.error_rate

    def is_due(self, now: float) -> bool:
        """Whether a target that is down may be tried."""
        return self.down_since is not None and (now >= self.due_at or now < self.down_since)

    def may_try(self, now: float) -> bool:
        """Whether a call may be sent: to a target that is down, one that is due and that no other call tries."""
        if self.down_since is None:
            return True
        return self.is_due(now) and not self._is_tried(now)

    def begin_trial(self, now: float) -> None:
        """Note that a call was let through to a target that is down."""
        if self.down_since is not None:
            self._trial_until = now + TRIAL_SECONDS

    def is_idle(self, now: float) -> bool:
        """Whether nothing is known of the target that is not as old as the window."""
        self.window.look(now)
        return self.down_since is None and not self.window.calls

    def _is_tried(self, now: float) -> bool:
        until = self._trial_until
        return until is not None and until - TRIAL_SECONDS <= now < until

    def _next_rest(self, now: float) -> float:
        """Return the rest of a target that goes down: twice the last one where it came back only a window ago."""
        closed = self._closed_at
        if closed is not None and 0 <= now - closed < self.policy.window_seconds:
            return min(2 * self._rest, self.policy.most_rest_seconds)
        return self.policy.rest_seconds

    def _close(self, now: float) -> None:
        self.down_since, self._trial_until, self._closed_at = None, None, now
        self.consecutive_failures = 0
        self.window.clear()

    def _open(self, now: float, rest: float) -> None:
        self.down_since = self.down_since if self.down_since is not None and self.down_since <= now else now
        self._rest, self.due_at, self._trial_until = rest, now + rest, None


NotAFault = Literal["rate_limited", "key_refused", "caller", "abandoned"]
"""A limit of the key, a key that is not taken or has no credit, a request that is wrong, and a call whose client left."""
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
    """How one attempt ended. `error` is None if it was answered.

    `rest_seconds` is how long the provider asks to wait, `seconds` how long a whole reply took and `first_token_seconds` how long a stream
    took to begin; `key` is the label of the key that was used. `status` is the provider's, or None if there was no answer.
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


def outcome_of(problem: BardoError, *, key: str = "") -> AttemptOutcome:
    """Return the outcome of an attempt that ended with `problem`."""
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


def _without_credit(problem: UpstreamRefused) -> bool:
    named = {problem.upstream_code, problem.upstream_type}
    if not _NO_CREDIT.isdisjoint(name for name in named if name):
        return True
    return problem.status in (400, 429) and _NO_CREDIT_WORDS.search(problem.said[:600]) is not None
