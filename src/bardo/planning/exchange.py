"""One request's life as a generator of attempts: its targets in order, the endpoint of each that loses least, and what follows a refusal.

Whoever runs it sends each attempt and answers with what became of it; the generator decides whether there is another. It knows no
socket, no clock and no secret, so every path through it is tested with plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from bardo.catalog.endpoint_choice import RANKS, LossCounts, LossRank, loss_counts, names_missing_endpoint
from bardo.planning.attempt import Attempt, EndpointChoice
from bardo.planning.default_fields import refused_default, required_default
from bardo.planning.knowledge import BUILTIN, Knowledge, Lesson, MissingEndpoint, RefusedForm, RejectedField
from bardo.planning.planner import (
    Decision,
    Draft,
    attempt_of,
    decide,
    draft_of,
    lost_before_writing,
    thinking_mended,
    with_history,
    without_refused_state,
    yielding_to_forced_tool,
)
from bardo.planning.profiles import apply_profile
from bardo.planning.refusals import ProviderWords, moves_on, refused_field
from bardo.planning.route import RouteRecord, Target, target_names
from bardo.planning.typed_answer import refused_for_good, refused_forms
from bardo.planning.workloads import with_effort_of_step
from bardo.reasoning.replay import NOTHING, Recalled
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, Unsupported, UpstreamRefused
from bardo.values.request import Request

_NO_METHOD = (405, 501)
_NOT_FOUND = 404
_MOST_NAMED = 5
_NO_LOSSES: LossCounts = (0, 0, 0, 0)


class _Candidate(NamedTuple):
    """What is known of a call at one endpoint, and so what is lost there at least; with an `attempt` that is all that is lost.

    `draft` is None before anything is known, and `decision` while only the losses beside those of its history are.
    Of two the one that compares less loses less, or stands before the other.
    """

    losses: LossCounts
    place: int
    target: Target
    degraded: tuple[Degradation, ...] = ()
    draft: Draft | None = None
    decision: Decision | None = None
    attempt: Attempt | None = None

    def further(self, draft_at: Callable[[Target], Draft], recalled: Recalled) -> _Candidate:
        """Return it with the next thing known of it. Raises Unsupported where what matters would be lost.

        Earlier thinking takes most of the time that a decision takes behind a long history: only for the first endpoint, where most calls
        go, it is found at once.
        """
        draft, decision, attempt = self.draft, self.decision, None
        if decision is not None:
            attempt = attempt_of(decision)
            degraded = attempt.degraded
        elif draft is None and self.place:
            draft = draft_at(self.target)
            degraded = lost_before_writing(decide(draft))
        else:
            draft = draft or draft_at(self.target)
            decision = decide(with_history(draft, recalled))
            degraded = lost_before_writing(decision)
        losses = loss_counts(degraded) if degraded else _NO_LOSSES
        return self._replace(losses=losses, degraded=degraded, draft=draft, decision=decision, attempt=attempt)


def endpoint_targets(target: Target, dialect: str) -> list[Target]:
    """Return the target at each endpoint where its model answers: the client's dialect first, then in the order of the row.

    The target itself where the provider has one only, or the model answers at none.
    """
    endpoints = target.provider.endpoints
    if len(endpoints) == 1:
        return [target]
    own: list[Target] = []
    others: list[Target] = []
    for at in endpoints:
        if at.row.answers(target.model):
            there = target if at is target.provider else msgspec.structs.replace(target, provider=at)
            (own if at.row.dialect == dialect else others).append(there)
    return [*own, *others] or [target]


def plan_at_best(
    targets: Sequence[Target], draft_at: Callable[[Target], Draft], recalled: Recalled = NOTHING
) -> tuple[Decision, Attempt]:
    """Return what is decided for the endpoint where the call loses least, and its attempt. Raises Unsupported where all of them refuse it.

    More is found of the endpoint that may lose least, as it is known so far, until that is one whose body is written.
    """
    if len(targets) == 1:
        decision = decide(with_history(draft_at(targets[0]), recalled))
        return decision, attempt_of(decision)
    refused: dict[str, Unsupported] = {}
    candidates = {place: _Candidate(_NO_LOSSES, place, target) for place, target in enumerate(targets)}
    best: _Candidate | None = None
    while candidates:
        # Of those that lose as much the first is taken.
        best = min(candidates.values())
        if best.attempt is not None:
            break
        try:
            candidates[best.place] = best.further(draft_at, recalled)
        except Unsupported as problem:
            refused[best.target.provider.row.dialect] = problem
            del candidates[best.place]
    if not candidates or best is None or best.attempt is None or best.decision is None:
        raise next(iter(refused.values()))
    reasons = [f"{dialect} cannot take it: {problem.message}" for dialect, problem in refused.items()]
    reasons += [_why_not(candidate, best) for candidate in candidates.values() if candidate.losses != best.losses]
    dialect = best.attempt.target.provider.row.dialect
    if not reasons:
        reasons = ["nothing is lost there" if not any(best.losses) else "no other loses less"]
        reasons += ["it is the client's own dialect"] if dialect == best.decision.draft.request.dialect else []
    choice = EndpointChoice(dialect=dialect, why="; ".join(reasons))
    return best.decision, msgspec.structs.replace(best.attempt, endpoint=choice)


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


def _why_not(other: _Candidate, best: _Candidate) -> str:
    own = {one.what for one in best.degraded}
    dialect = other.target.provider.row.dialect
    lost = [*dict.fromkeys(one.what for one in other.degraded if one.what not in own)]
    if not lost:
        # The same fields are lost at both, and more of them there.
        rank = next(rank for rank, there, here in zip(RANKS, other.losses, best.losses, strict=True) if there != here)
        return f"{dialect} would lose more of {_LOST[rank]}"
    more = f" and {len(lost) - _MOST_NAMED} more" if len(lost) > _MOST_NAMED else ""
    return f"{dialect} would lose {', '.join(lost[:_MOST_NAMED])}{more}"


LONGEST_WORDS = 500
"""Characters of a refusal that are kept with what it taught."""
_OF_ANSWERS = frozenset(
    {
        "response_format",
        "text",
        "format",
        "output_config",
        "output_format",
        "outputConfig",
        "generationConfig",
        "tools",
        "tool_choice",
    }
)
"""Fields by which an answer in a schema is asked for."""
Exchange = Generator[Attempt, BardoError | None, None]
"""Yields attempts, each to be answered with its error or None. What an attempt `teaches` is kept once it is answered."""


class CallPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What the attempts of one call are planned from.

    `recalled` are the facts about the replies in the request's history, `route` how the targets were found.
    """

    request: Request
    targets: Sequence[Target]
    knowledge: Knowledge = BUILTIN
    recalled: Recalled = NOTHING
    may_forward: bool = True
    route: RouteRecord | None = None

    def attempts(self, request: Request, targets: Sequence[Target]) -> Exchange:
        """Yield one attempt for each of some targets until one is answered with None, or with an error another provider cannot mend.

        `request` has what was lost before.
        """
        failed: tuple[tuple[str, str], ...] = ()
        names = target_names(targets) if len(targets) > 1 else ("",)
        for target, own in zip(targets, names, strict=True):
            lost: tuple[Degradation, ...] = ()
            if failed:
                lost = tuple([Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed])
            wanted = request if self.route is None else with_effort_of_step(request, self.route, target)
            if wanted.options.profile is not None:
                wanted = apply_profile(wanted)

            draft_at = partial(
                draft_of,
                wanted,
                knowledge=self.knowledge,
                may_forward=self.may_forward,
                degraded=lost,
                route=self.route,
            )

            try:
                endpoints = endpoint_targets(target, wanted.dialect)
                if len(endpoints) > 1:
                    # Its server may be known to lack one.
                    endpoints = [at for at in endpoints if not self.knowledge.of(at).missing] or endpoints
                failure = yield from _asked(endpoints, draft_at, self.recalled)
            except Unsupported as problem:
                if target is targets[-1]:
                    raise
                failed = (*failed, (own, problem.message))
                continue
            if failure is None or not moves_on(failure):
                return
            failed = (*failed, (own, failure.message))


