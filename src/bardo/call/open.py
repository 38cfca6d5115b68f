"""The way of a call to the first piece of its reply: who is asked, within which limits, through which layers, and by which attempts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.adapters.long_work import run_by_size, size_of
from bardo.call.client_login import CLIENT, ClientLogin, with_logins
from bardo.call.reply import LiveReply
from bardo.call.row import without_key_as_model
from bardo.call.second_calls import escalations_of, open_cascade, verify, with_cascade
from bardo.call.services import Services
from bardo.call.stored import StalePlace
from bardo.call.upstream import UpstreamReply
from bardo.context.cache.entries import identity_of
from bardo.context.layer import EffectFailed, KeptReply
from bardo.dialects.shared.history_repair import without_repeated_results
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import CallPlan, Exchange, is_about_form
from bardo.planning.knowledge import BUILTIN
from bardo.planning.model_names import with_alias_fields, with_display, with_effort
from bardo.planning.planner import plan
from bardo.planning.refusals import FailedAttempt, error_to_tell, moves_on, pause_before_retry
from bardo.planning.route import Target, target_names
from bardo.planning.typed_answer import AnswerValidator
from bardo.planning.workloads import Judge, judge_of, with_verification
from bardo.reasoning.replay import NOTHING, has_history
from bardo.routing.cascade import EscalatedCall
from bardo.routing.health import Latency
from bardo.services.facts.directory import Placement
from bardo.values.attempts import AttemptCause
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InvalidRequest, RequiredFieldRefused, UpstreamTimeout
from bardo.values.request import Request, SearchLimit, with_search_limit

if TYPE_CHECKING:
    from bardo.services.accounts.agent_calls import LocalAnswer


class CallOptions(NamedTuple):
    """How a caller wants a call made, as `open_call` takes it."""

    may_forward: bool
    tenant: str
    validator: AnswerValidator | None
    client_key: str
    most_text: int | None
    account: Account | None = None
    judge: Judge | None = None
    """Who is asked whether the answer is right, or None if nobody is."""
    judges: bool = False
    """Whether this is the call by which a judge is asked: it is no further request of the client."""
    local: LocalAnswer | None = None
    """The answer of an agent's tick that needs no model, or None if one is asked."""
    refused: BardoError | None = None
    """Why nothing is sent, or None if the call may go on."""
    login: ClientLogin | None = None
    """The client's own credential, for providers that ask for one."""
    is_first: bool = True
    """Whether no call of the same cascade was made before: else it is no further request of the client either."""

    def of_judge(self) -> CallOptions:
        """Return how the judge is asked: by a call of the same client, without its login."""
        return self._replace(validator=None, most_text=None, may_forward=False, judge=None, judges=True, login=None)


async def open_call(
    services: Services,
    request: Request,
    *,
    may_forward: bool = True,
    tenant: str = "",
    validator: AnswerValidator | None = None,
    client_key: str = "",
    most_text: int | None = None,
    account: Account | None = None,
    login: ClientLogin | None = None,
) -> LiveReply:
    """Send a request until a provider takes it, and return its reply with the first piece read.

    `may_forward`: the client takes a provider's frames as they come, where nothing has to be changed. `tenant` is whose earlier
    reasoning may be recalled, `client_key` what it came with, `account` whose key that is; `most_text` how many characters of a
    stream are held for the log and for replay.
    `login` is the client's own credential for a provider that asks for one. Raises BardoError where nobody takes it; the call is in the log
    then too.
    """
    call = CallOptions(may_forward, tenant, validator, client_key, most_text, account, login=login)
    if services.limits.search_usd_per_day is not None:
        request = with_daily_search_limit(services, request, account, tenant)
    try:
        if services.agent is not None:
            request, local = await services.agent.prepare(request, account, tenant)
            call = call._replace(local=local)
        elif request.options.tick is not None:
            # The caller counts on something that is not there.
            message = "the request says a tick, and no agent is configured here"
            hint = "leave it out, or set enabled = true under [golem] in bardo.toml"
            raise InvalidRequest(message, hint=hint, param="bardo.tick")
    except BardoError as problem:
        call = call._replace(refused=problem)
    if call.local is not None or call.refused is not None:
        return await _open_one(services, call, request)
    options, workload = request.options, services.directory.meaning_of(request.model).workload
    if options.intent is not None and options.intent.subsystem:
        workload = services.directory.workloads.get(options.intent.subsystem)
    if workload is None and options.verify is None:
        return await _open_one(services, call, request)
    judge = judge_of(options, workload)
    if judge is not None:
        call, request = call._replace(judge=judge), with_verification(request)
    escalate = escalations_of(options, workload)
    if escalate:
        return await open_cascade(partial(_open_one, services, call), request, escalate, services.routing)
    return await _open_one(services, call, request)


