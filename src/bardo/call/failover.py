"""Whether and when a target is asked again after an attempt that failed, by what the operator set and what a call has tried."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Protocol

from bardo.adapters.config.routing import FailoverSettings
from bardo.call.hedging import HedgeBudget
from bardo.call.stale_replies import StaleReplies
from bardo.planning.failover import FailedAttempt, FailoverPolicy, error_to_tell, pause_before_retry
from bardo.values.chance import CHANCE
from bardo.values.errors import BardoError, UpstreamTimeout

# Timers of event loops ring a little early, and nobody answers in less.
_LEAST_SECONDS = 0.02


class Failover:
    """What an operator set, as calls use it. `jitter` gives random numbers from 0 to 1."""

    def __init__(self, settings: FailoverSettings | None = None) -> None:
        self.settings = settings or FailoverSettings()
        self.policy = _policy(self.settings)
        self.jitter = CHANCE.random
        kept = self.settings.stale_entries
        self.stale = StaleReplies(kept, self.settings.stale_bytes) if kept else None
        self.budget = HedgeBudget(self.settings.hedge_share)
        self.bounds_tokens = bool(self.settings.first_token_seconds or self.settings.first_token_seconds_at)

    def deadline(self, deadline: float | None) -> float | None:
        """Return within how many seconds a call has to be answered: what its caller `deadline`, and no more than the operator allows."""
        own = self.settings.deadline_seconds or None
        if deadline is None or own is None:
            return own if deadline is None else deadline
        return min(own, deadline)

    def first_token(self, provider: str) -> float | None:
        """Return how long a streamed reply may take to its first token; None where nothing is set."""
        return self.settings.first_token(provider) if self.bounds_tokens else None


def _policy(settings: FailoverSettings) -> FailoverPolicy:
    """Return how often, and after which pauses, a target is asked again."""
    return FailoverPolicy(
        retries=settings.retries,
        backoff_seconds=settings.backoff_seconds,
        longest_pause_seconds=settings.longest_pause_seconds,
    )


class RetryContext(Protocol):
    """What waiting for a target needs."""

    failover: Failover
    clock: Callable[[], float]


class Recovery:
    """What one call has tried so far. `age` tells its seconds since it began, `deadline` how many it has."""

    __slots__ = ("_age", "_context", "_deadline", "_errors", "_retries")

    def __init__(self, context: RetryContext, age: Callable[[], float], deadline: float | None) -> None:
        self._context = context
        self._age = age
        self._deadline = deadline
        self._errors: list[BardoError] = []
        self._retries = 0

    @property
    def time_left(self) -> float:
        """The seconds in which the call has to be answered."""
        return math.inf if self._deadline is None else self._deadline - self._age()

    @property
    def has_time(self) -> bool:
        """Whether there is time for another attempt."""
        return self.time_left > _LEAST_SECONDS

    @property
    def error_to_tell(self) -> BardoError:
        """The error of a call whose attempts have all failed."""
        return error_to_tell(self._errors)

    def note(self, problem: BardoError) -> None:
        """Take the error of an attempt."""
        self._errors.append(problem)

    def turn_to_next(self) -> None:
        """Count from now on for another target."""
        self._retries = 0

    async def rest(self, problem: BardoError, seconds: float, *, alone: bool) -> bool:
        """Whether the same target is asked again after an attempt of so many seconds; then the pause before that is over."""
        failover = self._context.failover
        pause = pause_before_retry(
            FailedAttempt(error=problem, retries=self._retries, seconds=seconds, alone=alone),
            failover.policy,
            now=self._context.clock(),
            jitter=failover.jitter(),
            time_left=self.time_left,
        )
        if pause is None:
            return False
        await asyncio.sleep(pause)
        self._retries += 1
        return True

    def out_of_time(self, provider: str) -> UpstreamTimeout:
        """Return the error of an attempt that the deadline of its call ended."""
        return UpstreamTimeout(f"no answer came within the {self._deadline:g} s that the call had", provider=provider)