def attempts(
    request: Request,
    targets: Sequence[Target],
    *,
    knowledge: Knowledge = BUILTIN,
    recalled: Recalled = NOTHING,
    may_forward: bool = True,
    route: RouteRecord | None = None,
) -> Exchange:
    """Return the attempts at all targets of a request, as a `CallPlan` makes them."""
    plan = CallPlan(
        request=request, targets=targets, knowledge=knowledge, recalled=recalled, may_forward=may_forward, route=route
    )
    return plan.attempts(request, targets)


def _asked(
    endpoints: list[Target], draft_at: Callable[[Target], Draft], recalled: Recalled, teaches: tuple[Lesson, ...] = ()
) -> Generator[Attempt, BardoError | None, BardoError | None]:
    """Yield the attempts at one target, at the best of its endpoints, and at the next where the server does not have that one.

    `teaches` is what an answer at any of the endpoints proves.
    """
    decision, attempt = plan_at_best(endpoints, draft_at, recalled)
    attempt = msgspec.structs.replace(attempt, teaches=teaches) if teaches else attempt
    failure = yield attempt
    if not isinstance(failure, UpstreamRefused):
        return failure
    words = ProviderWords(failure, attempt.wire.body)
    others = [at for at in endpoints if at.provider.row is not attempt.target.provider.row]
    if others and is_missing_endpoint(failure):
        lesson = MissingEndpoint(attempt.target, words.text[:LONGEST_WORDS])
        other = yield from _asked(others, draft_at, recalled, teaches=(*teaches, lesson))
        return failure if isinstance(other, UpstreamRefused) and is_missing_endpoint(other) else other
    while (without := without_refused_state(decision.draft, attempt, failure)) is not None:
        decision, attempt = without, attempt_of(without, teaches)
        failure = yield attempt
        if not isinstance(failure, UpstreamRefused):
            return failure
        words = ProviderWords(failure, attempt.wire.body)
    again = _attempt_that_heeds(decision, attempt, failure, words)
    return failure if again is None else (yield msgspec.structs.replace(again, teaches=(*teaches, *again.teaches)))