def with_daily_search_limit(services: Services, request: Request, account: Account | None, tenant: str) -> Request:
    """Return a request with what the searches of its key, or of all calls without one, may cost in a day."""
    most = services.limits.search_usd_per_day
    if most is None:
        return request
    whose = tenant if account is None else account.id
    key = f"day {int(services.clock() // 86_400)} of {whose}"
    return with_search_limit(request, SearchLimit(setting="[budgets] search_usd_per_day", key=key, usd=most))


async def _open_one(
    services: Services,
    call: CallOptions,
    request: Request,
    *,
    earlier: tuple[EscalatedCall, ...] = (),
    judged: bool = False,
) -> LiveReply:
    """Make one call, and end it in the log where its reply does not begin.

    `earlier` are calls of the same cascade; one that is `judged` keeps its text.
    """
    if call.client_key or call.login is not None:
        has_key = call.account is not None
        request = without_key_as_model(request, call.client_key, is_known=has_key, login=call.login)
    if earlier:
        # What answers next in a cascade is not what the client asked.
        call = call._replace(is_first=False)
    rules = services.client_keys.rules(call.client_key) if call.client_key else ()
    meaning = services.directory.meaning_of(request.model)
    if rules or meaning.steps:
        request = with_display(request, meaning, rules)
    live = LiveReply(
        services,
        request,
        tenant=call.tenant,
        validator=call.validator,
        client_key=call.client_key,
        most_text=None if judged else call.most_text,
        account=call.account,
        verify=None
        if call.judge is None
        else partial(verify, call.judge, partial(_open_one, services, call.of_judge()), services.routing.find),
        awaits_verdict=judged,
        login=call.login if call.is_first else None,
    )
    if judged:
        services.routing.await_verdict(live.request_id)
    try:
        if services.telemetry is not None:
            request = services.telemetry.begin(live.request_id, request)
        if services.provider_ids is not None:
            await services.provider_ids.check(request, call.tenant)
        if call.refused is not None:
            raise call.refused
        if meaning.by_lists:
            meaning = await services.directory.listed_meaning_of(request.model)
        if rules or meaning.steps or meaning.suffix is not None or meaning.thinks:
            request = with_alias_fields(with_effort(request, meaning, rules), meaning)
        await _begin(services, live, request, call, earlier)
    except BardoError as problem:
        final = await live.end_unanswered(problem)
        raise final from final.__cause__
    except BaseException as problem:
        await live.end_broken(problem)
        raise
    return live


async def _begin(
    services: Services, live: LiveReply, request: Request, call: CallOptions, earlier: tuple[EscalatedCall, ...]
) -> None:
    """Find who is asked, admit the caller, run the layers, recall earlier thinking, plan, and attempt until a reply has begun."""
    if call.local is not None:
        # A tick that needs no model.
        local = call.local
        await _admit(services, live, call, local.request, Placement(targets=(local.target,)), free=True)
        attempt = plan(local.request, local.target, may_forward=False)
        await live.begin_kept(msgspec.structs.replace(attempt, route=local.route), BUILTIN, local.reply)
        return

    pipeline, session, may_forward = None if call.judges else services.pipeline, "", call.may_forward
    layers, options = None, request.options
    if pipeline is not None and (pipeline.is_named or options.pipeline is not None or options.layers):
        layers = await pipeline.of_call(request, tenant=call.tenant, client_key=call.client_key)
    warms = layers is not None and layers.plan.has("affinity")
    if pipeline is not None and layers is not None:
        live.call.use_layers(layers)
        request = await pipeline.before_route(layers, request, partial(_answer_with_kept, services, live, call))
        if layers.answer is not None:
            return
        session = layers.session if warms else ""

    discounts = None if pipeline is None or not session else partial(pipeline.discounts, session)
    needs = None if layers is None else layers.needs
    request, placement = await services.routing.find(request, live.request_id, found=needs, discounts=discounts)
    for target in placement.targets:
        if target.provider.row.auth == CLIENT:
            placement, logins = with_logins(placement, live.call.login, services.directory.providers, request.dialect)
            live.call.use_logins(logins)
            break
    placement = await _admit(services, live, call, request, placement, free=False)
    if placement.has_servers:
        placement = await services.routing.servers.at_servers(placement, request, call.tenant, every=warms)
    if placement.skipped:
        request = msgspec.structs.replace(request, degraded=(*request.degraded, *placement.skipped))
    size = size_of(request)
    if request.messages and request.messages[0].role == "system":
        request = await run_by_size(size, partial(services.prompts.note, request, call.tenant))

    targets = placement.targets
    if pipeline is not None and layers is not None:
        request, targets = await pipeline.after_route(layers, request, targets)
        may_forward = may_forward and not layers.changes_reply

    request = await run_by_size(size, partial(without_repeated_results, request))
    replay, stale, recalled = services.replay, services.failover.stale, NOTHING
    if replay is not None and has_history(live.request):
        recalled = await replay.recall(live.request, call.tenant, request)
    call_plan = CallPlan(
        request=request,
        targets=targets,
        recalled=recalled,
        knowledge=services.facts.knowledge(targets, call.tenant, request),
        may_forward=may_forward,
        route=with_cascade(placement.route, earlier) if earlier else placement.route,
    )
    failover, deadline = services.failover.settings, request.options.deadline_seconds
    if deadline is not None or failover.deadline_seconds:
        deadline = services.failover.deadline(deadline)
    hedges = failover.hedge and len(targets) > 1
    place: StalePlace | None = None
    if stale is not None and not live.request.options.private:
        with suppress(ValueError):
            place = StalePlace(stale, identity_of(live.request, call.tenant, live.request.dialect), services.clock)
            live.keep_at(place)
    try:
        answered = await AttemptLoop(
            services,
            live,
            call_plan,
            size,
            deadline,
            partial(hedge_attempts, call_plan.attempts, request, targets) if hedges else None,
        ).run()
    except BardoError as problem:
        # Where the operator allows it, an old reply to an equal request is better than none, unless the error is the caller's own.
        stale_reply = None if place is None else place.find(request.options.allow_stale)
        if stale_reply is None or not moves_on(problem):
            raise
        await live.begin_stale(stale_reply, problem)
        return
    if replay is not None and answered.attempt.left_out:
        replay.note_answered(answered.attempt, call.tenant)
    if services.server_facts is not None:
        services.server_facts.note_answer(answered.attempt.target)
    # A stream may take many minutes from here on.
    answered.drop_sent_body()


