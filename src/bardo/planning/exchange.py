"""One request's life as a generator of attempts: its targets in order, the endpoint of each that loses least, and what follows a refusal.

Whoever runs it sends each attempt and answers with what became of it; the generator decides whether there is another. It knows no
socket, no clock and no secret, so every path through it is tested with plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from operator import is_
from typing import NamedTuple

import msgspec

from bardo.catalog.endpoint_choice import RANKS, LossCounts, LossRank, loss_counts, names_missing_endpoint
from bardo.planning.attempt import Attempt, EndpointChoice
from bardo.planning.default_fields import required_default
from bardo.planning.knowledge import (
    BUILTIN,
    Knowledge,
    Lesson,
    MissingEndpoint,
    RefusedForm,
    RejectedField,
    TargetFacts,
)
from bardo.planning.planner import (
    Decision,
    attempt_of,
    decide,
    draft_of,
    thinking_mended,
    with_history,
    without_refused_state,
    yielding_to_forced_tool,
)
from bardo.planning.profiles import apply_profile
from bardo.planning.refusals import ProviderWords, moves_on, refused_field
from bardo.planning.request_shapes import shape_of
from bardo.planning.route import RouteRecord, Target, endpoints_of, target_names
from bardo.planning.typed_answer import refused_for_good, refused_forms
from bardo.planning.workloads import with_effort_of_step
from bardo.reasoning.replay import NOTHING, Recalled
from bardo.values.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, RequiredFieldRefused, Unsupported, UpstreamRefused
from bardo.values.request import Message, Request


class CachedChoice(NamedTuple):
    """Which endpoint was taken, by its dialect, and why; what was lost there, and what was known of every endpoint."""

    dialect: str
    why: str
    lost: tuple[str, ...]
    facts: tuple[TargetFacts, ...]


class CachedChoices:
    """The choices for requests like one. They are kept with the plans of `knowledge`, and hold as long as those do.

    Nothing is looked for where the first endpoint has lost nothing of any call yet: it is planned first, and taken at once.
    `may_forward`: the client takes a reply in the framing providers are asked for.
    """

    __slots__ = ("_first", "_knowledge", "_request", "_route", "_row", "_targets")

    def __init__(self, request: Request, targets: Sequence[Target], knowledge: Knowledge, *, may_forward: bool) -> None:
        own = targets[0]
        self._request, self._targets, self._knowledge = request, targets, knowledge
        self._row, self._first = own.provider.row, knowledge.of(own)
        self._route: tuple[Hashable, ...] = (own.provider.place, own.model, request.dialect, may_forward)

    def find(self) -> CachedChoice | None:
        """Return the choice that was made for a request of this kind, with all that is known now; None where there is none."""
        plans = self._knowledge.plans
        if plans.find(self._route, self._row, self._first) is None:
            return None
        place = self._place()
        found: CachedChoice | None = None if place is None else plans.find(place, self._row, self._first)
        same = found is not None and all(map(is_, found.facts, self._facts()))
        return found if same else None

    def keep(self, dialect: str, why: str, degraded: Sequence[Degradation]) -> None:
        """Keep a choice, and what was lost at the endpoint that was taken."""
        plans, place = self._knowledge.plans, self._place()
        if place is not None:
            plans.keep(self._route, self._row, self._first, True)
            plans.keep(place, self._row, self._first, CachedChoice(dialect, why, names_of(degraded), self._facts()))

    def _facts(self) -> tuple[TargetFacts, ...]:
        return tuple(map(self._knowledge.of, self._targets))

    def _place(self) -> tuple[Hashable, ...] | None:
        kinds = kinds_of(self._request)
        shape = None if kinds is None else shape_of(self._request)
        dialects = tuple([at.provider.row.dialect for at in self._targets])
        return None if shape is None else (*self._route, dialects, shape, kinds)


def names_of(degraded: Sequence[Degradation]) -> tuple[str, ...]:
    """Return the names of differences."""
    return tuple([one.what for one in degraded])


def kinds_of(request: Request) -> frozenset[Hashable] | None:
    """Return of which kinds the content of a request is; None where more than its kind may decide what is lost of it."""
    if request.output_format is not None or request.degraded:
        return None
    kinds: set[Hashable] = set()
    before = ""
    for message in request.messages:
        held = _kinds_in(message)
        if held is None:
            return None
        kinds.add((before, message.role, held))
        before = message.role
    kinds.add(before)
    for tool in request.tools:
        if tool.carried is not None or tool.hosted:
            return None
        kinds.add((tool.strict, tool.schema is None, bool(tool.description)))
    return frozenset(kinds)


def _kinds_in(message: Message) -> tuple[Hashable, ...] | None:
    blocks = message.blocks
    if message.carried is not None or not all(map(_is_plain, blocks)):
        return None
    return (*dict.fromkeys(map(type, blocks)), len(blocks) > 1)


def _is_plain(block: Block) -> bool:
    check = _PLAIN.get(type(block))
    return check is not None and check(block)


def _is_plain_text(block: TextBlock) -> bool:
    # A text of nothing but space is left out at some endpoints.
    return bool(block.text) and not block.text.isspace() and not block.opaque and block.carried is None


def _is_plain_call(block: ToolCallBlock) -> bool:
    return bool(block.id) and not block.opaque and block.carried is None


def _is_plain_result(block: ToolResultBlock) -> bool:
    return not block.is_error and block.carried is None and all(map(_is_text, block.content))


def _is_text(part: object) -> bool:
    return type(part) is TextBlock and _is_plain_text(part)


_PLAIN: dict[type[Block], Callable[..., bool]] = {
    TextBlock: _is_plain_text,
    ToolCallBlock: _is_plain_call,
    ToolResultBlock: _is_plain_result,
}


_NO_METHOD = (405, 501)
_NOT_FOUND = 404
_MOST_NAMED = 5


class PlannedAttempt(NamedTuple):
    """What was decided, and the attempt that was made of it."""

    decision: Decision
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
    own: list[Target] = []
    others: list[Target] = []
    for at in endpoints:
        row = at.provider.row
        if row.answers(target.model):
            (own if row.dialect == dialect else others).append(at)
    return [*own, *others] or [target]


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
        decision, attempt = plan(target)
    except Unsupported:
        return None
    if names_of(attempt.degraded) != known.lost:
        return None
    choice = EndpointChoice(dialect=known.dialect, why=known.why)
    return PlannedAttempt(decision, msgspec.structs.replace(attempt, endpoint=choice))


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
    best = found[0] if len(found) == 1 else min(found, key=lambda one: one.losses)
    decision, attempt = best.planned
    reasons = (
        [f"{dialect} cannot take it: {problem.message}" for dialect, problem in refused.items()] if refused else []
    )
    if len(found) > 1:
        own = {one.what for one in attempt.degraded}
        reasons += [_why_not(one, best, own) for one in found if one is not best and one.losses != best.losses]
    dialect = attempt.target.provider.row.dialect
    if not reasons:
        reasons = ["nothing is lost there" if not any(best.losses) else "no other loses less"]
        reasons += ["it is the client's own dialect"] if dialect == decision.draft.request.dialect else []
    choice = EndpointChoice(dialect=dialect, why="; ".join(reasons))
    return PlannedAttempt(decision, msgspec.structs.replace(attempt, endpoint=choice))


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
    failed: tuple[tuple[str, str], ...] = ()
    names = target_names(targets) if len(targets) > 1 else ("",)
    for target, own in zip(targets, names, strict=True):
        lost: tuple[Degradation, ...] = ()
        if failed:
            lost = tuple([Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed])
        wanted = apply_profile(request if route is None else with_effort_of_step(request, route, target))

        def plan(at: Target, wanted: Request = wanted, lost: tuple[Degradation, ...] = lost) -> PlannedAttempt:
            draft = draft_of(wanted, at, knowledge, may_forward=may_forward, degraded=lost, route=route)
            decision = decide(with_history(draft, recalled))
            return PlannedAttempt(decision, attempt_of(decision))

        try:
            endpoints = endpoint_targets(target, wanted.dialect)
            if len(endpoints) > 1:
                # Its server may be known to lack one.
                endpoints = [at for at in endpoints if not knowledge.of(at).missing] or endpoints
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


def _asked(
    endpoints: list[Target],
    plan: Callable[[Target], PlannedAttempt],
    kept: CachedChoices | None = None,
    teaches: tuple[Lesson, ...] = (),
) -> Generator[Attempt, BardoError | None, BardoError | None]:
    """Yield the attempts at one target, at the best of its endpoints, and at the next where the server does not have that one.

    `teaches` is what an answer at any of the endpoints proves.
    """
    decision, attempt = plan_at_best(endpoints, plan, kept)
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
    """Return the attempt once more in a form that heeds a refusal, with what that teaches; None where nothing follows from it.

    Raises RequiredFieldRefused where the operator wants no call without the field that is refused.
    """
    draft, said = msgspec.structs.replace(decision.draft, may_forward=attempt.forward), words.text[:LONGEST_WORDS]
    decision = msgspec.structs.replace(decision, draft=draft)
    without = yielding_to_forced_tool(decision, words, refusal.status)
    if without is not None:
        # It holds for this request alone: the model thinks where no tool is forced.
        return attempt_of(without)
    mended = thinking_mended(decision, words, refusal.status)
    if mended is not None:
        again, learned = mended
        return attempt_of(again, tuple([msgspec.structs.replace(one, words=said) for one in learned]))
    forms = frozenset() if decision.answer is None else refused_forms(decision.answer, refusal, words.text)
    if forms:
        lasting = refused_for_good(words.text) and not words.is_about_relation(_OF_ANSWERS)
        lessons = tuple([RefusedForm(attempt.target, form, said) for form in forms]) if lasting else ()
        return attempt_of(decide(draft, forms), lessons)
    field = refused_field(words, refusal)
    if field is None:
        return None
    required = required_default(field.path, attempt.degraded, attempt.target, decision.shaped.options)
    if required:
        raise RequiredFieldRefused(
            f"{attempt.target.provider.id} refuses {required}, a default field of this gateway without which it is not asked",
            hint="ask another model; the operator can leave the field out, or out of the provider's required_body",
            param=required,
        )
    draft = msgspec.structs.replace(draft, refused_fields=(*draft.refused_fields, field))
    taught = (RejectedField(attempt.target, field, said),) if field.for_good else ()
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
