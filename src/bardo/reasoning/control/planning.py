"""Write a reasoning policy in the wire form one model honours.

A policy that cannot be expressed exactly is expressed as near as possible, and the difference is reported.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.catalog.forms import WireForms
from bardo.catalog.fragments import Fragment, fill, merge_fields
from bardo.catalog.models import Models
from bardo.reasoning.control.amounts import HEADROOM, PORTABLE, PortableBudgets, nearest_level
from bardo.reasoning.control.effort import by_budget, by_effort, in_tokens
from bardo.reasoning.control.off import between_tools, off
from bardo.reasoning.control.plan import (
    AUTO,
    ControlPlan,
    ControlQuery,
    by_omission,
    fill_in,
    plan_of,
    room_for,
    translated_levels,
    uncontrolled,
    unwritable,
    usual_tokens,
)
from bardo.reasoning.control.target import ControlTarget, Layer, ResolvedFacts, know
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, OnImpossible, ReasoningPolicy


def plan_reasoning(
    policy: ReasoningPolicy | None,
    target: ControlTarget | ResolvedFacts,
    *,
    facts: Sequence[Layer] = (),
    max_output_tokens: int | None = None,
    answer_headroom: int = HEADROOM,
    on_impossible: OnImpossible = "floor",
    budgets: PortableBudgets = PORTABLE,
    show: bool = False,
    models: Models | None = None,
    forms: WireForms | None = None,
) -> ControlPlan:
    """Return how to ask `target` for what `policy` says. What `know` returned for a target may be given in its place.

    `facts` are an operator's override and live facts; the catalog and the provider's static form lie beneath. A budget is kept within
    the model's range and `answer_headroom` tokens below `max_output_tokens`. `show`: thinking is asked for in a readable form where the
    policy leaves that open. Raises InvalidRequest for a policy that makes no sense, and CannotTurnOff where off is impossible and
    `on_impossible` is `fail` or `reroute`.
    """
    known = target if isinstance(target, ResolvedFacts) else know(target, facts, models=models, forms=forms)
    if policy is None:
        return _unasked(known, max_output_tokens, budgets, show=show)
    check(policy)
    query = ControlQuery(
        policy=policy,
        known=known,
        limit=max_output_tokens,
        headroom=answer_headroom,
        budgets=budgets,
        on_impossible=on_impossible,
        show=show,
    )
    plan = _visible(query, _written(query))
    plan = msgspec.structs.replace(plan, degraded=(*plan.degraded, *_unsaid(policy, plan)))
    if not known.classified:
        plan = msgspec.structs.replace(plan, reason="assumed" if known.row else "unclassified", layer="L3")
    return plan


def check(policy: ReasoningPolicy) -> None:
    """Raise InvalidRequest for a policy that makes no sense: an unknown level, a budget that is missing or negative."""
    if policy.effort is not None and policy.effort not in EFFORTS:
        hint = f"use one of {', '.join(('none', *EFFORTS))}"
        raise InvalidRequest(f"the reasoning effort is {policy.effort!r}", hint=hint, param="reasoning.effort")
    if policy.mode == "effort" and policy.effort is None:
        raise InvalidRequest(
            "a reasoning effort is missing", hint=f"use one of {', '.join(EFFORTS)}", param="reasoning.effort"
        )
    if policy.mode == "budget" and (policy.budget is None or policy.budget < 0):
        hint = "give a number of tokens, 0 for no thinking"
        raise InvalidRequest(f"the reasoning budget is {policy.budget}", hint=hint, param="reasoning.max_tokens")


def _written(query: ControlQuery) -> ControlPlan:
    policy, known = query.policy, query.known
    if (model := known.id_for(policy)) is not None:
        return _by_model_id(query, model)
    if policy.mode == "off" or (policy.mode == "budget" and policy.budget == 0):
        return off(query)
    if not known.controllable:
        return uncontrolled(query)
    if policy.between_tools and (kept := between_tools(query)) is not None:
        return kept
    if policy.mode == "auto":
        return auto(query)
    return by_budget(query) if policy.mode == "budget" else by_effort(query)


def _by_model_id(query: ControlQuery, model: str) -> ControlPlan:
    """Return how a policy is said by the id of the model, which says whether it thinks and not how much."""
    thinks = query.policy.mode != "off" and query.policy.budget != 0
    emitted = "on" if thinks else "off"
    why = "the id of this model says whether it thinks, and nothing says how much"
    lost = (Degradation("reasoning", asked=query.asked, sent="on", why=why),) if thinks else ()
    return plan_of(
        query,
        fields={},
        emitted=emitted,
        model=model,
        by=("model_ids", "control"),
        reason="the model's id",
        clamped=thinks,
        thinks=thinks,
        degraded=lost,
    )


def _unsaid(policy: ReasoningPolicy, plan: ControlPlan) -> tuple[Degradation, ...]:
    """Return what a policy says beside its mode that is not in the plan."""
    lost: tuple[Degradation, ...] = ()
    if policy.mode == "effort" and policy.budget is not None:
        lost = (Degradation("reasoning_budget", asked=policy.budget, why="the effort given beside it decides"),)
    if policy.mode == "off" and policy.budget:
        why = "no budget goes with thinking that is off"
        lost = (Degradation("reasoning_budget", asked=policy.budget, why=why),)
    if policy.between_tools and plan.emitted != "between_tools":
        why = "this model thinks throughout or not at all"
        lost = (*lost, Degradation("reasoning", asked="between_tools", sent=plan.emitted, why=why))
    return lost


def _unasked(known: ResolvedFacts, limit: int | None, budgets: PortableBudgets, *, show: bool) -> ControlPlan:
    thinks = by_omission(known)
    alone = known.form.shown_alone if show and known.controllable else None
    return ControlPlan(
        target=known.target,
        mode="none",
        intent="none",
        fields=fill(alone or {}),
        max_output_tokens=room_for(known, limit, usual_tokens(known, budgets) if thinks else 0),
        layer=known.layer("omit"),
        reason="not asked",
        form=known.form.name,
        thinks=thinks,
        known=known,
    )


def _visible(query: ControlQuery, plan: ControlPlan) -> ControlPlan:
    """Ask for thinking that can be read, or for none of it, where thinking runs at all."""
    wanted, known, form = query.policy.visible, query.known, query.known.form
    if plan.thinks is False or plan.emitted == "between_tools" or not known.controllable:
        return plan
    if wanted is False:
        fragment = form.hidden if plan.fields else form.hidden_alone
    elif wanted or (query.show and not plan.floored):
        shown = None if known.row and known.row.default_display == "summarized" else form.shown
        fragment = shown if plan.fields else form.shown_asked or form.shown_alone
    else:
        fragment = None
    return (
        plan
        if fragment is None
        else msgspec.structs.replace(plan, fields=merge_fields(plan.fields, fill_in(query, fragment)))
    )


def auto(query: ControlQuery) -> ControlPlan:
    """Return how it is left to the model: by its own word, by silence, or by the middle of what it takes where silence is off."""
    known, form = query.known, query.known.form
    # In the target's own language a wish to see thinking is no wish to have it; elsewhere models think unasked, so it is one.
    if not query.policy.enables_thinking and not (query.show and query.policy.visible):
        return plan_of(query, fields={}, emitted="nothing", by=("omit",), reason="not asked", thinks=by_omission(known))
    said_aloud = {"toggle", "adaptive"} & set(known.control) or known.facts.omit != "on"
    fields = fill_in(query, form.auto) if form.auto is not None and said_aloud else _as_said(query)
    if fields:
        return plan_of(query, fields=fields, emitted="auto", by=("control",), reason="the model decides", thinks=True)
    if known.facts.omit != "off":
        return plan_of(
            query, fields={}, emitted="nothing", by=("omit",), reason="the model decides", thinks=by_omission(known)
        )
    if known.switches:
        return plan_of(
            query, fields=fill_in(query, form.on), emitted="on", by=("omit",), reason="the model decides", thinks=True
        )
    return in_tokens(query, query.budgets.tokens(AUTO)) if known.takes_budget else _woken(query)


def _as_said(query: ControlQuery) -> Fragment:
    """Return the form's own words where a caller who spoke the target's language used just these; silence may mean the same."""
    for words in (query.known.form.auto, query.known.form.on):
        fields = fill_in(query, words)
        if fields and not query.show and merge_fields(query.policy.raw_fields, fields) == query.policy.raw_fields:
            return fields
    return {}


def _woken(query: ControlQuery) -> ControlPlan:
    """Ask for a level where silence would be off."""
    known = query.known
    levels = known.levels or translated_levels(known)
    if known.form.effort is None or not levels:
        return unwritable(query)
    level = nearest_level(AUTO, levels)
    lost = Degradation("reasoning", asked="auto", sent=level, why="this model thinks only at a level it is told")
    room = room_for(known, query.limit, query.budgets.tokens(level))
    return plan_of(
        query,
        fields=fill_in(query, known.form.effort, effort=level),
        emitted=level,
        by=("omit", "efforts"),
        reason="a level is needed",
        level=level,
        thinks=True,
        max_output_tokens=room,
        degraded=(lost,),
    )


def as_told(plan: ControlPlan, limit: int | None) -> ControlPlan:
    """Return the plan with no more in it than such a caller would say.

    A `limit` of output that was left out stays out where the target can do without. To a model or a server nothing is known of, the
    caller's own words go in place of a guess, where the endpoint's row lets them.
    """
    known, told = plan.known, plan.policy.raw_fields if plan.policy is not None else {}
    if known is None:
        return plan
    if limit is None and known.form.limit == "with_thinking":
        plan = msgspec.structs.replace(plan, max_output_tokens=None)
    if not told or not _unknown(known):
        return plan
    return msgspec.structs.replace(
        plan, fields=told, emitted=plan.intent, level=None, budget=None, clamped=False, floored=False, degraded=()
    )


def _unknown(known: ResolvedFacts) -> bool:
    """Whether too little is known to say a policy better than the caller did. What an operator or the server itself says is known."""
    return known.unknown_server or (known.endpoint.own_words and not known.classified)
