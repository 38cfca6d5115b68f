"""The attempts of a call until one is answered: the same target once more, the next, or two at once where one is slow."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from bardo.adapters.long_work import run_by_size
from bardo.call.reply import LiveReply
from bardo.call.services import Services
from bardo.call.upstream import UpstreamReply
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import CallPlan, Exchange, is_about_form
from bardo.planning.refusals import FailedAttempt, error_to_tell, pause_before_retry
from bardo.planning.route import Target, target_names
from bardo.routing.health import Latency
from bardo.values.attempts import AttemptCause
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, RequiredFieldRefused, UpstreamTimeout
from bardo.values.request import Request

# Timers of event loops ring a little early, and nobody answers in less.
_LEAST_SECONDS = 0.02


class Recovery:
    """What one call has tried so far. `age` tells its seconds since it began, `deadline` how many it has."""

    __slots__ = ("_age", "_deadline", "_errors", "_retries", "_services")

    def __init__(self, services: Services, age: Callable[[], float], deadline: float | None) -> None:
        self._services = services
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
        failover = self._services.failover
        pause = pause_before_retry(
            FailedAttempt(error=problem, retries=self._retries, seconds=seconds, alone=alone),
            failover.policy,
            now=self._services.clock(),
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


Opener = Callable[[UpstreamReply], Coroutine[Any, Any, None]]
"""Sends an attempt and reads until its reply has begun. Raises BardoError."""


def hedge_after(latency: Latency, *, stream: bool) -> float | None:
    """Return after how many seconds a target is slower than in 95 of 100 of its calls; None where too few were made to say."""
    found = latency.first_token_p95_ms if stream else latency.p95_ms
    return None if found is None else found / 1000


class Race:
    """Attempts of one call that run at once. `run` returns the first whose reply begins; the others are noted as lost."""

    def __init__(self, open_reply: Opener) -> None:
        self._open = open_reply
        self._tasks: dict[asyncio.Task[None], UpstreamReply] = {}
        self.errors: list[BardoError] = []

    async def run(
        self, first: UpstreamReply, seconds: float, second: Callable[[], UpstreamReply | None]
    ) -> UpstreamReply:
        """Begin with `first`, and after so many seconds with `second` too, unless there is none.

        Raises the BardoError of the last attempt where each of them failed.
        """
        winner: UpstreamReply | None = None
        try:
            self._start(first)
            done, _ = await asyncio.wait(self._tasks, timeout=seconds)
            other = None if done else second()
            if other is not None:
                self._start(other)
            winner = await self._winner()
            return winner
        finally:
            try:
                await self._end()
            except asyncio.CancelledError:
                # The client has left while who lost hung up: nobody gets the winner any more.
                if winner is not None:
                    await winner.close()
                raise

    def _start(self, opened: UpstreamReply) -> None:
        self._tasks[asyncio.create_task(self._open(opened))] = opened

    async def _winner(self) -> UpstreamReply:
        while True:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in [one for one in self._tasks if one in done]:
                opened, failure = self._tasks.pop(task), task.exception()
                if failure is None:
                    return opened
                if not isinstance(failure, BardoError) or not self._tasks:
                    raise failure
                self.errors.append(failure)

    async def _end(self) -> None:
        """Let go of whoever lost."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for opened in self._tasks.values():
            opened.note_ended(lost=True)
            await opened.close()


def hedge_attempts(plan: Callable[..., Exchange], request: Request, targets: Sequence[Target], why: str) -> Exchange:
    """Return the attempts at the targets after the first, which is slow."""
    first, second, *_ = target_names(targets)
    lost = Degradation("provider", asked=first, sent=second, why=why)
    return plan(msgspec.structs.replace(request, degraded=(*request.degraded, lost)), targets[1:])


class _Allowed(NamedTuple):
    """How long an attempt may take to its first token, or to its beginning, and the error of one that takes longer."""

    seconds: float
    late: UpstreamTimeout
    to_token: bool = False


