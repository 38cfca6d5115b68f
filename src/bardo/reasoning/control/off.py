"""Off, which is a contract: silence is never taken for it where the model thinks in silence."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.fragments import Fragment, fill, merge_fields
from bardo.reasoning.control.plan import (
    CannotTurnOff,
    ControlPlan,
    ControlQuery,
    by_omission,
    fill_in,
    plan_of,
    rank,
    room_for,
    translated_levels,
)
from bardo.reasoning.control.target import nearest_level
from bardo.values.degradation import Degradation


def off(query: ControlQuery) -> ControlPlan:
    """Return the plan that turns thinking off, or its substitute if it cannot be off. Raises CannotTurnOff by the caller's choice."""
    known = query.known
    facts, form = known.facts, known.form
    if facts.off is False or (facts.off is None and facts.omit == "on"):
        return _impossible(query)
    fragment = form.off_level if form.off_level is not None and "none" in (facts.efforts or ()) else form.off
    silent = not fragment and not form.system_off
    if not known.controllable or (silent and (fragment is None or facts.omit == "on")):
        return _silent_off(query)
    fields, degraded = _off_beside(query, fill_in(query, fragment))
    return plan_of(
        query,
        fields=fields,
        emitted="off",
        by=("off",),
        reason="off",
        thinks=False,
        degraded=degraded,
        system_text=form.system_off,
    )


def between_tools(query: ControlQuery) -> ControlPlan | None:
    """Return thinking between tools and nowhere else, or None if the model or the form has no word for it."""
    fragment = query.known.form.between_tools
    if fragment is None or query.known.facts.nearest_off != "between_tools":
        return None
    fields, degraded = _off_beside(query, fill_in(query, fragment))
    return plan_of(
        query,
        fields=fields,
        emitted="between_tools",
        by=("nearest_off",),
        reason="exact",
        thinks=True,
        soft=True,
        degraded=degraded,
    )


def _silent_off(query: ControlQuery) -> ControlPlan:
    """Say nothing to a model that does not think unless it is told to."""
    if query.known.facts.omit == "off" or not query.known.controllable:
        return plan_of(
            query,
            fields={},
            emitted="nothing",
            by=("omit", "control"),
            reason="does not think",
            thinks=by_omission(query.known),
        )
    return _impossible(query)


def _off_beside(query: ControlQuery, fields: Fragment) -> tuple[Fragment, tuple[Degradation, ...]]:
    """Keep an effort that was given beside off, as far as the model takes both."""
    asked, known = query.policy.effort, query.known
    if asked is None:
        return fields, ()
    if known.form.added_effort is None or not known.levels:
        return fields, (Degradation("reasoning_effort", asked=asked, why="no effort goes with thinking that is off"),)
    offered = [level for level in known.levels if rank(level) <= rank(known.facts.off_up_to or "max")]
    level = nearest_level(asked, offered or known.levels)
    why = (
        "thinking is off only up to this effort"
        if rank(asked) > rank(level)
        else "the nearest effort this model offers"
    )
    lost = () if level == asked else (Degradation("reasoning_effort", asked=asked, sent=level, why=why),)
    return merge_fields(fields, fill_in(query, known.form.added_effort, effort=level)), lost


def _impossible(query: ControlQuery) -> ControlPlan:
    """Do what the caller chose for a model that always thinks."""
    known = query.known
    if query.on_impossible != "floor":
        hint = "ask for the lowest effort, choose another model, or let bardo send the least there is (on_impossible: floor)"
        message = f"{known.target.model} always thinks: it cannot be turned off at {known.target.provider}"
        raise CannotTurnOff(message, hint=hint, reroute=query.on_impossible == "reroute")
    fields, emitted, more = _least(query)
    why = (
        "this model always thinks; this is the least there is"
        if fields
        else "this model always thinks and takes no control"
    )
    lost = Degradation(
        "reasoning", asked="off", sent=None if emitted == "nothing" else more.get("budget", emitted), why=why
    )
    return plan_of(
        query,
        fields=fields,
        emitted=emitted,
        by=("off", "efforts"),
        reason="cannot be off",
        floored=True,
        thinks=True,
        degraded=(lost,),
        **more,
    )


def _least(query: ControlQuery) -> tuple[Fragment, str, dict[str, Any]]:
    known, form = query.known, query.known.form
    nearest = known.facts.nearest_off
    if nearest is not None and (fragment := getattr(form, nearest, None)) is not None:
        return fill_in(query, fragment), nearest, {}
    if form.effort is not None and (levels := known.levels or translated_levels(known)):
        return fill_in(query, form.effort, effort=levels[0]), levels[0], {"level": levels[0], "soft": form.soft}
    if known.takes_budget:
        least = known.budget.min
        room = room_for(known, query.limit, least)
        if room is None or least < room:
            return (
                fill_in(query, form.budget, budget=least),
                f"budget:{least}",
                {"budget": least, "max_output_tokens": room},
            )
    return {}, "nothing", {}


def without_thinking(plan: ControlPlan, why: str) -> ControlPlan | None:
    """Return the plan with thinking turned off for what it cannot go with, or None if it cannot be turned off."""
    known = plan.known
    if known is None or not known.facts.off or known.form.off is None:
        return None
    by_level = known.form.off_level is not None and "none" in (known.facts.efforts or ())
    fields = fill((known.form.off_level if by_level else known.form.off) or {}, switches=(known.switch,))
    lost = Degradation("reasoning", asked=plan.intent if plan.mode != "none" else plan.emitted, sent="off", why=why)
    return msgspec.structs.replace(
        plan,
        fields=fields,
        emitted="off",
        level=None,
        budget=None,
        thinks=False,
        clamped=True,
        system_text=known.form.system_off,
        reason="gave way",
        degraded=(*plan.degraded, lost),
    )
