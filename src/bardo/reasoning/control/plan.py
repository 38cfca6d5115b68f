"""The plan of how a model is made to think as asked, the question it answers, and the parts that all plans share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from bardo.catalog.fragments import Fragment, fill, value_at, without_path
from bardo.reasoning.control.target import DEFAULT_OUTPUT, ControlTarget, LayerName, PortableBudgets, ResolvedFacts
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.request import EFFORTS, Effort, OnImpossible, ReasoningPolicy

Mode = Literal["off", "effort", "budget", "auto", "none"]


class CannotTurnOff(Unsupported):
    """The model always thinks, and the caller wants it off or not at all. `reroute`: another provider may be tried first."""

    def __init__(self, message: str, *, hint: str = "", reroute: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.reroute = reroute


class ControlPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, written.

    `fields` is the JSON fragment for the upstream body, exact, and `max_output_tokens` the output limit to send with it (None: none was
    given and none is needed). `intent` and `emitted` are the policy and what was sent in a word: `low`, `budget:4096`, `off`, `nothing`.
    `layer` is who decided and `reason` why. `clamped`: the amount differs from what was asked; `floored`: off was asked and the least
    there is was sent. `thinks`: whether the model is expected to think, or None if unknown. `system_text` must stand in the system
    prompt, for models that are told there. `model` is the id that says the policy where the ids of a pair do, empty elsewhere.
    """

    target: ControlTarget
    mode: Mode
    intent: str
    fields: dict[str, Any] = {}
    max_output_tokens: int | None = None
    emitted: str = "nothing"
    model: str = ""
    level: Effort | None = None
    budget: int | None = None
    layer: LayerName = "L3"
    reason: str = ""
    form: str = ""
    clamped: bool = False
    floored: bool = False
    soft: bool = False
    thinks: bool | None = None
    repaired: bool = False
    system_text: str = ""
    degraded: tuple[Degradation, ...] = ()
    known: ResolvedFacts | None = None
    policy: ReasoningPolicy | None = None

    @property
    def asks_for_none(self) -> bool:
        """Whether no thinking was asked for."""
        return self.mode == "off" or self.intent == "budget:0"

    @property
    def unclassified(self) -> bool:
        """Whether only an assumption is known of the model, which the operator's log reports."""
        return self.reason in ("unclassified", "assumed")

    @property
    def like(self) -> str:
        """The id of the model that this one is assumed to be like, empty where a row is about the model or nothing is known."""
        row = self.known.row if self.known is not None else None
        return row.like if row is not None and row.assumed else ""

    @property
    def assumed(self) -> str | None:
        """Which model this one is assumed to be like, or "the provider's kind", or None if a row is about it."""
        if self.known is None or self.known.found.how not in ("assumed", "unclassified"):
            return None
        return self.like or "the provider's kind"


def intent_of(policy: ReasoningPolicy | None) -> str:
    """Return a policy in a word: `none`, `off`, a level, `budget:4096`, `auto`."""
    match policy:
        case None:
            return "none"
        case ReasoningPolicy(mode="effort", effort=effort):
            return effort or "auto"
        case ReasoningPolicy(mode="budget", budget=budget):
            return f"budget:{budget}"
    return policy.mode


OUTPUT_LIMIT = 64_000
"""The most output of a model of which nothing is said."""
AUTO: Effort = "medium"
"""The level that stands for `auto` where one is needed."""


class ControlQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One question to this module: the policy, the facts of the model, and the conditions of the request."""

    policy: ReasoningPolicy
    known: ResolvedFacts
    limit: int | None
    headroom: int
    budgets: PortableBudgets
    on_impossible: OnImpossible
    show: bool

    @property
    def asked(self) -> Any:
        """The caller's policy, as a plain value."""
        policy = self.policy
        return policy.budget if policy.mode == "budget" else policy.effort or policy.mode

    @property
    def switches(self) -> tuple[str, ...]:
        """The chat template's switch, or those that the caller turned if the template is unknown."""
        facts = self.known.row is not None or self.known.facts.switch is not None
        arguments = {} if facts else self.policy.raw_fields.get("chat_template_kwargs", {})
        return tuple(name for name, value in arguments.items() if isinstance(value, bool)) or (self.known.switch,)


