"""The way of a call to the first piece of its reply: who is asked, within which limits, through which layers, and by which attempts."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.adapters.long_work import run_by_size, size_of
from bardo.call.attempts import AttemptLoop, hedge_attempts
from bardo.call.client_login import CLIENT, ClientLogin, with_logins
from bardo.call.reply import LiveReply
from bardo.call.row import without_key_as_model
from bardo.call.second_calls import escalations_of, open_cascade, verify, with_cascade
from bardo.call.services import Services
from bardo.call.stored import StalePlace
from bardo.context.cache.entries import identity_of
from bardo.context.layer import EffectFailed, KeptReply
from bardo.dialects.shared.history_repair import without_repeated_results
from bardo.planning.exchange import CallPlan
from bardo.planning.knowledge import BUILTIN
from bardo.planning.model_names import with_alias_fields, with_display, with_effort
from bardo.planning.planner import plan
from bardo.planning.refusals import moves_on
from bardo.planning.route import Target
from bardo.planning.typed_answer import AnswerValidator
from bardo.planning.workloads import Judge, judge_of, with_verification
from bardo.reasoning.replay import NOTHING
from bardo.routing.cascade import EscalatedCall
from bardo.services.facts.directory import Placement
from bardo.services.facts.server_choice import has_servers
from bardo.values.errors import BardoError, InvalidRequest
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
    """Who is asked whether the answer is right; None where nobody is."""
    judges: bool = False
    """Whether this is the call by which a judge is asked: it is no further request of the client."""
    local: LocalAnswer | None = None
    """The answer of an agent's tick that needs no model; None where one is asked."""
    refused: BardoError | None = None
    """Why nothing is sent; None where the call may go on."""
    login: ClientLogin | None = None
    """The client's own credential, for providers that ask for one."""

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
    directory, options = services.directory, request.options
    workload = directory.workloads.of_call(options.intent, directory.found(request.model).model)
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
        known = call.account is not None
        request = without_key_as_model(request, call.client_key, is_known=known, login=call.login)
    rules = services.client_keys.rules(call.client_key)
    found = services.directory.found(request.model)
    if rules or found.steps:
        request = with_display(request, found, rules)
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
        # What answers next in a cascade is not what the client asked.
        login=None if earlier else call.login,
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
        found = await services.directory.found_as_listed(request.model)
        if rules or found.steps or found.suffix is not None or found.thinks:
            request = with_alias_fields(with_effort(request, found, rules), found)
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
    admit = _admission(services, live, call, first=not earlier)
    if call.local is not None:
        # A tick that needs no model.
        local = call.local
        if admit is not None:
            await admit(local.request, Placement(targets=(local.target,)), free=True)
        attempt = plan(local.request, local.target, may_forward=False)
        await live.begin_kept(msgspec.structs.replace(attempt, route=local.route), BUILTIN, local.reply)
        return

    pipeline, session, may_forward = None if call.judges else services.pipeline, "", call.may_forward
    layers = (
        None if pipeline is None else await pipeline.of_call(request, tenant=call.tenant, client_key=call.client_key)
    )
    warms = layers is not None and layers.plan.has("affinity")
    if pipeline is not None and layers is not None:
        live.call.use_layers(layers)
        request = await pipeline.before_route(layers, request, partial(_answer_with_kept, services, live, call, admit))
        if layers.answer is not None:
            return
        session = layers.session if warms else ""

    discounts = None if pipeline is None or not session else partial(pipeline.discounts, session)
    needs = None if layers is None else layers.needs
    request, placed = await services.routing.find(request, live.request_id, found=needs, discounts=discounts)
    if CLIENT in [one.provider.row.auth for one in placed.targets]:
        placed, logins = with_logins(placed, live.call.login, services.directory.providers, request.dialect)
        live.call.use_logins(logins)
    if admit is not None:
        placed = await admit(request, placed)
    if has_servers(placed.targets):
        placed = await services.routing.servers.at_servers(placed, request, call.tenant, every=warms)
    if placed.skipped:
        request = msgspec.structs.replace(request, degraded=(*request.degraded, *placed.skipped))
    size = size_of(request)
    request = await run_by_size(size, partial(services.prompts.note, request, call.tenant))

    targets = placed.targets
    if pipeline is not None and layers is not None:
        request, targets = await pipeline.after_route(layers, request, targets)
        may_forward = may_forward and not layers.changes_reply

    request = await run_by_size(size, partial(without_repeated_results, request))
    replay, stale = services.replay, services.failover.stale
    call_plan = CallPlan(
        request=request,
        targets=targets,
        recalled=NOTHING if replay is None else await replay.recall(live.request, call.tenant, request),
        knowledge=services.facts.knowledge(targets, call.tenant, request),
        may_forward=may_forward,
        route=with_cascade(placed.route, earlier) if earlier else placed.route,
    )
    hedges = services.failover.settings.hedge and len(targets) > 1
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
            services.failover.deadline(request.options.deadline_seconds),
            partial(hedge_attempts, call_plan.attempts, request, targets) if hedges else None,
        ).run()
    except BardoError as problem:
        # Where the operator allows it, an old reply to an equal request is better than none, unless the error is the caller's own.
        kept = None if place is None else place.find(request.options.allow_stale)
        if kept is None or not moves_on(problem):
            raise
        await live.begin_stale(kept, problem)
        return
    if replay is not None:
        replay.note_answered(answered.attempt, call.tenant)
    if services.server_facts is not None:
        services.server_facts.note_answer(answered.attempt.target)
    # A stream may take many minutes from here on.
    answered.drop_sent_body()


class _Admit(Protocol):
    """Asks whether a call is within the limits of its key, and returns who may be asked."""

    def __call__(self, request: Request, placed: Placement, *, free: bool = False) -> Awaitable[Placement]: ...


def _admission(services: Services, live: LiveReply, call: CallOptions, *, first: bool) -> _Admit | None:
    """Return what asks whether the call of a key is within its limits; None for a call without a key."""
    gate, account = services.gate, call.account
    if gate is None or account is None:
        return None

    async def admit(request: Request, placed: Placement, *, free: bool = False) -> Placement:
        requests, slots = 1 if first and not call.judges else 0, 0 if call.judges else 1
        placed = await gate.admit(
            account,
            request,
            placed,
            live.request_id,
            requests=requests,
            slots=slots,
            session=live.call.labels.session,
            free=free,
        )
        if request.stream:
            gate.accounts.watch(live.request_id, live)
        return placed

    return admit


async def _answer_with_kept(
    services: Services, live: LiveReply, call: CallOptions, admit: _Admit | None, kept: KeptReply, request: Request
) -> None:
    """Answer with a reply that was kept, where the caller's key may ask for it.

    Raises EffectFailed for a reply that cannot be read any more, or whose provider is not configured any more, and Forbidden, RateLimited
    and OverBudget.
    """
    providers = [one for one in services.directory.providers if one.id == kept.provider]
    endpoints = [at for one in providers for at in one.endpoints if at.row.dialect == kept.dialect]
    if not endpoints:
        raise EffectFailed("the provider of a kept reply is not configured")
    target = Target(provider=endpoints[0], model=kept.model)
    if admit is not None:
        await admit(request, Placement(targets=(target,)), free=True)
    knowledge = services.facts.knowledge((target,), call.tenant)
    try:
        attempt = plan(request, target, knowledge=knowledge, may_forward=False)
        await live.begin_kept(attempt, knowledge, kept)
    except BardoError as problem:
        raise EffectFailed("a kept reply cannot be read") from problem
