"""Goes on with a call whose attempt failed: at the same target once more, at the next, or not at all.

A call that is answered at once passes through here without a clock or a timer being looked at.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

from bardo.adapters.long_work import run_by_size, size_of
from bardo.call.call_attempts import SentAttempt
from bardo.call.call_context import CallContext
from bardo.call.failover import Failover, Recovery
from bardo.call.hedging import Race, hedge_after
from bardo.call.live_reply import LiveReply
from bardo.call.opened_reply import OpenedReply
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import CallPlan, Exchange, is_about_form
from bardo.planning.route import Target
from bardo.services.facts.health import note_attempt
from bardo.values.attempts import AttemptCause
from bardo.values.errors import BardoError, UpstreamTimeout


class LoopContext(CallContext, Protocol):
    """What the attempts of a call need of whoever runs it."""

    failover: Failover


class _Allowed(NamedTuple):
    """How long an attempt may take to its first token, or to its beginning, and the error of one that takes longer."""

    seconds: float
    late: UpstreamTimeout
    to_token: bool = False


class AttemptLoop:
    """Makes the attempts of one call until one is answered. `deadline` is in seconds since the call began.

    `hedge` returns an exchange at the targets after the first, for a reason that it is given; None where nothing is hedged.
    """

    __slots__ = (
        "_context",
        "_deadline",
        "_exchange",
        "_hedge",
        "_latest",
        "_live",
        "_made",
        "_plan",
        "_size",
    )
    _latest: OpenedReply

    def __init__(
        self,
        context: LoopContext,
        live: LiveReply,
        plan: CallPlan,
        deadline: float | None = None,
        hedge: Callable[[str], Exchange] | None = None,
    ) -> None:
        self._hedge = hedge
        self._context = context
        self._live = live
        self._plan = plan
        self._size = size_of(plan.request)
        self._exchange = plan.exchange()
        self._deadline = deadline
        self._made: Recovery | None = None

    @property
    def _recovery(self) -> Recovery:
        """What the call has tried: made where it is needed, which it is not for most calls."""
        if self._made is None:
            self._made = Recovery(self._context, self._live.age, self._deadline)
        return self._made

    async def run(self) -> Attempt:
        """Return the attempt that was answered. Raises BardoError where none is."""
        self._open_next(await run_by_size(self._size, partial(next, self._exchange)), "first", "")
        hedged = self._hedge is not None
        while True:
            try:
                if hedged:
                    hedged = False
                    await self._begin_hedged(self._latest)
                else:
                    await self._begin(self._latest)
                attempt = self._latest.attempt
                self._context.facts.note_answered(attempt, self._live.recorder.tenant, self._plan.request)
                return attempt
            except BardoError as problem:
                attempt, cause = await self._next_attempt(self._latest, problem)
                self._open_next(attempt, cause, problem.message)

    def _open_next(self, attempt: Attempt, cause: AttemptCause, why: str) -> None:
        self._latest = OpenedReply(attempt, self._send(attempt, cause, why))

    async def _begin_hedged(self, first: OpenedReply) -> None:
        """Send the first attempt, and one more where it is slower than its target usually is; go on with the one that begins first."""
        context, target = self._context, first.attempt.target
        budget = context.failover.budget
        budget.count()
        latency = context.health.latency(target.provider.place, target.model)
        seconds = hedge_after(latency, stream=self._live.request.stream)
        if seconds is None:
            await self._begin(first)
            return
        race = Race(self._open, self._live.recorder)
        try:
            self._latest = await race.run(
                first, seconds, lambda: self._second(target, seconds) if budget.spend() else None
            )
        finally:
            for error in race.errors:
                self._recovery.note(error)
            self._live.take(self._latest, self._plan.knowledge)

    def _second(self, slow: Target, seconds: float) -> OpenedReply | None:
        """Return the attempt that is made beside a slow one; None where no other target can express the request."""
        assert self._hedge is not None
        why = f"{slow.provider.place} had not begun to answer after {seconds:g} s, as it does in 95 of 100 calls"
        exchange = self._hedge(why)
        try:
            attempt = next(exchange)
        except (StopIteration, BardoError):
            return None
        # Whatever becomes of the two, the targets after the second are next.
        self._exchange = exchange
        self._latest = OpenedReply(attempt, self._send(attempt, "hedge", why))
        return self._latest

    def _send(self, attempt: Attempt, cause: AttemptCause, why: str) -> SentAttempt:
        self._context.facts.warnings.note(attempt, self._plan.knowledge)
        return self._live.note_sent(attempt, cause=cause, why=why)

    async def _begin(self, opened: OpenedReply) -> None:
        """Send an attempt, and read until its reply has begun. Raises BardoError."""
        try:
            await self._open(opened)
        finally:
            self._live.take(opened, self._plan.knowledge)

    async def _open(self, opened: OpenedReply) -> None:
        """Send an attempt, and read until its reply has begun, within the time that it has. Raises BardoError."""
        self._live.note_opening(opened)
        allowed = self._allowed(opened.attempt)
        if allowed is None:
            await opened.begin(self._live.reading())
            return
        try:
            async with asyncio.timeout(allowed.seconds) as patience:
                if allowed.to_token:
                    opened.patience = patience
                await opened.begin(self._live.reading())
        except TimeoutError:
            opened.note_ended(self._live.recorder, allowed.late)
            if allowed.to_token:
                # Where the call itself was out of time, the provider may not have been slow.
                note_attempt(self._context, opened.attempt.target, allowed.late)
            raise allowed.late from None

    def _allowed(self, attempt: Attempt) -> _Allowed | None:
        """Return how long an attempt may take to begin; None where nothing bounds it here."""
        if self._deadline is None and not self._context.failover.bounds_tokens:
            return None
        provider, left = attempt.target.provider.id, self._recovery.time_left
        token = self._context.failover.first_token(provider) if self._live.request.stream else None
        if token is not None and token <= left:
            late = UpstreamTimeout(f"no first token came within {token:g} s", provider=provider)
            return _Allowed(token, late, to_token=True)
        return None if left == math.inf else _Allowed(max(0.0, left), self._recovery.out_of_time(provider))

    async def _next_attempt(self, failed: OpenedReply, problem: BardoError) -> tuple[Attempt, AttemptCause]:
        """Return what is tried after an attempt that failed, and what it is, once it is time for it. Raises BardoError where nothing is."""
        attempt, recovery, seconds = failed.attempt, self._recovery, failed.sent.seconds or 0.0
        recovery.note(problem)
        if self._live.keys.may_change(attempt.target, failed.sent.key, problem):
            return attempt, "retry"
        again = not is_about_form(attempt, problem) and not self._has_next_server(attempt.target)
        if again and await recovery.rest(problem, seconds, alone=False):
            return attempt, "retry"
        following = await run_by_size(self._size, partial(self._following, problem))
        if following is None:
            if not await recovery.rest(problem, seconds, alone=True):
                raise recovery.error_to_tell
            return attempt, "retry"
        if _target_key(following.target) == _target_key(attempt.target):
            return following, "retry"
        recovery.turn_to_next()
        return following, "failover"

    def _has_next_server(self, target: Target) -> bool:
        """Whether another server of the same provider is next, which is asked at once instead of the same one again."""
        if not target.provider.address:
            return False
        later = iter(self._plan.targets)
        found = any(_target_key(one) == _target_key(target) for one in later)
        following = next(later, None) if found else None
        return following is not None and following.provider.id == target.provider.id

    def _following(self, problem: BardoError) -> Attempt | None:
        """Return the next attempt after one that failed; None where there is none, or no time for it."""
        if not self._recovery.has_time:
            return None
        try:
            return self._exchange.send(problem)
        except StopIteration:
            return None
        except BardoError:
            # The targets that are left cannot express the request: what the caller can act on is why the others failed.
            return None


def _target_key(target: Target) -> tuple[str, str]:
    return target.provider.place, target.model
