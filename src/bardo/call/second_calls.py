"""Calls that a call makes: of a better model where an answer is not good enough, and of a model that is asked whether it agrees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from bardo.call.reply import LiveReply
from bardo.planning.route import RouteRecord, Target
from bardo.planning.workloads import MOST_SECONDS, Judge, Verification, is_same, judging_request, read_verdict
from bardo.routing.cascade import WORDS, EscalatedCall, Verdict, judge
from bardo.routing.workloads import PREFIX, Workload
from bardo.services.facts.directory import Placement
from bardo.structured import UnusableAnswer
from bardo.values.agent import AgentStep
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, ProviderError
from bardo.values.request import BardoOptions, Intent, Request, StructuredOptions
from bardo.values.response import Response
from bardo.values.usage import usd

if TYPE_CHECKING:
    from bardo.call.reply import LiveReply

HELD_STREAM = Degradation(
    "stream",
    sent="held until the answer is judged",
    why="the workload asks a better model where the answer is not good enough",
)


class OpenCall(Protocol):
    """Opens one call. `judged`: its whole text is kept, because it will be judged."""

    async def __call__(self, request: Request, *, earlier: tuple[EscalatedCall, ...], judged: bool) -> LiveReply: ...


def escalations_of(options: BardoOptions, workload: Workload | None) -> tuple[str, ...]:
    """Return the models that are asked after the first one where an answer is not good enough; none where the caller names the model."""
    if workload is None or (options.intent is not None and options.intent.model is not None):
        return ()
    if options.agent_step is not None and options.agent_step.record.get("escalates") is False:
        return ()
    return workload.escalate


class AnswerJudge(Protocol):
    """Takes whether the answer of a call is good enough."""

    def judge(self, request_id: str, *, good: bool) -> None: ...


async def open_cascade(
    open_call: OpenCall, request: Request, models: tuple[str, ...], learner: AnswerJudge
) -> LiveReply:
    """Return the first reply whose answer is good enough, or that of the last model. Raises BardoError as a single call does.

    `learner` takes the verdict on each answer that was held.
    """
    earlier: tuple[EscalatedCall, ...] = ()
    for model in (None, *models[:-1]):
        asked = _judged(_step(request, model, earlier))
        try:
            live = await open_call(asked, earlier=earlier, judged=True)
        except ProviderError as failure:
            earlier = (*earlier, _failed(failure, model or request.model))
            continue
        try:
            verdict = _verdict(live, await live.hold())
        except BaseException:
            await live.close()
            raise
        live.call.judge(escalated=verdict is not None)
        learner.judge(live.request_id, good=verdict is None)
        if verdict is None:
            return live
        await live.close()
        earlier = (*earlier, _escalated(live, verdict))
    return await open_call(_step(request, models[-1], earlier), earlier=earlier, judged=False)


def with_cascade(record: RouteRecord | None, earlier: tuple[EscalatedCall, ...]) -> RouteRecord | None:
    """Return the record of a route with the `earlier` calls whose answers were not good enough, and what they cost together."""
    if record is None:
        return None
    costs = [one.cost_nanos for one in earlier if one.cost_nanos is not None]
    spent = usd(sum(costs)) if len(costs) == len(earlier) else None
    cascade = {"calls": msgspec.to_builtins(earlier), "cost_usd": spent}
    return msgspec.structs.replace(record, fields={**record.fields, "cascade": cascade})


def _step(request: Request, model: str | None, earlier: tuple[EscalatedCall, ...]) -> Request:
    """Return the request for one model of the cascade; None is the workload's own."""
    if model is None:
        return request
    last = earlier[-1]
    why = f"{last.provider}/{last.model}: {WORDS[last.verdict]}"
    lost = Degradation("escalated", asked=f"{last.provider}/{last.model}", sent=model, why=why)
    options = request.options
    if model.startswith(PREFIX):
        # The step by which another workload answers: all that it is goes before what the workload of the model's name is.
        workload = model.removeprefix(PREFIX)
        before = options.agent_step
        record = {} if before is None else {**before.record, "escalated_from": before.record.get("tier")}
        tier = workload.rpartition("_")[2].upper() if "tier" in record else ""
        step = AgentStep(workload=workload, record={**record, "tier": tier, "why": why} if tier else {})
        options = msgspec.structs.replace(options, agent_step=step)
        return msgspec.structs.replace(request, options=options, degraded=(*request.degraded, lost))
    intent = msgspec.structs.replace(options.intent or Intent(), model=model)
    fields = tuple(dict.fromkeys((*options.intent_fields, "model")))
    options = msgspec.structs.replace(options, intent=intent, intent_fields=fields)
    return msgspec.structs.replace(request, options=options, degraded=(*request.degraded, lost))


