"""Plan a level or a budget in the control that a model has: its own levels, tokens, or only on and off.

The rule for a budget is one for every dialect and wire form. A budget leaves the answer `HEADROOM` tokens of the output limit, or half of a
limit that is smaller than twice that. A model's least budget takes precedence over the answer's room as long as a quarter of the limit is
left; otherwise thinking is turned off where it can be, and reported. A budget and a limit that the caller wrote in the provider's own
fields are sent as they came.
"""

from __future__ import annotations

from bardo.catalog.fragments import Fragment, merge_fields
from bardo.reasoning.control.amounts import answer_room, nearest_level, nearest_tokens
from bardo.reasoning.control.plan import (
    ControlPlan,
    ControlQuery,
    by_omission,
    fill_in,
    plan_of,
    room_for,
    translated_levels,
    unwritable,
)
from bardo.values.degradation import Degradation
from bardo.values.request import Effort


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
    """Return how a budget is sent: within the model's range, and below the output limit."""
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
