"""One request's life as a generator of attempts.

Whoever runs it sends each attempt and answers with what became of it; the generator decides whether there is another. It knows no
socket, no clock and no secret, so every path through it is tested with plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import msgspec

from bardo.planning.attempt import Attempt
from bardo.planning.cached_choices import CachedChoices
from bardo.planning.endpoints import PlannedAttempt, endpoint_targets, is_missing_endpoint, plan_at_best
from bardo.planning.failover import moves_on
from bardo.planning.knowledge import BUILTIN, Knowledge, Lesson, MissingEndpoint, RefusedForm, RejectedField
from bardo.planning.planner import Draft
from bardo.planning.profiles import apply_profile
from bardo.planning.provider_words import ProviderWords
from bardo.planning.refused_fields import refused_field
from bardo.planning.route import RouteRecord, Target, target_names
from bardo.planning.route_steps import with_effort_of_step
from bardo.planning.typed_answer import refused_for_good, refused_forms
from bardo.reasoning.replay import NOTHING, Recalled
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, Unsupported, UpstreamRefused
from bardo.values.request import Request

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
    """What the attempts of one call are planned from."""

    request: Request
    targets: Sequence[Target]
    knowledge: Knowledge = BUILTIN
    recalled: Recalled = NOTHING
    may_forward: bool = True
    route: RouteRecord | None = None

    def exchange(self) -> Exchange:
        """Return all attempts of the call."""
        return self.attempts(self.request, self.targets)

    def attempts(self, request: Request, targets: Sequence[Target]) -> Exchange:
        """Return the attempts at some of the targets for the request with what was lost before."""
        return attempts(
            request,
            targets,
            knowledge=self.knowledge,
            recalled=self.recalled,
            may_forward=self.may_forward,
            route=self.route,
        )


def attempts(
    request: Request,
    targets: Sequence[Target],
    *,
    knowledge: Knowledge = BUILTIN,
    recalled: Recalled = NOTHING,
    may_forward: bool = True,
    route: RouteRecord | None = None,
) -> Exchange:
    """Yield one attempt for each target until one is answered with None, or with an error another provider cannot mend.

    `recalled` is what is known of the replies in the request's history, `route` how the targets were found.
    """
    laid = apply_profile(request)
    failed: tuple[tuple[str, str], ...] = ()
    names = target_names(targets) if len(targets) > 1 else ("",)
    for target, own in zip(targets, names, strict=True):
        lost = tuple([Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed])
        stepped = with_effort_of_step(request, route, target)
        wanted = laid if stepped is request else apply_profile(stepped)

        def plan(at: Target, wanted: Request = wanted, lost: tuple[Degradation, ...] = lost) -> PlannedAttempt:
            draft = Draft(wanted, at, knowledge, may_forward=may_forward, degraded=lost, route=route)
            draft.restore_history(recalled)
            draft.settle()
            return PlannedAttempt(draft, draft.freeze())

        try:
            endpoints = _endpoints(target, wanted, knowledge)
            # What was lost before, or is known of the history, is in no choice that was kept.
            like = len(endpoints) > 1 and not lost and not recalled.found and not recalled.refused
            kept = CachedChoices(wanted, endpoints, knowledge, may_forward=may_forward) if like else None
            failure = yield from _asked(endpoints, plan, kept)
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        if failure is None or not moves_on(failure):
            return
        failed = (*failed, (own, failure.message))


def _endpoints(target: Target, request: Request, knowledge: Knowledge) -> list[Target]:
    """Return the target at each endpoint that its server is not known to lack."""
    found = endpoint_targets(target, request.dialect)
    if len(found) == 1:
        return found
    return [at for at in found if not knowledge.of(at).missing] or found


def _asked(
    endpoints: list[Target],
    plan: Callable[[Target], PlannedAttempt],
    kept: CachedChoices | None = None,
    teaches: tuple[Lesson, ...] = (),
) -> Generator[Attempt, BardoError | None, BardoError | None]:
    """Yield the attempts at one target, at the best of its endpoints, and at the next where the server does not have that one.

    `teaches` is what an answer at any of the endpoints proves.
    """
    draft, attempt = plan_at_best(endpoints, plan, kept)
    attempt = msgspec.structs.replace(attempt, teaches=teaches) if teaches else attempt
    failure = yield attempt
    if not isinstance(failure, UpstreamRefused):
        return failure
    words = ProviderWords(failure, attempt.wire.body)
    others = [at for at in endpoints if at.provider.row is not attempt.target.provider.row]
    if others and is_missing_endpoint(failure):
        lesson = MissingEndpoint(attempt.target, words.text[:LONGEST_WORDS])
        other = yield from _asked(others, plan, teaches=(*teaches, lesson))
        return failure if isinstance(other, UpstreamRefused) and is_missing_endpoint(other) else other
    while draft.leave_out_state(attempt, failure):
        attempt = draft.freeze(teaches)
        failure = yield attempt
        if not isinstance(failure, UpstreamRefused):
            return failure
        words = ProviderWords(failure, attempt.wire.body)
    again = _attempt_that_heeds(draft, attempt, failure, words)
    return failure if again is None else (yield msgspec.structs.replace(again, teaches=(*teaches, *again.teaches)))


def _attempt_that_heeds(
    draft: Draft, attempt: Attempt, refusal: UpstreamRefused, words: ProviderWords
) -> Attempt | None:
    """Return the attempt once more in a form that heeds a refusal, with what that teaches; None where nothing follows from it."""
    draft.may_forward, said = attempt.forward, words.text[:LONGEST_WORDS]
    if draft.yield_to_forced_tool(words, refusal.status):
        # It holds for this request alone: the model thinks where no tool is forced.
        return draft.freeze()
    learned = draft.repair(words, refusal.status)
    if learned is not None:
        return draft.freeze(tuple([msgspec.structs.replace(one, words=said) for one in learned]))
    forms = frozenset() if draft.answer is None else refused_forms(draft.answer, refusal, words.text)
    if forms:
        lasting = refused_for_good(words.text) and not words.is_about_relation(_OF_ANSWERS)
        draft.settle(forms)
        return draft.freeze(tuple([RefusedForm(attempt.target, form, said) for form in forms]) if lasting else ())
    field = refused_field(words, refusal)
    if field is None:
        return None
    draft.refused_fields = (*draft.refused_fields, field)
    return draft.freeze((RejectedField(attempt.target, field, said),) if field.for_good else ())


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
