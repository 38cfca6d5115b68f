"""A budget in tokens: within the model's range, and below the output limit with room for the answer.

The rule is one for every dialect and wire form. A budget leaves the answer `HEADROOM` tokens of the output limit, or half of a limit that
is smaller than twice that. A model's least budget goes before the answer's room as long as a quarter of the limit is left; else thinking
is turned off where it can be, and reported. A budget and a limit that the caller wrote in the provider's own words go as they came.
"""

from __future__ import annotations

from bardo.catalog.forms import Fragment
from bardo.reasoning.control.amounts import answer_room, nearest_level, nearest_tokens
from bardo.reasoning.control.asking import Ask, by_omission, fill_in, plan_of, room_for
from bardo.reasoning.control.fragments import merged
from bardo.reasoning.control.plan import ControlPlan
from bardo.values.degradation import Degradation


def in_tokens(ask: Ask, wanted: int) -> ControlPlan:
    """Return how a budget is sent: within the model's range, and below the output limit."""
    known = ask.known
    span = known.budget
    room = room_for(known, ask.limit, wanted)
    if _weighed(ask, wanted, room):
        return _budgeted(ask, wanted, wanted, room)
    sent = nearest_tokens(wanted, least=span.min, most=span.max, room=room, headroom=ask.headroom)
    return _no_room(ask, wanted, room) if sent is None else _budgeted(ask, sent, wanted, room)


def _weighed(ask: Ask, wanted: int, room: int | None) -> bool:
    """Whether the caller said budget and output limit in the target's own words, as the model takes them: then they go as they came."""
    if ask.policy.mode != "budget" or room is None or not ask.known.budget.min <= wanted < room:
        return False
    most = ask.known.budget.max
    fields = fill_in(ask, ask.known.form.budget, budget=wanted)
    return (most is None or wanted <= most) and merged(ask.policy.told, fields) == ask.policy.told


def _budgeted(ask: Ask, sent: int, wanted: int, room: int | None) -> ControlPlan:
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
        said=f"budget:{sent}",
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


def _beside(ask: Ask, fields: Fragment) -> tuple[Fragment, tuple[Degradation, ...]]:
    """Keep an effort beside the budget where the model takes both."""
    asked, known = ask.policy.effort, ask.known
    if asked is None:
        return fields, ()
    if known.form.beside is None or not known.levels:
        why = "this model knows no effort beside the budget"
        return fields, (Degradation("reasoning_effort", asked=asked, why=why),) if ask.policy.mode == "budget" else ()
    level = nearest_level(asked, known.levels)
    lost = Degradation("reasoning_effort", asked=asked, sent=level, why="the nearest effort this model offers")
    return merged(fields, fill_in(ask, known.form.beside, effort=level)), () if level == asked else (lost,)


def _no_room(ask: Ask, wanted: int, room: int | None) -> ControlPlan:
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
        said="off" if off else "nothing",
        by=("budget",),
        reason="no room",
        clamped=True,
        thinks=thinks,
        degraded=(lost,),
    )
