"""A level or a budget, in the control a model has: its own levels, tokens, or only on and off."""

from __future__ import annotations

from bardo.reasoning.control.amounts import nearest_level
from bardo.reasoning.control.asking import (
    Ask,
    by_omission,
    fill_in,
    plan_of,
    room_for,
    translated_levels,
)
from bardo.reasoning.control.budgeted import in_tokens
from bardo.reasoning.control.plan import ControlPlan
from bardo.values.degradation import Degradation
from bardo.values.request import Effort


def by_effort(ask: Ask) -> ControlPlan:
    """Return how a level is asked for: by the model's own, by tokens, by turning it on, or by the provider's translation."""
    known, asked = ask.known, ask.policy.effort
    assert asked is not None
    if known.form.apart and not ask.policy.wakes:
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


def _level_alone(ask: Ask, asked: Effort) -> ControlPlan:
    """Say a level, and nothing of thinking itself."""
    known = ask.known
    if known.form.beside is None or not known.levels:
        lost = Degradation("reasoning_effort", asked=asked, why="this model knows no effort")
        thinks = by_omission(known)
        return plan_of(
            ask, fields={}, said="nothing", by=("control",), reason="no control", thinks=thinks, degraded=(lost,)
        )
    level = nearest_level(asked, known.levels)
    return plan_of(
        ask,
        fields=fill_in(ask, known.form.beside, effort=level),
        said=level,
        by=("efforts",),
        reason="exact" if level == asked else "nearest level",
        level=level,
        clamped=level != asked,
        soft=True,
        thinks=by_omission(known),
        degraded=_level_lost(ask, asked, level),
    )


def by_budget(ask: Ask) -> ControlPlan:
    """Return how a budget is asked for: in tokens, by the nearest level, or by turning it on."""
    known = ask.known
    if known.takes_budget:
        return in_tokens(ask, ask.policy.budget or 0)
    if known.takes_level or (known.form.effort is not None and known.form.levels and not known.switches):
        return _level(ask, ask.budgets.level(ask.policy.budget or 0))
    return _switched(ask) if known.switches else unwritable(ask)


def _level(ask: Ask, wanted: Effort) -> ControlPlan:
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
        said=level,
        by=by,
        reason="level from budget" if ask.policy.mode == "budget" else reason,
        level=level,
        clamped=level != wanted,
        soft=known.form.soft,
        thinks=True,
        max_output_tokens=room,
        degraded=degraded,
    )


def _level_lost(ask: Ask, wanted: Effort, level: Effort) -> tuple[Degradation, ...]:
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


def _switched(ask: Ask) -> ControlPlan:
    known = ask.known
    lost = Degradation("reasoning", asked=ask.asked, sent="on", why="thinking is only on or off here")
    return plan_of(
        ask,
        fields=fill_in(ask, known.form.on),
        said="on",
        by=("control",),
        reason="only on or off",
        clamped=True,
        thinks=True,
        system_text=known.form.system_on,
        degraded=(lost,),
    )


def uncontrolled(ask: Ask) -> ControlPlan:
    """Send nothing to a model that has no control, and say so."""
    thinks = by_omission(ask.known)
    why = "this model always thinks, as much as it likes" if thinks else "this model has no control of its thinking"
    # Who says `auto` in other words than the target's own leaves it to the model, and this one has decided.
    meant = ask.policy.mode != "auto" or (ask.policy.told and ask.policy.wakes and not ask.show and not thinks)
    lost = (Degradation("reasoning", asked=ask.asked, why=why),) if meant else ()
    return plan_of(ask, fields={}, said="nothing", by=("control",), reason="no control", thinks=thinks, degraded=lost)


def unwritable(ask: Ask) -> ControlPlan:
    """Send nothing where the provider has no field for it, and say so."""
    lost = Degradation("reasoning", asked=ask.asked, why="this provider has no field for it")
    return plan_of(
        ask,
        fields={},
        said="nothing",
        by=("control",),
        reason="no field",
        thinks=by_omission(ask.known),
        degraded=(lost,),
    )
