"""One question of control: what was asked, what is known, and the plan that answers it."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.forms import Fragment
from bardo.reasoning.control.amounts import DEFAULT_OUTPUT, PortableBudgets
from bardo.reasoning.control.fragments import fill
from bardo.reasoning.control.plan import ControlPlan, intent_of
from bardo.reasoning.control.target import Known
from bardo.values.request import EFFORTS, Effort, OnImpossible, ReasoningPolicy

OUTPUT_LIMIT = 64_000
"""The most output of a model of which nothing is said."""
AUTO: Effort = "medium"
"""The level that stands for `auto` where one is needed."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One question to this module: the policy, what is known, and under which conditions."""

    policy: ReasoningPolicy
    known: Known
    limit: int | None
    headroom: int
    budgets: PortableBudgets
    on_impossible: OnImpossible
    show: bool

    @property
    def asked(self) -> Any:
        """What the caller asked for, as a plain value."""
        policy = self.policy
        return policy.budget if policy.mode == "budget" else policy.effort or policy.mode

    @property
    def switches(self) -> tuple[str, ...]:
        """The chat template's switch, or those that the caller turned where nobody knows the template."""
        known = self.known.row is not None or self.known.facts.switch is not None
        arguments = {} if known else self.policy.told.get("chat_template_kwargs", {})
        return tuple(name for name, value in arguments.items() if isinstance(value, bool)) or (self.known.switch,)


def plan_of(ask: Ask, *, fields: Fragment, said: str, by: tuple[str, ...], reason: str, **more: Any) -> ControlPlan:
    """Return a plan with what all plans have in common."""
    known, policy = ask.known, ask.policy
    thinking = usual_tokens(known, ask.budgets) if more.get("thinks") else 0
    more.setdefault("max_output_tokens", room_for(known, ask.limit, thinking))
    decisive = (*by, "form") if known.facts.form == known.form.name else by
    layer = known.layer(*decisive)
    told = next((known.reasons[name] for name in by if known.layers.get(name) == layer and known.reasons.get(name)), "")
    return ControlPlan(
        target=known.target,
        mode=policy.mode,
        intent=intent_of(policy),
        fields=fields,
        said=said,
        layer=layer,
        reason=told or reason,
        form=known.form.name,
        known=known,
        policy=policy,
        **more,
    )


def fill_in(ask: Ask, fragment: Fragment | None, **values: Any) -> Fragment:
    """Return a fragment of the form, filled in for this model."""
    return fill(fragment or {}, switches=ask.switches, **values)


def room_for(known: Known, limit: int | None, thinking: int) -> int | None:
    """Return the output limit to send: the caller's, or one with room for an answer where the form must have one."""
    needed = known.form.limit == "required" or (known.form.limit == "with_thinking" and thinking > 0)
    if limit is not None or not needed:
        return limit
    most = (known.row and known.row.output_limit) or OUTPUT_LIMIT
    return min(DEFAULT_OUTPUT + thinking, most)


def usual_tokens(known: Known, budgets: PortableBudgets) -> int:
    """Return the tokens a model may think with where it is not told how much."""
    usual = known.facts.default_effort
    return budgets.tokens(next((effort for effort in EFFORTS if effort == usual), AUTO))


def by_omission(known: Known) -> bool | None:
    """Return whether the model thinks when nothing is sent; None where nobody says."""
    return None if known.facts.omit is None else known.facts.omit == "on"


def translated_levels(known: Known) -> tuple[Effort, ...]:
    """The levels the provider itself puts into the model's own control."""
    return known.form.levels if known.controllable else ()


def rank(effort: Effort) -> int:
    """Return the place of a level among all levels."""
    return EFFORTS.index(effort)
