"""Explain what a request would be sent as, field by field, and where each field comes from, without sending it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bardo.catalog.fragments import leaves, value_at
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import first_attempt
from bardo.planning.explanation import (
    AnswerForm,
    Candidate,
    Explanation,
    FieldSource,
    PlannedReceipt,
    Route,
    TextReading,
)
from bardo.planning.knowledge import BUILTIN, Knowledge
from bardo.planning.planner import plan
from bardo.planning.route import Target
from bardo.planning.routing import Routed
from bardo.planning.typed_answer import AnswerPlan
from bardo.reasoning.control import ControlPlan
from bardo.routing.decision import ConsideredCandidate
from bardo.routing.reasons import sentence
from bardo.values.degradation import Degradation
from bardo.values.request import Request
from bardo.values.secrets import shown_headers, shown_url

_AS_ASKED = "as asked"
_NAMED = "its name at this provider"
_USAGE = "bardo asks for usage, to count tokens"
_LIMIT = "a limit is needed here, and none was given"
_SCHEMA = "asks for the answer in its schema"
_PROFILE = "the profile"
_UNASKED = "sent unless the request says otherwise"


def field_sources(
    body: dict[str, Any], request: Request, attempt: Attempt, *, unprofiled: dict[str, Any] | None = None
) -> Iterator[FieldSource]:
    """Give the source of each field of `body` and of its objects, and of each element of a list that has several sources.

    `unprofiled` is the body of the request without its profile, or None if it has none.
    """
    for place, of_leaves in groupby(
        _leaf_sources(body, request, attempt, unprofiled), key=lambda source: ".".join(source.path.split(".")[:2])
    ):
        sources = list(of_leaves)
        same = len({(source.layer, source.reason) for source in sources}) == 1
        yield from (FieldSource(path=place, layer=sources[0].layer, reason=sources[0].reason),) if same else sources


def _leaf_sources(
    body: dict[str, Any], request: Request, attempt: Attempt, unprofiled: dict[str, Any] | None
) -> Iterator[FieldSource]:
    given = request.body or {}
    if attempt.written is None:
        # The body is the client's own: only the model's name and what bardo asks of usage may differ.
        for path, value in leaves(body):
            differs = value_at(given, path) != value
            reason = _NAMED if path == "model" and request.model != value else _USAGE if differs else _AS_ASKED
            yield FieldSource(path=path, reason=reason)
        return
    # The sources that one part of the written request accounts for.
    known: dict[str, FieldSource] = {}
    for without, layer, reason in _parts(attempt.written, request, attempt):
        for path in _changed(body, _body(without, attempt)):
            known.setdefault(path, FieldSource(path=path, layer=layer, reason=reason))
    if unprofiled is not None:
        known |= {path: _of_profile(path, known.get(path)) for path in _changed(body, unprofiled)}
    unasked = _unasked(attempt.written, attempt)
    for path, value in leaves(body):
        elements = [source for place, source in known.items() if place.startswith(f"{path}[")]
        if path in known:
            yield known[path]
        elif elements and isinstance(value, list):
            own = {source.path: source for source in elements}
            places = (f"{path}[{index}]" for index in range(len(value)))
            yield from (own.get(place) or FieldSource(path=place, reason=_AS_ASKED) for place in places)
        else:
            yield FieldSource(path=path, reason=_reason(path, value, given, unasked, request, attempt))


def _unasked(written: Request, attempt: Attempt) -> dict[str, Any]:
    """Return the body of a request that asks for nothing."""
    return _body(Request(model=written.model, messages=(), stream=written.stream, dialect=written.dialect), attempt)


def _reason(
    path: str, value: Any, given: Mapping[str, Any], unasked: dict[str, Any], request: Request, attempt: Attempt
) -> str:
    if path == "model" and value != request.model:
        return _NAMED
    if value_at(given, path) == value:
        return _AS_ASKED
    if path not in ("model", "messages") and value_at(unasked, path) == value:
        return _USAGE if path.startswith("stream_options") else _UNASKED
    spoken = attempt.target.provider.row.dialect
    return f"{_AS_ASKED}, written for {spoken}"


def _of_profile(path: str, part: FieldSource | None) -> FieldSource:
    """Return the source of what the profile changes, with the part that it changed."""
    if part is None:
        return FieldSource(path=path, layer="profile", reason=_PROFILE)
    return msgspec.structs.replace(part, reason=f"{_PROFILE}: {part.reason}")


def _parts(written: Request, request: Request, attempt: Attempt) -> Iterator[tuple[Request, str, str]]:
    """Give the request without each of the parts that bardo decided, with the layer that did and the reason."""
    plan = attempt.control
    if plan is not None and written.control is not None:
        yield msgspec.structs.replace(written, control=None, reasoning=None), plan.layer, _asked(plan)
    if plan is not None and plan.max_output_tokens != request.max_output_tokens:
        yield msgspec.structs.replace(written, max_output_tokens=request.max_output_tokens), plan.layer, _LIMIT
    if attempt.answer is not None and not attempt.answer.as_asked:
        yield _unshaped(written, request), "", _SCHEMA
    for lost in attempt.degraded:
        if (without := _unchanged(written, request, lost)) is not None:
            yield without, "", lost.why


def _unshaped(written: Request, request: Request) -> Request:
    """Return the request without what was added for an answer in a schema."""
    return msgspec.structs.replace(
        written, messages=request.messages, tools=request.tools, tool_choice=request.tool_choice, output_format=None
    )


def _unchanged(written: Request, request: Request, lost: Degradation) -> Request | None:
    """Return the request with a parameter as it was asked that a degradation says was changed, or None if it names none."""
    if lost.sent is None:
        return None
    name = "choices" if lost.what == "n" else lost.what
    for now, asked, field in ((written.sampling, request.sampling, "sampling"), (written, request, "")):
        if name in now.__struct_fields__ and getattr(now, name) != getattr(asked, name):
            changed = msgspec.structs.replace(now, **{name: getattr(asked, name)})
            return msgspec.structs.replace(written, sampling=changed) if field else changed  # type: ignore[return-value]
    return None


def _body(request: Request, attempt: Attempt) -> dict[str, Any]:
    row = attempt.target.provider.row
    body: dict[str, Any] = msgspec.json.decode(dialect(row.dialect).encode_request(request, row).body)
    return body


def _changed(body: Any, without: Any, path: str = "") -> Iterator[str]:
    """Give the paths of what stands in `body` and is missing or different in `without`: leaves, and elements of lists."""
    if isinstance(body, Mapping) and body:
        other = without if isinstance(without, Mapping) else {}
        for name, value in body.items():
            yield from _changed(value, other.get(name), f"{path}.{name}" if path else name)
    elif isinstance(body, list) and isinstance(without, list) and body != without:
        kept = [element for element in body if element in without]
        yield from (
            (f"{path}[{index}]" for index, element in enumerate(body) if element not in without) if kept else (path,)
        )
    elif body != without:
        yield path


def _asked(plan: ControlPlan) -> str:
    return "thinking in readable form" if plan.mode == "none" else f"thinking, asked {plan.intent}: {plan.reason}"


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
    """Return the body of a request without its profile, and without the effort of its route's step, or None if it has neither."""
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
        why=f"with requirements relaxed: {_reasons_text(found)}" if found.relaxed else "every requirement is met",
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
        passed_over=_reasons_text(found),
        reasons=found.reasons,
    )


def _reasons_text(found: ConsideredCandidate) -> str:
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
