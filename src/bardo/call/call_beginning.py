"""How a call begins: its layers, who is asked, its limits, and one attempt after the other until a reply has begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bardo.adapters.long_work import run_by_size, size_of
from bardo.call.attempt_loop import AttemptLoop, LoopContext
from bardo.call.cascade import with_cascade
from bardo.call.hedging import hedge_attempts
from bardo.call.live_reply import LiveReply
from bardo.call.runner_parts import CallOptions, ServerFacts
from bardo.call.server_choice import has_servers
from bardo.call.stale_replies import StalePlace, StaleReplies
from bardo.context.cache.entries import identity_of
from bardo.context.layer import EffectFailed, KeptReply
from bardo.planning.exchange import CallPlan
from bardo.planning.failover import moves_on
from bardo.planning.knowledge import BUILTIN
from bardo.planning.planner import plan
from bardo.planning.repeated_results import without_repeated_results
from bardo.planning.route import RouteRecord, Target
from bardo.reasoning.replay import NOTHING
from bardo.routing.cascade import EscalatedCall
from bardo.services.facts.directory import Placement
from bardo.values.errors import BardoError
from bardo.values.request import Request

if TYPE_CHECKING:
    from bardo.adapters.config.accounts import Account
    from bardo.adapters.stores.replay_store import ReplayKeeper
    from bardo.call.server_choice import ServerChoice
    from bardo.services.accounts.agent_calls import LocalAnswer
    from bardo.services.accounts.call_gate import CallGate
    from bardo.services.facts.cache_health import PromptTracker
    from bardo.services.facts.directory import ProviderDirectory
    from bardo.services.pipeline.call_layers import CallLayers
    from bardo.services.pipeline.pipeline import Pipeline


class BeginningContext(LoopContext, Protocol):
    """What the beginning of a call needs of whoever runs it."""

    directory: ProviderDirectory
    pipeline: Pipeline | None
    gate: CallGate | None
    servers: ServerChoice
    server_facts: ServerFacts | None
    prompts: PromptTracker
    replay: ReplayKeeper | None

    async def placed(
        self, request: Request, request_id: str = "", *, found: Mapping[str, Any] = ..., session: str = ""
    ) -> tuple[Request, Placement]:
        """Return a request with all that it needs, and who is asked for it, best first. Raises BardoError."""
        ...


class Admission(Protocol):
    """Asks whether a call is within the limits of its key, and returns who may be asked."""

    async def __call__(self, request: Request, placed: Placement, *, free: bool = False) -> Placement: ...


async def begin_call(
    runner: BeginningContext,
    live: LiveReply,
    request: Request,
    call: CallOptions,
    *,
    earlier: tuple[EscalatedCall, ...],
) -> None:
    """Try one target after the other until a reply has begun. Raises BardoError where none does."""
    try:
        admit = None if runner.gate is None else _admission(runner.gate, live, call, first=not earlier)
        if call.local is not None:
            await _answer_without_model(live, call.local, admit)
            return
        pipeline = None if call.judges else runner.pipeline
        layers = None if pipeline is None else pipeline.of_call(request, tenant=call.tenant, client_key=call.client_key)
        if layers is not None and pipeline is not None:
            live.recorder.layers = layers
            request = await pipeline.before_route(layers, request, partial(_answer, runner, live, call, admit))
            if layers.answer is not None:
                return
        request, placed = await _place(runner, live, request, call, admit, layers)
        targets, may_forward = placed.targets, call.may_forward
        if layers is not None and pipeline is not None:
            request, targets = await pipeline.after_route(layers, request, targets)
            may_forward = may_forward and not layers.changes_reply
        route = with_cascade(placed.route, earlier) if earlier else placed.route
        await _attempt(runner, live, request, targets, call.tenant, may_forward=may_forward, route=route)
    except BaseException:
        if live.layers is not None:
            await live.layers.fail()
        raise


async def _place(
    runner: BeginningContext,
    live: LiveReply,
    request: Request,
    call: CallOptions,
    admit: Admission | None,
    layers: CallLayers | None,
) -> tuple[Request, Placement]:
    """Return the request with what is lost of it before it is planned, and who is asked, within the limits of the caller's key."""
    warms = layers is not None and layers.plan.has("affinity")
    session = layers.session if layers is not None and warms else ""
    needs = {} if layers is None else layers.needs
    request, placed = await runner.placed(request, live.request_id, found=needs, session=session)
    if admit is not None:
        placed = await admit(request, placed)
    if has_servers(placed.targets):
        placed = await runner.servers.at_servers(placed, request, call.tenant, every=warms)
    if placed.skipped:
        request = msgspec.structs.replace(request, degraded=(*request.degraded, *placed.skipped))
    return await run_by_size(size_of(request), partial(runner.prompts.note, request, call.tenant)), placed


