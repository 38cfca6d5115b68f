"""Say what would become of a call.

Nothing is sent. The plan is the one that an exchange begins with, so what is explained is what happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bardo.engine.attempt import Attempt
from bardo.engine.exchange import first_attempt
from bardo.engine.explanation import (
    AnswerForm,
    Candidate,
    Explanation,
    PlannedReceipt,
    Route,
    TextReading,
)
from bardo.engine.field_sources import field_sources
from bardo.engine.knowledge import BUILTIN, Knowledge
from bardo.engine.planning import plan
from bardo.engine.route import Target
from bardo.engine.routing import Routed
from bardo.engine.typed.plan import AnswerPlan
from bardo.reasoning.control import ControlPlan
from bardo.routing.decision import ConsideredCandidate
from bardo.routing.reasons import sentence
from bardo.values.redaction import shown_headers, shown_url
from bardo.values.request import Request


def explain(
    request: Request,
    targets: Sequence[Target],
    *,
    why: str = "",
    knowledge: Knowledge = BUILTIN,
    routed: Routed | None = None,
) -> Explanation:
    """Return what would be sent to the first of `targets` that can be asked. `why` they are the targets, where no route was looked for.

    `routed` is how they were found for a request that says what it needs.

    Raises what planning raises: InvalidRequest, and Unsupported where none of them can be asked.
    """
    attempt = first_attempt(request, targets, knowledge=knowledge, route=None if routed is None else routed.record)
    provider = attempt.target.provider
    base, mark, query = shown_url(provider.base_url).partition("?")
    shown = f"{base.rstrip('/')}/{attempt.wire.path}{mark}{query}"
    url = urlsplit(attempt.url)
    body = msgspec.json.decode(attempt.wire.body)
    return Explanation(
        url=shown,
        path=f"{url.path}?{url.query}" if url.query and "?" not in provider.base_url else url.path,
        headers=shown_headers(attempt.headers, provider.row.headers),
        body=body,
        body_bytes=attempt.wire.body,
        route=_route(request, targets, attempt, why, routed),
        receipt=_receipt(attempt.control),
        fields=tuple(field_sources(body, request, attempt, unprofiled=_unprofiled(request, attempt, knowledge))),
        degraded=attempt.degraded,
        reading=_reading(attempt),
        key_variables=provider.row.key_variables,
        forwarded=attempt.forward,
        intent=request.options.intent,
        profile=request.options.profile,
        structured=_structured(attempt.answer),
    )


def _unprofiled(request: Request, attempt: Attempt, knowledge: Knowledge) -> dict[str, Any] | None:
    """Return the body of a request without its profile, and without the effort of its route's step; None where it has neither."""
    if attempt.request is None or attempt.request.options.profile is None:
        return None
    options = msgspec.structs.replace(request.options, profile=None, profile_locked=False)
    bare = msgspec.structs.replace(request, options=options)
    body: dict[str, Any] = msgspec.json.decode(
        plan(bare, attempt.target, knowledge=knowledge, may_forward=False).wire.body
    )
    return body


def _route(request: Request, targets: Sequence[Target], attempt: Attempt, why: str, routed: Routed | None) -> Route:
    # Those before the one that is asked could not be: the difference says why, in order.
    problems = [one.why for one in attempt.degraded if one.what == "provider"]
    asked = attempt.target
    taken = next(
        place
        for place, target in enumerate(targets)
        if (target.provider.place, target.model) == (asked.provider.place, asked.model)
    )
    skipped = [*problems[:taken], *[""] * len(targets)]
    candidates = [
        Candidate(
            provider=target.provider.id,
            model=target.model,
            address=target.provider.address,
            why=why or _why(target, request.model),
            passed_over=skipped[place],
        )
        for place, target in enumerate(targets)
    ]
    if routed is not None:
        candidates = [*map(_weighed, candidates, routed.decision.considered), *map(_refused, routed.decision.refused)]
    provider = attempt.target.provider
    return Route(
        provider=provider.id,
        model=asked.model,
        address=provider.address,
        dialect=provider.row.dialect,
        candidates=tuple(candidates),
        endpoint="" if attempt.endpoint is None else attempt.endpoint.why,
        strategy="" if routed is None else routed.decision.strategy,
        more=0 if routed is None else routed.decision.more,
    )


def _weighed(candidate: Candidate, found: ConsideredCandidate) -> Candidate:
    """Return a candidate with what was found of it."""
    return msgspec.structs.replace(
        candidate,
        why=f"with requirements relaxed: {_words(found)}" if found.relaxed else "every requirement is met",
        reasons=found.reasons,
        relaxed=found.relaxed,
        score=found.score,
        estimated_cost_usd=found.estimated_cost_usd,
        degraded=found.degraded,
    )


def _refused(found: ConsideredCandidate) -> Candidate:
    """Return a candidate that does not meet the requirements."""
    return Candidate(
        provider=found.provider,
        model=found.model,
        why="a requirement is not met",
        passed_over=_words(found),
        reasons=found.reasons,
    )


def _words(found: ConsideredCandidate) -> str:
    return "; ".join(map(sentence, found.reasons))


def _why(target: Target, asked: str) -> str:
    provider = target.provider
    if target.model != asked or not (provider.lists(asked) or provider.row.serves(asked)):
        return "the name says so"
    if provider.lists(asked):
        return "its models in bardo.toml" if provider.configured_models else "its own list of models"
    return "the catalog: it serves models of such names"


def _receipt(plan: ControlPlan | None) -> PlannedReceipt:
    assert plan is not None
    return PlannedReceipt(
        intent=plan.intent,
        emitted=plan.fields,
        layer=plan.layer,
        reason=plan.reason,
        emitted_word=plan.emitted,
        form=plan.form,
        thinks=plan.thinks,
        assumed=plan.assumed,
    )


def _structured(answer: AnswerPlan | None) -> AnswerForm | None:
    if answer is None:
        return None
    made = answer.plan
    return AnswerForm(
        mode=made.mode,
        wanted=made.wanted,
        form=made.form,
        name=made.name,
        schema=made.schema,
        tool=made.tool_name,
        guidance=made.guidance,
        rewrites=made.rewrites,
        skipped=made.skipped,
    )


def _reading(attempt: Attempt) -> TextReading:
    found = attempt.formats
    return TextReading(
        reasoning=found.reasoning.name if found.reasoning is not None else "",
        starts_inside=found.starts_inside,
        undecided=found.undecided,
        tool_calls=found.calls.name if found.calls is not None else "",
    )