def plan_of(
    query: ControlQuery, *, fields: Fragment, emitted: str, by: tuple[str, ...], reason: str, **more: Any
) -> ControlPlan:
    """Return a plan with what all plans have in common."""
    facts, policy = query.known, query.policy
    thinking = usual_tokens(facts, query.budgets) if more.get("thinks") else 0
    more.setdefault("max_output_tokens", room_for(facts, query.limit, thinking))
    decisive = (*by, "form") if facts.facts.form == facts.form.name else by
    layer = facts.layer(*decisive)
    told = next((facts.reasons[name] for name in by if facts.layers.get(name) == layer and facts.reasons.get(name)), "")
    return ControlPlan(
        target=facts.target,
        mode=policy.mode,
        intent=intent_of(policy),
        fields=fields,
        emitted=emitted,
        layer=layer,
        reason=told or reason,
        form=facts.form.name,
        known=facts,
        policy=policy,
        **more,
    )


def fill_in(query: ControlQuery, fragment: Fragment | None, **values: Any) -> Fragment:
    """Return a fragment of the form, filled in for this model."""
    return fill(fragment or {}, switches=query.switches, **values)


def room_for(facts: ResolvedFacts, limit: int | None, thinking: int) -> int | None:
    """Return the output limit to send: the caller's, or one with room for an answer where the form must have one."""
    needed = facts.form.limit == "required" or (facts.form.limit == "with_thinking" and thinking > 0)
    if limit is not None or not needed:
        return limit
    return min(DEFAULT_OUTPUT + thinking, facts.facts.output_limit or OUTPUT_LIMIT)


def usual_tokens(facts: ResolvedFacts, budgets: PortableBudgets) -> int:
    """Return the tokens a model may think with where it is not told how much."""
    usual = facts.facts.default_effort
    return budgets.tokens(next((effort for effort in EFFORTS if effort == usual), AUTO))


def by_omission(facts: ResolvedFacts) -> bool | None:
    """Return whether the model thinks when nothing is sent, or None if it is not stated."""
    return None if facts.facts.omit is None else facts.facts.omit == "on"


def translated_levels(facts: ResolvedFacts) -> tuple[Effort, ...]:
    """The levels the provider itself puts into the model's own control."""
    return facts.form.levels if facts.controllable else ()


def rank(effort: Effort) -> int:
    """Return the place of a level among all levels."""
    return EFFORTS.index(effort)


def untold(plan: ControlPlan, taken: Mapping[str, Any]) -> ControlPlan:
    """Return the plan of a body that fields were taken out of, by their dotted paths: its remaining fields are sent."""
    fields = plan.fields
    for path in taken:
        if value_at(fields, path) is not None:
            fields = without_path(fields, path)
    if fields is plan.fields:
        return plan
    return msgspec.structs.replace(plan, fields=fields, emitted=plan.emitted if fields else "nothing")


def uncontrolled(query: ControlQuery) -> ControlPlan:
    """Send nothing to a model that has no control, and say so."""
    thinks = by_omission(query.known)
    why = "this model always thinks, as much as it likes" if thinks else "this model has no control of its thinking"
    # Who says `auto` in other words than the target's own leaves it to the model, and this one has decided.
    meant = query.policy.mode != "auto" or (
        query.policy.raw_fields and query.policy.enables_thinking and not query.show and not thinks
    )
    lost = (Degradation("reasoning", asked=query.asked, why=why),) if meant else ()
    return plan_of(
        query, fields={}, emitted="nothing", by=("control",), reason="no control", thinks=thinks, degraded=lost
    )


def unwritable(query: ControlQuery) -> ControlPlan:
    """Send nothing where the provider has no field for it, and say so."""
    lost = Degradation("reasoning", asked=query.asked, why="this provider has no field for it")
    return plan_of(
        query,
        fields={},
        emitted="nothing",
        by=("control",),
        reason="no field",
        thinks=by_omission(query.known),
        degraded=(lost,),
    )
