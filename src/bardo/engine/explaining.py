"""Say what would become of a call.

Nothing is sent. The plan is the one that an exchange begins with, so what is explained is what happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bardo.engine.exchange import Attempt, attempts
from bardo.engine.explanation import (
    AnswerForm,
    Candidate,
    Explanation,
    FieldSource,
    PlannedReceipt,
    Route,
    TextReading,
)
from bardo.engine.knowledge import BUILTIN, Knowledge
from bardo.engine.route import Target
from bardo.engine.structuring import AnswerPlan
from bardo.reasoning.control import ControlPlan
from bardo.values.request import Request
from bardo.values.shown import HIDDEN, is_secret, shown_url

_LIMITS = ("max", "predict")
_SHAPES = ("tool", "format", "schema")
# Asked for by bardo whatever the client said.
_OWN = {"stream_options": "bardo asks for usage, to count tokens"}


def explain(
    request: Request, targets: Sequence[Target], *, why: str = "", knowledge: Knowledge = BUILTIN
) -> Explanation:
    """Return what would be sent to the first of `targets` that can be asked. `why` they are the targets, where no route was looked for.

    Raises what planning raises: InvalidRequest, and Unsupported where none of them can be asked.
    """
    attempt = next(attempts(request, targets, knowledge=knowledge))
    provider = attempt.target.provider
    shown = f"{shown_url(provider.base_url).rstrip('/')}/{attempt.wire.path}"
    url = urlsplit(attempt.url)
    body = msgspec.json.decode(attempt.wire.body)
    return Explanation(
        url=shown,
        path=f"{url.path}?{url.query}" if url.query and "?" not in provider.base_url else url.path,
        headers=_headers(attempt),
        body=body,
        body_bytes=attempt.wire.body,
        route=_route(request, targets, attempt, why),
        receipt=_receipt(attempt.control),
        fields=tuple(_fields(body, request, attempt)),
        degraded=attempt.degraded,
        reading=_reading(attempt),
        key_variables=provider.row.key_variables,
        forwarded=attempt.forward,
        structured=_structured(attempt.answer),
    )


def _route(request: Request, targets: Sequence[Target], attempt: Attempt, why: str) -> Route:
    # Those before the one that is asked could not be: the difference says why, in order.
    problems = [one.why for one in attempt.degraded if one.what == "provider"]
    taken = next(place for place, target in enumerate(targets) if target is attempt.target)
    skipped = [*problems[:taken], *[""] * len(targets)]
    candidates = [
        Candidate(
            provider=target.provider.id,
            model=target.model,
            why=why or _why(target, request.model),
            passed_over=skipped[place],
        )
        for place, target in enumerate(targets)
    ]
    provider = attempt.target.provider
    return Route(
        provider=provider.id, model=attempt.target.model, dialect=provider.row.dialect, candidates=tuple(candidates)
    )


def _why(target: Target, asked: str) -> str:
    provider = target.provider
    if target.model != asked or not (provider.lists(asked) or provider.row.serves(asked)):
        return "the name says so"
    if provider.lists(asked):
        return "its models in bardo.toml" if provider.configured_models else "its own list of models"
    return "the catalog: it serves models of such names"


def _headers(attempt: Attempt) -> dict[str, str]:
    headers = {"content-type": "application/json", **attempt.target.provider.row.headers, **attempt.wire.headers}
    return {name: HIDDEN if is_secret(name, value) else value for name, value in headers.items()}


def _receipt(plan: ControlPlan | None) -> PlannedReceipt:
    assert plan is not None
    return PlannedReceipt(
        intent=plan.intent,
        emitted=plan.fields,
        layer=plan.layer,
        reason=plan.reason,
        said=plan.said,
        form=plan.form,
        thinks=plan.thinks,
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
    found = attempt.reading
    return TextReading(
        reasoning=found.reasoning.name if found.reasoning is not None else "",
        starts_inside=found.starts_inside,
        undecided=found.undecided,
        tool_calls=found.calls.name if found.calls is not None else "",
    )


def _fields(body: dict[str, Any], request: Request, attempt: Attempt) -> Iterator[FieldSource]:
    plan = attempt.control
    controlled = dict(_leaves(plan.fields)) if plan is not None else {}
    given = request.body or {}
    for name, value in body.items():
        own = [path for path in controlled if path.partition(".")[0] == name]
        for path, leaf in _leaves({name: value}) if own else ():
            if plan is not None and controlled.get(path, leaf) == leaf and path in controlled:
                yield FieldSource(path=path, layer=plan.layer, reason=_asked(plan))
            else:
                yield FieldSource(path=path, reason="as asked")
        if not own:
            yield _field(name, value, given, request, attempt)


def _field(name: str, value: Any, given: Mapping[str, Any], request: Request, attempt: Attempt) -> FieldSource:
    plan = attempt.control
    raised = plan is not None and plan.max_output_tokens != request.max_output_tokens
    if plan is not None and raised and value == plan.max_output_tokens and any(word in name for word in _LIMITS):
        return FieldSource(path=name, layer=plan.layer, reason="a limit is needed here, and none was given")
    changed = next((one for one in attempt.degraded if one.what == name and one.sent is not None), None)
    if changed is not None:
        return FieldSource(path=name, reason=changed.why)
    if name == "model" and value == attempt.target.model != request.model:
        return FieldSource(path=name, reason="its name at this provider")
    if attempt.answer is not None and not attempt.answer.as_asked and any(word in name for word in _SHAPES):
        return FieldSource(path=name, reason="asks for the answer in its schema")
    if name in given and given[name] == value:
        return FieldSource(path=name, reason="as asked")
    if name in _OWN and name not in given:
        return FieldSource(path=name, reason=_OWN[name])
    return FieldSource(path=name, reason=f"as asked, written for {attempt.target.provider.row.dialect}")


def _asked(plan: ControlPlan) -> str:
    return "thinking in readable form" if plan.mode == "none" else f"thinking, asked {plan.intent}: {plan.reason}"


def _leaves(fields: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        path = f"{under}{name}"
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value
