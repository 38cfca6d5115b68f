"""Write a reasoning policy in the wire form one model honours.

A policy that cannot be expressed exactly is expressed as near as possible, and the difference is reported. A level or a budget is planned
in the control that a model has: its own levels, tokens, or only on and off.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.catalog.forms import WireForms
from bardo.catalog.fragments import Fragment, fill, merge_fields
from bardo.catalog.models import Models
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
from bardo.reasoning.control.target import (
    HEADROOM,
    PORTABLE,
    ControlTarget,
    Layer,
    PortableBudgets,
    ResolvedFacts,
    answer_room,
    know,
    nearest_level,
    nearest_tokens,
)
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, OnImpossible, ReasoningPolicy


def by_effort(query: ControlQuery) -> ControlPlan:
    """Return how a level is asked for: by the model's own, by tokens, by turning it on, or by the provider's translation."""
    known, asked = query.known, query.policy.effort
    assert asked is not None
    if known.form.apart and not query.policy.enables_thinking:
        return _level_alone(query, asked)
    if known.takes_level:
        return _level(query, asked)
    if known.takes_budget:
        return in_tokens(query, query.budgets.tokens(asked))
    if known.switches:
        return _switched(query)
    if known.form.effort is not None and known.form.levels:
        return _level(query, asked)
    return unwritable(query)


def _level_alone(query: ControlQuery, asked: Effort) -> ControlPlan:
    """Say a level, and nothing of thinking itself."""
    known = query.known
    if known.form.added_effort is None or not known.levels:
        lost = Degradation("reasoning_effort", asked=asked, why="this model knows no effort")
        thinks = by_omission(known)
        return plan_of(
            query, fields={}, emitted="nothing", by=("control",), reason="no control", thinks=thinks, degraded=(lost,)
        )
    level = nearest_level(asked, known.levels)
    return plan_of(
        query,
        fields=fill_in(query, known.form.added_effort, effort=level),
        emitted=level,
        by=("efforts",),
        reason="exact" if level == asked else "nearest level",
        level=level,
        clamped=level != asked,
        soft=True,
        thinks=by_omission(known),
        degraded=_level_lost(query, asked, level),
    )


def by_budget(query: ControlQuery) -> ControlPlan:
    """Return how a budget is asked for: in tokens, by the nearest level, or by turning it on."""
    known = query.known
    if known.takes_budget:
        return in_tokens(query, query.policy.budget or 0)
    if known.takes_level or (known.form.effort is not None and known.form.levels and not known.switches):
        return _level(query, query.budgets.level(query.policy.budget or 0))
    return _switched(query) if known.switches else unwritable(query)


def _level(query: ControlQuery, requested: Effort) -> ControlPlan:
    known = query.known
    offered = known.levels or translated_levels(known)
    meant = (known.facts.aliases or {}).get(requested, requested)
    level = nearest_level(meant, offered)
    by: tuple[str, ...] = ("aliases", "efforts") if meant != requested else ("efforts", "control")
    reason = "alias" if meant != requested else "exact" if level == requested else "nearest level"
    if not known.levels:
        by, reason = ("control",), "the provider translates"
    degraded = _level_lost(query, requested, level)
    room = room_for(known, query.limit, query.budgets.tokens(level))
    return plan_of(
        query,
        fields=fill_in(query, known.form.effort, effort=level),
        emitted=level,
        by=by,
        reason="level from budget" if query.policy.mode == "budget" else reason,
        level=level,
        clamped=level != requested,
        soft=known.form.soft,
        thinks=True,
        max_output_tokens=room,
        degraded=degraded,
    )


def _level_lost(query: ControlQuery, requested: Effort, level: Effort) -> tuple[Degradation, ...]:
    policy = query.policy
    if policy.mode == "budget":
        lost = [
            Degradation("reasoning_budget", asked=policy.budget, sent=level, why="this model takes levels, not budgets")
        ]
        if policy.effort is not None and policy.effort != level:
            lost.append(
                Degradation(
                    "reasoning_effort", asked=policy.effort, sent=level, why="the budget given beside it decides"
                )
            )
        return tuple(lost)
    if level == requested:
        return ()
    acts = requested in (query.known.facts.aliases or {})
    why = "at this model the one acts as the other" if acts else "the nearest effort this model offers"
    return (Degradation("reasoning_effort", asked=requested, sent=level, why=why),)


def _switched(query: ControlQuery) -> ControlPlan:
    known = query.known
    lost = Degradation("reasoning", asked=query.asked, sent="on", why="thinking is only on or off here")
    return plan_of(
        query,
        fields=fill_in(query, known.form.on),
        emitted="on",
        by=("control",),
        reason="only on or off",
        clamped=True,
        thinks=True,
        system_text=known.form.system_on,
        degraded=(lost,),
    )


def in_tokens(query: ControlQuery, requested: int) -> ControlPlan:
    """Return how a budget is sent: within the model's range, and below the output limit.

    The rule is one for every dialect and wire form. A budget leaves the answer `HEADROOM` tokens of the output limit, or half of a limit
    that is smaller than twice that. A model's least budget takes precedence over the answer's room as long as a quarter of the limit is
    left; otherwise thinking is turned off where it can be, and reported. A budget and a limit that the caller wrote in the provider's own
    fields are sent as they came.
    """
    known = query.known
    span = known.budget
    room = room_for(known, query.limit, requested)
    if _weighed(query, requested, room):
        return _budgeted(query, requested, requested, room)
    sent = nearest_tokens(requested, least=span.min, most=span.max, room=room, headroom=query.headroom)
    return _no_room(query, requested, room) if sent is None else _budgeted(query, sent, requested, room)


def _weighed(query: ControlQuery, requested: int, room: int | None) -> bool:
    """Whether the caller said budget and output limit in the target's own words, as the model takes them: then they go as they came."""
    if query.policy.mode != "budget" or room is None or not query.known.budget.min <= requested < room:
        return False
    most = query.known.budget.max
    fields = fill_in(query, query.known.form.budget, budget=requested)
    return (most is None or requested <= most) and merge_fields(
        query.policy.raw_fields, fields
    ) == query.policy.raw_fields