def _judged(request: Request) -> Request:
    """Return the request of a call whose answer is judged: a schema that it does not fit leads to the next model at once."""
    structured = msgspec.structs.replace(request.options.structured or StructuredOptions(), retries=0)
    options = msgspec.structs.replace(request.options, structured=structured)
    held = (HELD_STREAM,) if request.stream else ()
    return msgspec.structs.replace(request, options=options, degraded=(*request.degraded, *held))


def _verdict(live: LiveReply, problem: BardoError | None) -> Verdict | None:
    """Return why an answer is not good enough. Raises the problem of a call that another model cannot mend."""
    provenance = None if live.answer is None else live.answer.provenance
    if isinstance(problem, UnusableAnswer):
        return "fails_schema"
    if isinstance(problem, ProviderError):
        return "failed"
    if problem is not None:
        raise problem
    return judge(live.response(), fits_schema=provenance is None or provenance.error is None)


def _escalated(live: LiveReply, verdict: Verdict) -> EscalatedCall:
    usage, attempt, cost = live.response().usage, live.attempt, live.cost
    return EscalatedCall(
        request_id=live.request_id,
        provider=attempt.target.provider.id,
        model=attempt.target.model,
        verdict=verdict,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=None if cost.nanos is None else usd(cost.nanos),
        cost_nanos=cost.nanos,
    )


def _failed(failure: ProviderError, model: str) -> EscalatedCall:
    nanos = failure.cost_nanos
    return EscalatedCall(
        request_id=failure.request_id,
        provider=failure.provider,
        model=model,
        verdict="failed",
        cost_usd=None if nanos is None else usd(nanos),
        cost_nanos=nanos,
    )


_SAME = "the model that answered is not asked to judge itself"
_MOST_MESSAGE = 500


async def verify(
    judge: Judge,
    open_call: Callable[[Request], Awaitable[LiveReply]],
    find: Callable[[Request], Awaitable[tuple[Request, Placement]]],
    request: Request,
    response: Response,
    *,
    answered: Target,
    age: float,
) -> Verification:
    """Return what `judge` says of an answer that `answered` gave, `age` seconds after the call began. Raises nothing.

    `open_call` opens the call that asks the judge, and `find` returns who may be asked.
    """

    def none(why: str, request_id: str = "", nanos: int | None = None) -> Verification:
        return Verification(model=judge.model, agrees=None, why=why, request_id=request_id or None, nanos=nanos)

    if request.choices > 1:
        return none("of several answers none is judged")
    # Of a stream only the beginning has a deadline.
    deadline = None if request.stream else request.options.deadline_seconds
    seconds = MOST_SECONDS if deadline is None else min(MOST_SECONDS, deadline - age)
    if seconds <= 0:
        return none("the call's deadline has passed")
    asked = judging_request(judge, request, response)
    try:
        async with asyncio.timeout(seconds):
            _, placement = await find(asked)
            if placement.targets and is_same(placement.targets[0], answered):
                return none(_SAME)
            live = await read_call(open_call, asked)
        if is_same(live.attempt.target, answered):
            return none(_SAME, live.request_id, live.cost.nanos)
        verdict = read_verdict(live.response())
    except BardoError as problem:
        why = f"{type(problem).__name__}: {problem.message}"[:_MOST_MESSAGE]
        return none(why, problem.request_id, problem.cost_nanos)
    except TimeoutError:
        return none(f"there was no verdict within {seconds:.3g} s")
    except Exception as mistake:  # noqa: BLE001 - an answer that is complete is not lost by what is asked about it
        return none(f"a mistake in bardo: {type(mistake).__name__}")
    if verdict is None:
        return none("what it answered is no verdict", live.request_id, live.cost.nanos)
    return Verification(
        model=judge.model, agrees=verdict.agrees, why=verdict.why, request_id=live.request_id, nanos=live.cost.nanos
    )


async def read_call(open_call: Callable[[Request], Awaitable[LiveReply]], asked: Request) -> LiveReply:
    """Return the reply to a call of bardo's own once it was read to its end. Raises BardoError, which names the call and what it cost."""
    live = await open_call(asked)
    try:
        await live.read()
    except BardoError as problem:
        problem.request_id, problem.cost_nanos = live.request_id, live.cost.nanos
        raise
    except asyncio.CancelledError as cancelled:
        live.log_cancelled(cancelled)
        raise
    finally:
        await live.close()
    return live
