"""The routing decision of a call: the target, the candidates in order, and why others were refused."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Literal

import msgspec

from bardo.catalog.routing_rows import CallSize
from bardo.routing.candidates import NO_CONDITIONS, USUAL_CALL, Candidates, Conditions
from bardo.routing.resolver import Choice, choices
from bardo.routing.scorer import RoutingContext, choices_by_score, context_of, score
from bardo.values.request import Intent

Strategy = Literal["order", "score", "learned"]
MOST_CHOICES = 8
"""How many may be asked for one call, one after the other."""


class ConsideredCandidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate. `reasons` (`reasons.py`) are the requirements that it does not meet; `relaxed`: it may be asked all the same.

    `estimated_cost_usd` is None if no price is known, `degraded` what was wanted that it does not have, and `unknown` the terms of its
    `score` of which nothing is known.
    """

    provider: str
    model: str
    reasons: tuple[str, ...] = ()
    relaxed: bool = False
    score: float | None = None
    estimated_cost_usd: float | None = None
    degraded: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be asked, in order (`choices`, and the same candidates as `considered`), and who may not: `refused`.

    `more` candidates were refused and are not listed.
    """

    intent: Intent
    strategy: Strategy
    choices: tuple[Choice, ...]
    considered: tuple[ConsideredCandidate, ...] = ()
    refused: tuple[ConsideredCandidate, ...] = ()
    more: int = 0


def decide(
    candidates: Candidates,
    intent: Intent,
    conditions: Conditions = NO_CONDITIONS,
    *,
    strategy: Strategy = "order",
    size: CallSize = USUAL_CALL,
    most: int = MOST_CHOICES,
) -> Decision:
    """Return who is asked for an intent, first to last, by the order of the configuration or by their scores."""
    by_score = strategy == "score"
    ordered = choices_by_score(candidates, intent, conditions) if by_score else choices(candidates, intent, conditions)
    return decision(candidates, intent, ordered, conditions, strategy=strategy, size=size, most=most)


def decision(
    candidates: Candidates,
    intent: Intent,
    found: Iterable[Choice],
    conditions: Conditions = NO_CONDITIONS,
    *,
    strategy: Strategy,
    size: CallSize = USUAL_CALL,
    most: int = MOST_CHOICES,
) -> Decision:
    """Return what was decided where the choices are `found`, in this order."""
    chosen = tuple(islice(found, most))
    context = context_of(intent)
    refusals = candidates.refusals(intent, conditions)
    names = {(choice.candidate.provider, choice.candidate.model) for choice in chosen}
    return Decision(
        intent=intent,
        strategy=strategy,
        choices=chosen,
        considered=tuple([_considered(choice, intent, conditions, context, size) for choice in chosen]),
        refused=tuple(
            [
                ConsideredCandidate(provider=candidate.provider, model=candidate.model, reasons=why)
                for candidate, why in refusals.listed
                if (candidate.provider, candidate.model) not in names
            ]
        ),
        more=refusals.more,
    )


def _considered(
    choice: Choice, intent: Intent, conditions: Conditions, context: RoutingContext, size: CallSize
) -> ConsideredCandidate:
    candidate = choice.candidate
    scored = score(candidate, context)
    return ConsideredCandidate(
        provider=candidate.provider,
        model=candidate.model,
        reasons=candidate.refusals(intent, conditions) if choice.relaxed else (),
        relaxed=choice.relaxed,
        score=round(scored.total, 4),
        estimated_cost_usd=candidate.cost(size, diem=intent.diem_available),
        degraded=candidate.lacking(intent),
        unknown=scored.unknown,
    )
