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


def by_effort(ask: ControlQuery) -> ControlPlan:
    """Return how a level is asked for: by the model's own, by tokens, by turning it on, or by the provider's translation."""
    known, asked = ask.known, ask.policy.effort
    assert asked is not None
    if known.form.apart and not ask.policy.enables_thinking:
        return _level_alone(ask, asked)
    if known.takes_level:
        return _level(ask, asked)
    if known.takes_budget:
        return in_tokens(ask, ask.budgets.tokens(asked))
    if known.switches:
        return _switched(ask)
    if known.form.effort is not None and known.form.levels:
        return _level(ask, asked)
    return unwritable(ask)


def _level_alone(ask: ControlQuery, asked: Effort) -> ControlPlan:
    """Say a level, and nothing of thinking itself."""
    known = ask.known
    if known.form.added_effort is None or not known.levels:
        lost = Degradation("reasoning_effort", asked=asked, why="this model knows no effort")
        thinks = by_omission(known)
        return plan_of(
            ask, fields={}, emitted="nothing", by=("control",), reason="no control", thinks=thinks, degraded=(lost,)
        )
    level = nearest_level(asked, known.levels)
    return plan_of(
        ask,
        fields=fill_in(ask, known.form.added_effort, effort=level),
        emitted=level,
        by=("efforts",),
        reason="exact" if level == asked else "nearest level",
        level=level,
        clamped=level != asked,
        soft=True,
        thinks=by_omission(known),
        degraded=_level_lost(ask, asked, level),
    )


def by_budget(ask: ControlQuery) -> ControlPlan:
    """Return how a budget is asked for: in tokens, by the nearest level, or by turning it on."""
    known = ask.known
    if known.keeps_budget:
        return in_tokens(ask, ask.policy.budget or 0)
    if known.takes_level or (known.form.effort is not None and known.form.levels and not known.switches):
        return _level(ask, ask.budgets.level(ask.policy.budget or 0))
    return _switched(ask) if known.switches else unwritable(ask)


def _level(ask: ControlQuery, wanted: Effort) -> ControlPlan:
    known = ask.known
    offered = known.levels or translated_levels(known)
    meant = (known.facts.aliases or {}).get(wanted, wanted)
    level = nearest_level(meant, offered)
    by: tuple[str, ...] = ("aliases", "efforts") if meant != wanted else ("efforts", "control")
    reason = "alias" if meant != wanted else "exact" if level == wanted else "nearest level"
    if not known.levels:
        by, reason = ("control",), "the provider translates"
    degraded = _level_lost(ask, wanted, level)
    room = room_for(known, ask.limit, ask.budgets.tokens(level))
    return plan_of(
        ask,
        fields=fill_in(ask, known.form.effort, effort=level),
        emitted=level,
        by=by,
        reason="level from budget" if ask.policy.mode == "budget" else reason,
        level=level,
        clamped=level != wanted,
        soft=known.form.soft,
        thinks=True,
        max_output_tokens=room,
        degraded=degraded,
    )


def _level_lost(ask: ControlQuery, wanted: Effort, level: Effort) -> tuple[Degradation, ...]:
    policy = ask.policy
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
    if level == wanted:
        return ()
    acts = wanted in (ask.known.facts.aliases or {})
    why = "at this model the one acts as the other" if acts else "the nearest effort this model offers"
    return (Degradation("reasoning_effort", asked=wanted, sent=level, why=why),)


def _switched(ask: ControlQuery) -> ControlPlan:
    known = ask.known
    lost = Degradation("reasoning", asked=ask.asked, sent="on", why="thinking is only on or off here")
    return plan_of(
        ask,
        fields=fill_in(ask, known.form.on),
        emitted="on",
        by=("control",),
        reason="only on or off",
        clamped=True,
        thinks=True,
        system_text=known.form.system_on,
        degraded=(lost,),
    )