async def _admit(
    services: Services, live: LiveReply, call: CallOptions, request: Request, placement: Placement, *, free: bool
) -> Placement:
    """Return who may be asked, once the call of a key is within its limits. Raises Forbidden, RateLimited and OverBudget."""
    gate, account = services.gate, call.account
    if gate is None or account is None:
        return placement
    placement = await gate.admit(
        account,
        request,
        placement,
        live.request_id,
        requests=1 if call.is_first and not call.judges else 0,
        slots=0 if call.judges else 1,
        session=live.call.labels.session,
        free=free,
    )
    if request.stream:
        gate.accounts.watch(live.request_id, live)
    return placement


async def _answer_with_kept(
    services: Services, live: LiveReply, call: CallOptions, reply: KeptReply, request: Request
) -> None:
    """Answer with a reply that was kept, where the caller's key may ask for it.

    Raises EffectFailed for a reply that cannot be read any more, or whose provider is not configured any more, and Forbidden, RateLimited
    and OverBudget.
    """
    providers = [provider for provider in services.directory.providers if provider.id == reply.provider]
    endpoints = [at for provider in providers for at in provider.endpoints if at.row.dialect == reply.dialect]
    if not endpoints:
        raise EffectFailed("the provider of a kept reply is not configured")
    target = Target(provider=endpoints[0], model=reply.model)
    await _admit(services, live, call, request, Placement(targets=(target,)), free=True)
    knowledge = services.facts.knowledge((target,), call.tenant)
    try:
        attempt = plan(request, target, knowledge=knowledge, may_forward=False)
        await live.begin_kept(attempt, knowledge, reply)
    except BardoError as problem:
        raise EffectFailed("a kept reply cannot be read") from problem


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
    """Return after how many seconds a target is slower than in 95 of 100 of its calls, or None if too few were made to say."""
    p95 = latency.first_token_p95_ms if stream else latency.p95_ms
    return None if p95 is None else p95 / 1000


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
    `hedge` returns an exchange at the targets after the first, for a reason that it is given, or None if nothing is hedged.
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
                facts = self._services.facts
                if opened.attempt.teaches or facts.lessons.kept:
                    facts.note_answered(opened.attempt, self._live.call.tenant, self._plan.request)
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
        """Return the attempt that is made beside a slow one, or None if no other target can express the request."""
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
        """Return how long an attempt may take to begin, or None if nothing bounds it here."""
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
        is_next = any(_target_key(one) == _target_key(target) for one in later)
        following = next(later, None) if is_next else None
        return following is not None and following.provider.id == target.provider.id

    def _following(self, problem: BardoError) -> Attempt | None:
        """Return the next attempt after one that failed, or None if there is none, or no time for it."""
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
