"""At which of its endpoints a provider is asked: at the one where the call loses least.

Each endpoint is planned for as if it were the only one. The first that loses nothing is taken, else the one whose losses matter least
(catalog/endpoint_choice.py). Where two are equal, the client's own dialect goes before the others, and then the order of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from bardo.catalog.endpoint_choice import RANKS, LossCounts, LossRank, loss_counts, names_missing_endpoint
from bardo.planning.attempt import Attempt, EndpointChoice
from bardo.planning.cached_choices import CachedChoice, CachedChoices, names_of
from bardo.planning.planner import Draft
from bardo.planning.route import Target, endpoints_of
from bardo.values.errors import Unsupported, UpstreamRefused

_NO_METHOD = (405, 501)
_NOT_FOUND = 404
_MOST_NAMED = 5


class PlannedAttempt(NamedTuple):
    """A draft, and the attempt that it was frozen into."""

    draft: Draft
    attempt: Attempt


class _Candidate(NamedTuple):
    planned: PlannedAttempt
    losses: LossCounts


def endpoint_targets(target: Target, dialect: str) -> list[Target]:
    """Return the target at each endpoint where its model answers: the client's dialect first, then in the order of the row.

    The target itself where the provider has one only, or the model answers at none.
    """
    endpoints = endpoints_of(target)
    if len(endpoints) == 1:
        return endpoints
    usable = [at for at in endpoints if at.provider.row.answers(target.model)]
    usable.sort(key=lambda at: at.provider.row.dialect != dialect)
    return usable or [target]


def plan_at_best(
    targets: Sequence[Target], plan: Callable[[Target], PlannedAttempt], kept: CachedChoices | None = None
) -> PlannedAttempt:
    """Return what `plan` makes of the endpoint where the call loses least. Raises Unsupported where it is refused at all of them.

    `kept` are the choices for earlier calls that were like it.
    """
    if len(targets) == 1:
        return plan(targets[0])
    if kept is None:
        return _at_best(targets, plan)
    known = kept.find()
    planned = None if known is None else _as_before(targets, plan, known)
    if planned is None:
        planned = _at_best(targets, plan)
        choice, lost = planned.attempt.endpoint, planned.attempt.degraded
        if choice is not None and (lost or choice.dialect != targets[0].provider.row.dialect):
            kept.keep(choice.dialect, choice.why, lost)
    return planned


def _as_before(
    targets: Sequence[Target], plan: Callable[[Target], PlannedAttempt], known: CachedChoice
) -> PlannedAttempt | None:
    """Return the plan at the endpoint that was taken before; None where this call loses something else there."""
    target = next(at for at in targets if at.provider.row.dialect == known.dialect)
    try:
        draft, attempt = plan(target)
    except Unsupported:
        return None
    if names_of(attempt.degraded) != known.lost:
        return None
    choice = EndpointChoice(dialect=known.dialect, why=known.why)
    return PlannedAttempt(draft, msgspec.structs.replace(attempt, endpoint=choice))


def _at_best(targets: Sequence[Target], plan: Callable[[Target], PlannedAttempt]) -> PlannedAttempt:
    refused: dict[str, Unsupported] = {}
    found: list[_Candidate] = []
    for target in targets:
        try:
            planned = plan(target)
        except Unsupported as problem:
            refused[target.provider.row.dialect] = problem
            continue
        found.append(_Candidate(planned, loss_counts(planned.attempt.degraded)))
        if not any(found[-1].losses):
            break
    if not found:
        raise next(iter(refused.values()))
    best = min(found, key=lambda one: one.losses)
    return _with_reason(best, [one for one in found if one is not best], refused)


_LOST: Mapping[LossRank, str] = {
    "answer": "what the answer depends on",
    "reasoning": "thinking",
    "cache": "cache markers",
    "cosmetic": "metadata",
}


def is_missing_endpoint(problem: UpstreamRefused) -> bool:
    """Whether a refusal says that the server has no such endpoint, and not that it has no such model."""
    if problem.status in _NO_METHOD:
        return True
    return problem.status == _NOT_FOUND and (not problem.message or names_missing_endpoint(problem.said))


def _with_reason(best: _Candidate, others: Sequence[_Candidate], refused: dict[str, Unsupported]) -> PlannedAttempt:
    draft, attempt = best.planned
    own = {one.what for one in attempt.degraded}
    reasons = [
        *(f"{dialect} cannot take it: {problem.message}" for dialect, problem in refused.items()),
        *(_why_not(one, best, own) for one in others if one.losses != best.losses),
    ]
    if not reasons:
        same = attempt.target.provider.row.dialect == draft.request.dialect
        reasons = ["nothing is lost there" if not any(best.losses) else "no other loses less"]
        reasons += ["it is the client's own dialect"] if same else []
    choice = EndpointChoice(dialect=attempt.target.provider.row.dialect, why="; ".join(reasons))
    return PlannedAttempt(draft, msgspec.structs.replace(attempt, endpoint=choice))


def _why_not(other: _Candidate, best: _Candidate, own: Collection[str]) -> str:
    attempt = other.planned.attempt
    dialect = attempt.target.provider.row.dialect
    lost = [*dict.fromkeys(one.what for one in attempt.degraded if one.what not in own)]
    if not lost:
        # The same fields are lost at both, and more of them there.
        rank = next(rank for rank, there, here in zip(RANKS, other.losses, best.losses, strict=True) if there != here)
        return f"{dialect} would lose more of {_LOST[rank]}"
    more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
    return f"{dialect} would lose {', '.join(lost[:_MOST_NAMED])}{more}"