async def _attempt(
    runner: BeginningContext,
    live: LiveReply,
    request: Request,
    targets: Sequence[Target],
    tenant: str,
    *,
    may_forward: bool,
    route: RouteRecord | None,
) -> None:
    """Try one target after the other, or give an old reply where the operator allows it. Raises BardoError where there is none."""
    request = await run_by_size(size_of(request), partial(without_repeated_results, request))
    recalled = NOTHING if runner.replay is None else await runner.replay.recall(live.request, tenant, request)
    knowledge = runner.facts.knowledge(targets, tenant, request)
    call_plan = CallPlan(
        request=request,
        targets=targets,
        knowledge=knowledge,
        recalled=recalled,
        may_forward=may_forward,
        route=route,
    )
    deadline, hedges = runner.failover.deadline(request.options.deadline_seconds), runner.failover.settings.hedge
    hedge = partial(hedge_attempts, call_plan.attempts, request, targets) if hedges and len(targets) > 1 else None
    if runner.failover.stale is not None:
        _prepare_stale(runner.failover.stale, runner, live, tenant)
    try:
        attempt = await AttemptLoop(runner, live, call_plan, deadline, hedge).run()
    except BardoError as problem:
        await _begin_stale(live, request, problem)
        return
    if runner.replay is not None:
        runner.replay.note_answered(attempt, tenant)
    if runner.server_facts is not None:
        runner.server_facts.note_answer(attempt.target)


async def _begin_stale(live: LiveReply, request: Request, problem: BardoError) -> None:
    """Begin the reply to an earlier, equal request. Raises `problem` if there is none, or if the error is the caller's own."""
    cached = None if live.stale_place is None else live.stale_place.find(request.options.allow_stale)
    if cached is None or not moves_on(problem):
        raise problem
    await live.begin_stale(cached, problem)


def _admission(gate: CallGate, live: LiveReply, call: CallOptions, *, first: bool) -> Admission | None:
    """Return what asks whether the call of a key is within its limits; None for a call without a key."""
    if call.account is None:
        return None
    requests, slots = 1 if first and not call.judges else 0, 0 if call.judges else 1
    return partial(_admit, gate, call.account, live, requests, slots)


async def _admit(
    gate: CallGate,
    account: Account,
    live: LiveReply,
    requests: int,
    slots: int,
    request: Request,
    placed: Placement,
    *,
    free: bool = False,
) -> Placement:
    placed = await gate.admit(account, request, placed, live.request_id, requests=requests, slots=slots, free=free)
    if request.stream:
        gate.accounts.watch(live.request_id, live)
    return placed


async def _answer(
    runner: BeginningContext,
    live: LiveReply,
    call: CallOptions,
    admit: Admission | None,
    cached: KeptReply,
    request: Request,
) -> None:
    """Answer with a reply that was kept, where the caller's key may ask for it.

    Raises EffectFailed for a reply that cannot be read any more, and Forbidden, RateLimited and OverBudget.
    """
    target = _target_of(runner, cached)
    if admit is not None:
        await admit(request, Placement(targets=(target,)), free=True)
    knowledge = runner.facts.knowledge((target,), call.tenant)
    try:
        attempt = plan(request, target, knowledge=knowledge, may_forward=False)
        await live.begin_kept(attempt, knowledge, cached)
    except BardoError as problem:
        raise EffectFailed("a kept reply cannot be read") from problem


async def _answer_without_model(live: LiveReply, local: LocalAnswer, admit: Admission | None) -> None:
    """Answer a tick that needs no model, where the caller's key may ask for it. Raises Forbidden and RateLimited."""
    if admit is not None:
        await admit(local.request, Placement(targets=(local.target,)), free=True)
    attempt = plan(local.request, local.target, may_forward=False)
    await live.begin_kept(msgspec.structs.replace(attempt, route=local.route), BUILTIN, local.reply)


def _target_of(runner: BeginningContext, cached: KeptReply) -> Target:
    """Return who gave a kept reply, at the endpoint of its dialect. Raises EffectFailed where the provider is configured no more."""
    for provider in runner.directory.providers:
        if provider.id == cached.provider:
            for at in provider.endpoints:
                if at.row.dialect == cached.dialect:
                    return Target(provider=at, model=cached.model)
    raise EffectFailed("the provider of a kept reply is not configured")


def _prepare_stale(replies: StaleReplies, runner: BeginningContext, live: LiveReply, tenant: str) -> None:
    """Have the reply kept among those for callers that allow an old one; nothing of a private call is kept."""
    request = live.request
    if not request.options.private:
        with suppress(ValueError):
            identity = identity_of(request, tenant, request.dialect)
            live.stale_place = StalePlace(replies, identity, runner.clock)
