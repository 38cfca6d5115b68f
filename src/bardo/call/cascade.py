"""Ask a cheap model first, and a better one where its answer is not good enough: the calls of a workload with `escalate`.

Each answer but the last model's is held until it is judged, streams too. Every call is in the log by its own id.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from bardo.call.live_reply import LiveReply
from bardo.planning.route import RouteRecord
from bardo.routing.cascade import WORDS, EscalatedCall, Verdict, judge
from bardo.routing.workloads import PREFIX, Workload
from bardo.structured import UnusableAnswer
from bardo.values.agent import AgentStep
from bardo.values.cost import usd
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, ProviderError
from bardo.values.intent import Intent
from bardo.values.request import BardoOptions, Request, StructuredOptions

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
        live.recorder.judge(escalated=verdict is not None)
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
        step = _agent_step(options, model.removeprefix(PREFIX), why)
        options = msgspec.structs.replace(options, agent_step=step)
        return msgspec.structs.replace(request, options=options, degraded=(*request.degraded, lost))
    intent = msgspec.structs.replace(options.intent or Intent(), model=model)
    fields = tuple(dict.fromkeys((*options.intent_fields, "model")))
    options = msgspec.structs.replace(options, intent=intent, intent_fields=fields)
    return msgspec.structs.replace(request, options=options, degraded=(*request.degraded, lost))


def _agent_step(options: BardoOptions, workload: str, why: str) -> AgentStep:
    """Return the step by which another workload answers: all that it is goes before what the workload of the model's name is."""
    before = options.agent_step
    record = {} if before is None else {**before.record, "escalated_from": before.record.get("tier")}
    tier = workload.rpartition("_")[2].upper() if "tier" in record else ""
    return AgentStep(workload=workload, record={**record, "tier": tier, "why": why} if tier else {})


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