class AttemptLoop:
    """Makes the attempts of one call until one is answered. `deadline` is in seconds since the call began.

    `size` is by what size the work at its request is done.
    `hedge` returns an exchange at the targets after the first, for a reason that it is given; None where nothing is hedged.
    """

    __slots__ = (
        "_deadline",
        "_exchange",
        "_hedge",
        "_is_bounded",
        "_latest",
        "_live",
        "_made",
        "_plan",
        "_services",
        "_size",
    )

    def __init__(
        self,
        services: Services,
        live: LiveReply,
        plan: CallPlan,
        size: int,
        deadline: float | None = None,
        hedge: Callable[[str], Exchange] | None = None,
    ) -> None:
        self._hedge = hedge
        self._services = services
        self._live = live
        self._plan = plan
        self._size = size
        self._exchange = plan.attempts(plan.request, plan.targets)
        self._deadline = deadline
        self._is_bounded = deadline is not None or services.failover.bounds_tokens
        self._latest: UpstreamReply | None = None
        self._made: Recovery | None = None

    @property
    def _recovery(self) -> Recovery:
        """What the call has tried: made where it is needed, which it is not for most calls."""
        if self._made is None:
            self._made = Recovery(self._services, self._live.call.attempts.age, self._deadline)
        return self._made

    async def run(self) -> UpstreamReply:
        """Return the attempt that was answered, of which the reply has begun. Raises BardoError where none is."""
        attempt = await run_by_size(self._size, partial(next, self._exchange))
        cause: AttemptCause = "first"
        why = ""
        while True:
            opened = self._prepare(attempt, cause, why)
            try:
                if cause == "first" and self._hedge is not None:
                    opened = await self._race(opened)
                elif self._is_bounded:
                    await self._begin(opened)
                else:
                    await opened.begin()
            except BardoError as problem:
                # Where two were sent, it is the one that was sent last.
                attempt, cause = await self._next_attempt(self._latest or opened, problem)
                why = problem.message
            else:
                self._services.facts.note_answered(opened.attempt, self._live.call.tenant, self._plan.request)
                return opened

    def _prepare(self, attempt: Attempt, cause: AttemptCause, why: str) -> UpstreamReply:
        """Return an attempt that is about to be sent: it may cost money from now on."""
        self._services.facts.warnings.note(attempt, self._plan.knowledge)
        self._latest = self._live.prepare(attempt, self._plan.knowledge, cause=cause, why=why)
        return self._latest

    async def _race(self, first: UpstreamReply) -> UpstreamReply:
        """Send the first attempt, and one more where it is slower than its target usually is; return the one that begins first."""
        services, target = self._services, first.attempt.target
        budget = services.failover.budget
        budget.count()
        latency = services.health.latency(target.provider.place, target.model)
        seconds = hedge_after(latency, stream=self._live.request.stream)
        if seconds is None:
            await self._begin(first)
            return first
        race = Race(self._begin)
        try:
            winner = await race.run(first, seconds, lambda: self._second(target, seconds) if budget.spend() else None)
            self._live.take(winner)
            return winner
        finally:
            for error in race.errors:
                self._recovery.note(error)

    def _second(self, slow: Target, seconds: float) -> UpstreamReply | None:
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
        return self._prepare(attempt, "hedge", why)

    async def _begin(self, opened: UpstreamReply) -> None:
        """Send an attempt, and read until its reply has begun, within the time that it has. Raises BardoError."""
        allowed = self._allowed(opened.attempt) if self._is_bounded else None
        if allowed is None:
            await opened.begin()
            return
        try:
            async with asyncio.timeout(allowed.seconds) as patience:
                await opened.begin(patience if allowed.to_token else None)
        except TimeoutError:
            opened.note_ended(allowed.late)
            if allowed.to_token:
                # Where the call itself was out of time, the provider may not have been slow.
                services = self._services
                services.health.note_given_up(opened.attempt.target, allowed.late, services.watch())
            raise allowed.late from None

    def _allowed(self, attempt: Attempt) -> _Allowed | None:
        """Return how long an attempt may take to begin; None where nothing bounds it here."""
        provider, left = attempt.target.provider.id, self._recovery.time_left
        token = self._services.failover.first_token(provider) if self._live.request.stream else None
        if token is not None and token <= left:
            late = UpstreamTimeout(f"no first token came within {token:g} s", provider=provider)
            return _Allowed(token, late, to_token=True)
        return None if left == math.inf else _Allowed(max(0.0, left), self._recovery.out_of_time(provider))

    async def _next_attempt(self, failed: UpstreamReply, problem: BardoError) -> tuple[Attempt, AttemptCause]:
        """Return what is tried after an attempt that failed, and what it is, once it is time for it. Raises BardoError where nothing is."""
        attempt, recovery, sent = failed.attempt, self._recovery, failed.sent
        assert sent is not None
        seconds = sent.seconds or 0.0
        recovery.note(problem)
        if self._live.call.may_change_key(attempt.target, sent.key, problem):
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
        except RequiredFieldRefused as refused:
            self._recovery.note(refused)
            return None
        except BardoError:
            # The targets that are left cannot express the request: what the caller can act on is why the others failed.
            return None


def _target_key(target: Target) -> tuple[str, str]:
    return target.provider.place, target.model
