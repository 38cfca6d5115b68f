"""Ask one target for an answer in a schema: how, and what that changes in the request. Made anew for every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bardo.planning.route import Target
from bardo.reasoning.control import ControlPlan
from bardo.structured import (
    Checker,
    Failure,
    Json,
    Mode,
    SchemaTarget,
    StructuredPlan,
    StructuredSettings,
    apply,
    checker,
    plan,
)
from bardo.structured.modes import Form, RequestConditions, is_lasting, refusal, refused_by, rungs_of
from bardo.values.degradation import Degradation
from bardo.values.errors import UpstreamRefused
from bardo.values.request import OutputFormat, Request, StructuredOptions

AnswerValidator = Callable[[Json], tuple[Failure, ...]]
"""A caller's own look at a value that conforms to the schema: what is wrong with it beyond that."""

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


class AnswerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer of one attempt is asked for, and how it is read.

    `judge` is the caller's own schema, `request` the request as it is to be written. `as_asked`: it is the caller's own request, since the
    target takes the schema as it came. `held`: the text of the answer waits until it is whole, because it has to be read before anybody
    else may. `retries` is how often the model is asked again. `judged` False: no answer in the schema can be expected.
    """

    plan: StructuredPlan
    judge: Checker
    request: Request
    degraded: tuple[Degradation, ...] = ()
    as_asked: bool = False
    held: bool = False
    judged: bool = True
    retries: int = 1

    @property
    def read_by(self) -> Checker:
        """The schema that the model's own text is read by."""
        return checker(self.plan.schema) if self.plan.changes_answers and self.plan.schema is not None else self.judge


def answer_plan(
    request: Request,
    wanted: OutputFormat,
    target: Target,
    control: ControlPlan,
    *,
    settings: StructuredSettings,
    refused: frozenset[Form] = frozenset(),
) -> AnswerPlan | None:
    """Return how `target` is asked for what `wanted` says; None: pass through, the answer is not validated.

    `control` is how the model will think, `refused` the ways to ask that this target was seen to refuse. Raises InvalidRequest for a schema
    that is none.
    """
    spoken = request.dialect == target.provider.row.dialect
    whatever = wanted.mode == "json_object" or wanted.schema is None
    schema = _ANY_OBJECT if whatever else wanted.schema
    options = request.options.structured
    best: Mode | None = options.mode if options is not None else None
    asked_of = _schema_target(target, control, refused)
    around = RequestConditions(
        thinking=control.thinks is not False,
        streaming=request.stream,
        tools=bool(request.tools) and (request.tool_choice is None or request.tool_choice.mode != "none"),
    )
    own_schema = checker(schema)
    made = plan(
        own_schema,
        asked_of,
        thinking=around.thinking,
        streaming=around.streaming,
        tools=around.tools,
        prefer_schema_enforcement=settings.prefer_schema_enforcement,
        mode=_mode(best, settings, whatever=whatever and not spoken),
        name=wanted.name,
        guidance=wanted.guidance,
    )
    if whatever and spoken and made.form in ("json_schema", "json_object"):
        return None
    retries = _retries(options, settings)
    judge = own_schema if settings.validation else checker(True)
    if spoken and best in (None, "schema_enforced") and _takes_as_asked(made, wanted, asked_of, around):
        own = StructuredPlan(mode="schema_enforced", form="json_schema", name=made.name, schema=wanted.schema)
        return AnswerPlan(plan=own, judge=judge, request=request, as_asked=True, retries=retries)
    return _applied(made, request, wanted, judge, retries=retries)


def _retries(options: StructuredOptions | None, settings: StructuredSettings) -> int:
    """Return how often an answer that cannot be used is asked for again: as the request says, else the configuration."""
    if options is not None and options.retries is not None:
        return options.retries
    return settings.max_retries if settings.retry_on_validation_failure else 0


def _applied(
    made: StructuredPlan, request: Request, wanted: OutputFormat, judge: Checker, *, retries: int
) -> AnswerPlan:
    done = apply(made, request)
    degraded = done.degraded
    if made.form == "none":
        why = "structured outputs are turned off here"
        degraded = (Degradation("response_format", asked=wanted.name or wanted.mode, sent="text", why=why),)
    judged = made.form != "none" and not (made.mode == "tool_use_workaround" and _calls_first(request))
    return AnswerPlan(
        plan=made,
        judge=judge,
        request=done.request,
        degraded=degraded,
        held=judged and (made.form != "json_schema" or made.changes_answers),
        judged=judged,
        retries=retries if judged else 0,
    )


def _takes_as_asked(
    made: StructuredPlan, wanted: OutputFormat, target: SchemaTarget, around: RequestConditions
) -> bool:
    """Whether a caller who speaks the target's language is understood as it stands.

    So it is where nothing would be rewritten, or only because the target could be strict, which the caller did not ask for.
    """
    if made.form == "json_schema" and not made.rewrites:
        return True
    strict = (rung for rung in rungs_of(target) if rung.form == "json_schema" and rung.strict)
    return made.form != "none" and not wanted.strict and any(not refusal(rung, target, around) for rung in strict)


def _mode(asked: Mode | None, settings: StructuredSettings, *, whatever: bool) -> Mode | None:
    if not settings.enabled:
        return "none"
    # "Any object" is no schema that a grammar or a tool could hold a model to: it would answer with an empty one.
    return "prompt_guided" if whatever and asked in (None, "schema_enforced", "tool_use_workaround") else asked


def _calls_first(request: Request) -> bool:
    """Whether this turn must be a call of one of the caller's own tools: there is no answer to shape then."""
    return request.tool_choice is not None and request.tool_choice.mode in ("required", "named")


def _schema_target(target: Target, control: ControlPlan, refused: frozenset[Form]) -> SchemaTarget:
    row = target.provider.row
    forced = False if "tool" in refused or not _may_force(control) else None
    return SchemaTarget(
        provider=row.id,
        model=target.model,
        dialect=row.dialect,
        id=target.provider.id,
        json_schema=False if "json_schema" in refused else None,
        json_object=False if "json_object" in refused else None,
        tools=False if "tool_auto" in refused else None,
        forced_tools=forced,
    )


def _may_force(control: ControlPlan) -> bool:
    """Whether a tool can be forced without taking the model's thinking away."""
    taken = (control.known and control.known.row and control.known.row.forced_tool) or "yes"
    match taken:
        case "never":
            return False
        case "not_thinking":
            return control.thinks is False
        case "not_budgeted":
            return control.budget is None
    return True


def refused_forms(answer: AnswerPlan, failure: UpstreamRefused, words: str) -> frozenset[Form]:
    """Return the ways to ask that a provider's refusal is about, by its own words; none where it is about something else."""
    return refused_by(answer.plan.form, failure.status, f"{words} {failure.param or ''}")


def refused_for_good(words: str) -> bool:
    """Return whether a refusal is about the way to ask, and not about this schema: then the next call need not try it."""
    return is_lasting(words)