def _budgeted(query: ControlQuery, sent: int, requested: int, room: int | None) -> ControlPlan:
    """Return the plan of a budget, with what differs from the asked one and what the answer lacks."""
    known, span = query.known, query.known.budget
    fields, degraded = _effort_and_budget(query, fill_in(query, known.form.budget, budget=sent))
    if sent != requested or query.policy.mode == "auto":
        why = (
            "this model takes only a budget of tokens"
            if query.policy.mode == "auto"
            else _why_clamped(sent, requested, span.min, span.max)
        )
        degraded = (Degradation("reasoning_budget", asked=query.asked, sent=sent, why=why), *degraded)
    short = sent == requested == span.min and room is not None and room - sent < answer_room(room, query.headroom)
    if short and room is not None:
        why = f"the least thinking of this model, {sent} tokens, leaves the answer only {room - sent}"
        degraded = (*degraded, Degradation("max_output_tokens", asked=room, sent=room, why=why))
    reason = "exact" if query.policy.mode == "budget" else "budget from level"
    return plan_of(
        query,
        fields=fields,
        emitted=f"budget:{sent}",
        by=("control", "budget"),
        reason=reason if sent == requested else "range",
        budget=sent,
        clamped=sent != requested or short,
        thinks=True,
        max_output_tokens=room,
        degraded=degraded,
    )


def _why_clamped(sent: int, requested: int, least: int, most: int | None) -> str:
    if sent > requested:
        return f"this model takes at least {least} tokens"
    return (
        f"this model takes at most {most} tokens"
        if sent == most
        else "the output limit leaves no more beside the answer"
    )


def _effort_and_budget(query: ControlQuery, fields: Fragment) -> tuple[Fragment, tuple[Degradation, ...]]:
    """Keep an effort beside the budget where the model takes both."""
    asked, known = query.policy.effort, query.known
    if asked is None:
        return fields, ()
    if known.form.added_effort is None or not known.levels:
        why = "this model knows no effort beside the budget"
        return fields, (Degradation("reasoning_effort", asked=asked, why=why),) if query.policy.mode == "budget" else ()
    level = nearest_level(asked, known.levels)
    lost = Degradation("reasoning_effort", asked=asked, sent=level, why="the nearest effort this model offers")
    return merge_fields(fields, fill_in(query, known.form.added_effort, effort=level)), () if level == asked else (
        lost,
    )


def _no_room(query: ControlQuery, requested: int, room: int | None) -> ControlPlan:
    """Turn thinking off where the answer would lack room; where that is impossible, send the least below the limit, or nothing."""
    known, least = query.known, query.known.budget.min
    off = known.facts.off and known.form.off is not None
    if not off and room is not None and least < room:
        return _budgeted(query, least, requested, room)
    why = f"the output limit leaves no room for the least thinking, {least} tokens"
    lost = Degradation("reasoning", asked=query.asked, sent="off" if off else None, why=why)
    fields = fill_in(query, known.form.off) if off else {}
    thinks = False if off else by_omission(known)
    return plan_of(
        query,
        fields=fields,
        emitted="off" if off else "nothing",
        by=("budget",),
        reason="no room",
        clamped=True,
        thinks=thinks,
        degraded=(lost,),
    )


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
    if policy.between_tools and (plan := between_tools(query)) is not None:
        return plan
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