def _attempt_that_heeds(
    decision: Decision, attempt: Attempt, refusal: UpstreamRefused, words: ProviderWords
) -> Attempt | None:
    """Return the attempt once more in a form that heeds a refusal, with what that teaches, or None if nothing follows from it.

    Raises RequiredFieldRefused where the operator wants no call without the field that is refused.
    """
    draft, message = msgspec.structs.replace(decision.draft, may_forward=attempt.forward), words.text[:LONGEST_WORDS]
    decision = msgspec.structs.replace(decision, draft=draft)
    without = yielding_to_forced_tool(decision, words, refusal.status)
    if without is not None:
        # It holds for this request alone: the model thinks where no tool is forced.
        return attempt_of(without)
    mended = thinking_mended(decision, words, refusal.status)
    if mended is not None:
        again, learned = mended
        return attempt_of(again, tuple([msgspec.structs.replace(one, words=message) for one in learned]))
    forms = frozenset() if decision.answer is None else refused_forms(decision.answer, refusal, words.text)
    if forms:
        lasting = refused_for_good(words.text) and not words.is_about_relation(_OF_ANSWERS)
        lessons = tuple([RefusedForm(attempt.target, form, message) for form in forms]) if lasting else ()
        return attempt_of(decide(draft, forms), lessons)
    field = refused_field(words, refusal)
    if field is None:
        return None
    required = required_default(field.path, attempt.degraded, attempt.target, decision.shaped.options)
    if required:
        raise refused_default(required, attempt.target)
    draft = msgspec.structs.replace(draft, refused_fields=(*draft.refused_fields, field))
    taught = (RejectedField(attempt.target, field, message),) if field.for_good else ()
    return attempt_of(msgspec.structs.replace(decision, draft=draft), taught)


def is_about_form(attempt: Attempt, failure: BardoError) -> bool:
    """Return whether a provider refuses the form in which an answer is asked for: the same request would be refused again.

    llama-cpp-python says so with status 500, as of 2026-11.
    """
    if attempt.answer is None or not isinstance(failure, UpstreamRefused):
        return False
    return bool(refused_forms(attempt.answer, failure, ProviderWords(failure, attempt.wire.body).text))


def first_attempt(
    request: Request,
    targets: Sequence[Target],
    *,
    knowledge: Knowledge = BUILTIN,
    may_forward: bool = True,
    route: RouteRecord | None = None,
) -> Attempt:
    """Return the attempt that an exchange begins with. Raises what planning raises."""
    return next(attempts(request, targets, knowledge=knowledge, may_forward=may_forward, route=route))
