"""Auto: how much to think is left to the model, as far as it can be."""

from __future__ import annotations

from bardo.catalog.forms import Fragment
from bardo.reasoning.control.amounts import nearest_level
from bardo.reasoning.control.asking import AUTO, Ask, by_omission, fill_in, plan_of, room_for, translated_levels
from bardo.reasoning.control.budgeted import in_tokens
from bardo.reasoning.control.fragments import merged
from bardo.reasoning.control.given import unwritable
from bardo.reasoning.control.plan import ControlPlan
from bardo.values.degradation import Degradation


def auto(ask: Ask) -> ControlPlan:
    """Return how it is left to the model: by its own word, by silence, or by the middle of what it takes where silence is off."""
    known, form = ask.known, ask.known.form
    # In the target's own language a wish to see thinking is no wish to have it; elsewhere models think unasked, so it is one.
    if not ask.policy.wakes and not (ask.show and ask.policy.visible):
        return plan_of(ask, fields={}, said="nothing", by=("omit",), reason="not asked", thinks=by_omission(known))
    said_aloud = {"toggle", "adaptive"} & set(known.control) or known.facts.omit != "on"
    fields = fill_in(ask, form.auto) if form.auto is not None and said_aloud else _as_said(ask)
    if fields:
        return plan_of(ask, fields=fields, said="auto", by=("control",), reason="the model decides", thinks=True)
    if known.facts.omit != "off":
        return plan_of(
            ask, fields={}, said="nothing", by=("omit",), reason="the model decides", thinks=by_omission(known)
        )
    if known.switches:
        return plan_of(
            ask, fields=fill_in(ask, form.on), said="on", by=("omit",), reason="the model decides", thinks=True
        )
    return in_tokens(ask, ask.budgets.tokens(AUTO)) if known.takes_budget else _woken(ask)


def _as_said(ask: Ask) -> Fragment:
    """Return the form's own words where a caller who spoke the target's language used just these; silence may mean the same."""
    for words in (ask.known.form.auto, ask.known.form.on):
        fields = fill_in(ask, words)
        if fields and not ask.show and merged(ask.policy.told, fields) == ask.policy.told:
            return fields
    return {}


def _woken(ask: Ask) -> ControlPlan:
    """Ask for a level where silence would be off."""
    known = ask.known
    levels = known.levels or translated_levels(known)
    if known.form.effort is None or not levels:
        return unwritable(ask)
    level = nearest_level(AUTO, levels)
    lost = Degradation("reasoning", asked="auto", sent=level, why="this model thinks only at a level it is told")
    room = room_for(known, ask.limit, ask.budgets.tokens(level))
    return plan_of(
        ask,
        fields=fill_in(ask, known.form.effort, effort=level),
        said=level,
        by=("omit", "efforts"),
        reason="a level is needed",
        level=level,
        thinks=True,
        max_output_tokens=room,
        degraded=(lost,),
    )
