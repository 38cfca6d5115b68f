"""The lessons of a provider's refusal: the same policy written again with less, once, and a dated fact of this route.

A fact only ever narrows what was known: levels that were not offered before are not offered after.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from bardo.catalog.forms import Refusal, WireForms, builtin_forms
from bardo.catalog.fragments import at_path, leaves, merge_fields
from bardo.catalog.models import BudgetRange, Control, Facts, Models
from bardo.reasoning.control.plan import ControlPlan
from bardo.reasoning.control.planning import plan_reasoning
from bardo.reasoning.control.target import (
    HEADROOM,
    PORTABLE,
    ControlTarget,
    Layer,
    PortableBudgets,
    ResolvedFacts,
    nearest_tokens,
)
from bardo.values.degradation import Degradation
from bardo.values.request import EFFORTS, OnImpossible

_STATUSES = frozenset({400, 404, 422})
_WORD = re.compile(r"[a-z]+")
_LONGEST = 4000


class RouteFact(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal's facts about one model at one provider, and their date: live facts for the next call, to be forgotten with time."""

    target: ControlTarget
    facts: Facts
    date: datetime.date

    @property
    def layer(self) -> Layer:
        """The fact as a layer of live facts."""
        return Layer("L1", self.facts, f"refused on {self.date.isoformat()}")


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A plan to try once more with, and what was learned, or None if the refusal is about this request alone."""

    plan: ControlPlan
    fact: RouteFact | None


def repair_refusal(
    plan: ControlPlan,
    error: str,
    *,
    status: int,
    date: datetime.date,
    facts: Sequence[Layer] = (),
    max_output_tokens: int | None = None,
    answer_headroom: int = HEADROOM,
    on_impossible: OnImpossible = "floor",
    budgets: PortableBudgets = PORTABLE,
    show: bool = False,
    models: Models | None = None,
    forms: WireForms | None = None,
    is_quoted: Callable[[str], bool] = lambda words: False,
) -> Repair | None:
    """Return the plan written again by what `error` says, or None: not about thinking, nothing new in it, or repaired before.

    `is_quoted` tells of words in it whether they are the caller's own. The other arguments are those of the call that was refused.
    Raises CannotTurnOff where the refusal says so and the caller will not have the least instead.
    """
    if plan.repaired or plan.known is None or plan.policy is None or status not in _STATUSES:
        return None
    kind, learned = learn(plan.known, error, forms or builtin_forms(), is_quoted)
    if kind == "below_limit":
        lowered = _below_limit(plan, max_output_tokens, answer_headroom)
        if lowered is not None:
            return Repair(plan=lowered, fact=None)
    if learned is None:
        return None
    fact = RouteFact(target=plan.target, facts=learned, date=date)
    again = plan_reasoning(
        plan.policy,
        plan.target,
        facts=[fact.layer, *facts],
        max_output_tokens=max_output_tokens,
        answer_headroom=answer_headroom,
        on_impossible=on_impossible,
        budgets=budgets,
        show=show,
        models=models,
        forms=forms,
    )
    if again.fields == plan.fields and again.max_output_tokens == plan.max_output_tokens:
        return None
    return Repair(plan=msgspec.structs.replace(again, repaired=True), fact=None if kind == "below_limit" else fact)


def learn(
    known: ResolvedFacts, error: str, forms: WireForms, is_quoted: Callable[[str], bool]
) -> tuple[str, Facts | None]:
    """Return what a refusal says of the model's control, within what was known, and its kind, or None if it says nothing of it."""
    text = error[:_LONGEST]
    for pattern, refusal in _patterns(forms.refusals):
        match = pattern.search(text)
        if match and is_quoted(match[0]):
            continue
        facts = match and _facts(refusal, match, known)
        if facts:
            return refusal.kind, facts
        if match and refusal.kind == "below_limit":
            return refusal.kind, None
    return "", None


def _below_limit(plan: ControlPlan, limit: int | None, headroom: int) -> ControlPlan | None:
    """Return the plan with its budget below the output limit, in the words it was sent in, or None if it has no budget, or no room."""
    limit = limit if limit is not None else plan.max_output_tokens
    asked = None if plan.policy is None else plan.policy.budget
    budget = asked if plan.budget is None else plan.budget
    if budget is None or limit is None or plan.known is None:
        return None
    span = plan.known.budget
    sent = nearest_tokens(min(budget, limit - 1), least=span.min, most=span.max, room=limit, headroom=headroom)
    places = [path for path, value in leaves(plan.fields) if value == budget and type(value) is int]
    if sent is None or not 0 < sent < min(budget, limit) or not places:
        return None
    fields = plan.fields
    for path in places:
        fields = merge_fields(fields, at_path(path, sent))
    why = "the output limit leaves no more beside the answer"
    lost = Degradation("reasoning_budget", asked=budget, sent=sent, why=why)
    return msgspec.structs.replace(
        plan,
        fields=fields,
        budget=sent,
        emitted=f"budget:{sent}",
        clamped=True,
        repaired=True,
        degraded=(*plan.degraded, lost),
    )


@cache
def _patterns(refusals: tuple[Refusal, ...]) -> tuple[tuple[re.Pattern[str], Refusal], ...]:
    return tuple((re.compile(refusal.pattern), refusal) for refusal in refusals)


def _facts(refusal: Refusal, match: re.Match[str], known: ResolvedFacts) -> Facts | None:
    match refusal.kind:
        case "levels":
            return _levels(match["levels"], known)
        case "range":
            return _range(known, least=int(match["least"]), most=int(match["most"]))
        case "least":
            return _range(known, least=int(match["least"]), most=None)
        case "most":
            return _range(known, least=0, most=int(match["most"]))
        case "no_off":
            return Facts(off=False, omit="on")
        case "adaptive":
            return Facts(control=("adaptive", "effort"), efforts=known.facts.efforts or ("low", "medium", "high"))
        case "no_budget" | "below_limit":
            return _without(known, "budget")
        case "no_effort":
            return _without(known, "effort", "level")
        case "no_control":
            return Facts(control=("none",))


def _levels(words: str, known: ResolvedFacts) -> Facts | None:
    accepted = set(_WORD.findall(words.lower()))
    offered = known.levels or EFFORTS
    remaining = tuple(level for level in offered if level in accepted)
    if not remaining and not accepted & {"none", "default", "on", "off", "true", "false"}:
        return None
    off = known.facts.off is not False and bool(accepted & {"none", "off", "false"})
    if not remaining:
        return Facts(control=("toggle",), efforts=(), aliases={}, off=off)
    words_kept = ("none", *remaining) if off and "none" in accepted else remaining
    # Off that is said another way than by a level is not touched by a list of levels.
    by_level = known.form.off is not None and "none" in str(known.form.off_level or known.form.off)
    return Facts(efforts=words_kept, aliases={}, off=off) if by_level else Facts(efforts=words_kept, aliases={})


def _range(known: ResolvedFacts, *, least: int, most: int | None) -> Facts:
    span = known.budget
    highest = min((bound for bound in (span.max, most) if bound is not None), default=None)
    narrowed = BudgetRange(min=max(span.min, least), max=highest, dynamic=span.dynamic)
    # A range that starts above 0 was named for a budget of 0: off is not in it.
    off_by_zero = ": 0" in str(known.form.off)
    return Facts(budget=narrowed, off=False if least > 0 and most is not None and off_by_zero else None)


def _without(known: ResolvedFacts, *lost: Control) -> Facts | None:
    controls = tuple(control for control in known.control if control not in lost)
    return Facts(control=controls or ("none",)) if controls != known.control else None
