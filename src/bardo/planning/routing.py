"""Whom a call that says what it needs is put to: the targets in order, what each lacks, and the record of the decision.

A call that only names a model does not come here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.catalog.routing_rows import CallSize, routing_rows
from bardo.planning.route import Provider, RouteRecord, Target
from bardo.planning.token_counting import estimate_request
from bardo.routing import reasons
from bardo.routing.candidates import NO_CONDITIONS, Candidate, Candidates, Conditions
from bardo.routing.decision import MOST_CHOICES, ConsideredCandidate, Decision, Strategy, decide, decision
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, Unavailable, Unsupported
from bardo.values.request import Intent, Request

if TYPE_CHECKING:
    from bardo.planning.learned_order import LearnedCall

_ROWS = routing_rows()
_PRIVATE = Conditions(private=True)
_MOST_NAMED = 5


class Routed(msgspec.Struct, frozen=True, kw_only=True):
    """The targets of a call in the order in which they are asked, how they were found, and the decision itself."""

    targets: tuple[Target, ...]
    record: RouteRecord
    decision: Decision


def route(
    request: Request,
    candidates: Candidates,
    providers: Mapping[str, Provider],
    *,
    strategy: Strategy = "order",
    most: int = MOST_CHOICES,
    learned: LearnedCall | None = None,
) -> Routed:
    """Return who is asked for a request's intent, `most` at most. `providers` holds the candidates' providers by their ids.

    `learned` is what the strategy of this name chooses by; without it that strategy is the order of the configuration.

    Raises Unsupported where nobody can do it even with its requirements relaxed, and Unavailable where those who could are down.
    """
    intent = request.options.intent
    assert intent is not None
    conditions = _PRIVATE if request.options.private else NO_CONDITIONS
    size, pending = size_of(request), None
    if learned is None:
        made = decide(candidates, intent, conditions, strategy=strategy, size=size, most=most)
    else:
        from bardo.planning.learned_order import learned_order

        found, pending = learned_order(request, candidates, intent, learned, size=size, conditions=conditions)
        made = decision(candidates, intent, found, conditions, strategy=strategy, size=size, most=most)
    if not made.choices:
        raise no_candidate(candidates, intent, made, conditions)
    chosen = [choice.candidate for choice in made.choices]
    fields = route_fields(made)
    if pending is not None:
        fields["learned"] = msgspec.to_builtins(pending)
    return Routed(
        targets=tuple([Target(provider=providers[one.provider], model=one.model) for one in chosen]),
        record=RouteRecord(
            fields=fields, degraded={(one.provider, one.model): degradations(one, intent) for one in chosen}
        ),
        decision=made,
    )


def size_of(request: Request) -> CallSize:
    """Return about how many tokens a call has: its text, and the usual answer where no shorter one is asked for."""
    usual = _ROWS.usual_call.output_tokens
    most = request.max_output_tokens
    return CallSize(input_tokens=estimate_request(request), output_tokens=usual if most is None else min(most, usual))


def degradations(one: Candidate, intent: Intent) -> tuple[Degradation, ...]:
    """Return what a call loses at a candidate: wanted features, latency beyond what was asked, and quality where it chose the model."""
    name = f"{one.provider}/{one.model}"
    lost = [
        Degradation(
            feature, asked="required" if feature in intent.require else "preferred", why=f"{name} does not have it"
        )
        for feature in one.lacking(intent)
    ]
    most = intent.max_latency_ms
    if most is not None and one.latency_ms is not None and one.latency_ms > most:
        lost.append(Degradation("max_latency_ms", asked=most, sent=one.latency_ms, why=f"{name} takes longer"))
    if intent.model is None and one.rating is not None and one.rating < _ROWS.quality[intent.quality]:
        sent = _ROWS.class_of(one.rating)
        lost.append(
            Degradation("quality", asked=intent.quality, sent=sent, why=f"{name} is the best that can do the rest")
        )
    return tuple(lost)


def no_candidate(candidates: Candidates, intent: Intent, decision: Decision, conditions: Conditions) -> BardoError:
    """Return the error of a call that nobody can take, with why each candidate cannot."""
    # What is required may be relaxed, so it is not why.
    bare = msgspec.structs.replace(intent, require=(), prefer=())
    refused = [
        f"{one.provider}/{one.model}: {', '.join(why)}" for one, why in candidates.refusals(bare, conditions).listed
    ]
    if not refused:
        what = f"the model {intent.model!r}" if intent.model else "a model"
        return Unsupported(
            f"no provider here has {what}",
            hint="configure a provider, or list its models in bardo.toml",
            param="bardo.intent",
        )
    more = f"; and {len(refused) - _MOST_NAMED} more" if len(refused) > _MOST_NAMED else ""
    message = f"nobody can take this call: {'; '.join(refused[:_MOST_NAMED])}{more}"
    if all(reasons.DOWN in line for line in refused):
        return Unavailable(message, hint="try again later")
    return Unsupported(message, hint="relax the intent, or configure a provider that can", param="bardo.intent")


def route_fields(decision: Decision) -> dict[str, Any]:
    """Return the record of a decision for a receipt, the log and the reply: who was considered in order, and who was refused."""
    first = decision.considered[0]
    return {
        "strategy": decision.strategy,
        "intent": msgspec.to_builtins(decision.intent),
        "provider": first.provider,
        "model": first.model,
        "relaxed": first.relaxed,
        "estimated_cost_usd": first.estimated_cost_usd,
        "degraded": list(first.degraded),
        "candidates": [_fields(one) for one in decision.considered],
        "refused": [
            {"provider": one.provider, "model": one.model, "reasons": list(one.reasons)} for one in decision.refused
        ],
        "more_refused": decision.more,
    }


def _fields(one: ConsideredCandidate) -> dict[str, Any]:
    return {
        "provider": one.provider,
        "model": one.model,
        "relaxed": one.relaxed,
        "reasons": list(one.reasons),
        "score": one.score,
        "estimated_cost_usd": one.estimated_cost_usd,
        "degraded": list(one.degraded),
        "unknown": list(one.unknown),
    }