def in_tokens(ask: ControlQuery, wanted: int) -> ControlPlan:
    """Return how a budget is sent: within the model's range, and below the output limit."""
    known = ask.known
    span = known.budget
    room = room_for(known, ask.limit, wanted)
    if _weighed(ask, wanted, room):
        return _budgeted(ask, wanted, wanted, room)
    sent = nearest_tokens(wanted, least=span.min, most=span.max, room=room, headroom=ask.headroom)
    return _no_room(ask, wanted, room) if sent is None else _budgeted(ask, sent, wanted, room)


def _weighed(ask: ControlQuery, wanted: int, room: int | None) -> bool:
    """Whether the caller said budget and output limit in the target's own words, as the model takes them: then they go as they came."""
    if ask.policy.mode != "budget" or room is None or not ask.known.budget.min <= wanted < room:
        return False
    most = ask.known.budget.max
    fields = fill_in(ask, ask.known.form.budget, budget=wanted)
    return (most is None or wanted <= most) and merge_fields(ask.policy.raw_fields, fields) == ask.policy.raw_fields


def _budgeted(ask: ControlQuery, sent: int, wanted: int, room: int | None) -> ControlPlan:
    """Return the plan of a budget, with what differs from the asked one and what the answer lacks."""
    known, span = ask.known, ask.known.budget
    fields, degraded = _beside(ask, fill_in(ask, known.form.budget, budget=sent))
    if sent != wanted or ask.policy.mode == "auto":
        why = (
            "this model takes only a budget of tokens"
            if ask.policy.mode == "auto"
            else _why_clamped(sent, wanted, span.min, span.max)
        )
        degraded = (Degradation("reasoning_budget", asked=ask.asked, sent=sent, why=why), *degraded)
    short = sent == wanted == span.min and room is not None and room - sent < answer_room(room, ask.headroom)
    if short and room is not None:
        why = f"the least thinking of this model, {sent} tokens, leaves the answer only {room - sent}"
        degraded = (*degraded, Degradation("max_output_tokens", asked=room, sent=room, why=why))
    reason = "exact" if ask.policy.mode == "budget" else "budget from level"
    return plan_of(
        ask,
        fields=fields,
        emitted=f"budget:{sent}",
        by=("control", "budget"),
        reason=reason if sent == wanted else "range",
        budget=sent,
        clamped=sent != wanted or short,
        thinks=True,
        max_output_tokens=room,
        degraded=degraded,
    )


def _why_clamped(sent: int, wanted: int, least: int, most: int | None) -> str:
    if sent > wanted:
        return f"this model takes at least {least} tokens"
    return (
        f"this model takes at most {most} tokens"
        if sent == most
        else "the output limit leaves no more beside the answer"
    )


def _beside(ask: ControlQuery, fields: Fragment) -> tuple[Fragment, tuple[Degradation, ...]]:
    """Keep an effort beside the budget where the model takes both."""
    asked, known = ask.policy.effort, ask.known
    if asked is None:
        return fields, ()
    if known.form.added_effort is None or not known.levels:
        why = "this model knows no effort beside the budget"
        return fields, (Degradation("reasoning_effort", asked=asked, why=why),) if ask.policy.mode == "budget" else ()
    level = nearest_level(asked, known.levels)
    lost = Degradation("reasoning_effort", asked=asked, sent=level, why="the nearest effort this model offers")
    return merge_fields(fields, fill_in(ask, known.form.added_effort, effort=level)), () if level == asked else (lost,)


def _no_room(ask: ControlQuery, wanted: int, room: int | None) -> ControlPlan:
    """Turn thinking off where the answer would lack room; where that is impossible, send the least below the limit, or nothing."""
    known, least = ask.known, ask.known.budget.min
    off = known.facts.off and known.form.off is not None
    if not off and room is not None and least < room:
        return _budgeted(ask, least, wanted, room)
    why = f"the output limit leaves no room for the least thinking, {least} tokens"
    lost = Degradation("reasoning", asked=ask.asked, sent="off" if off else None, why=why)
    fields = fill_in(ask, known.form.off) if off else {}
    thinks = False if off else by_omission(known)
    return plan_of(
        ask,
        fields=fields,
        emitted="off" if off else "nothing",
        by=("budget",),
        reason="no room",
        clamped=True,
        thinks=thinks,
        degraded=(lost,),
    )
