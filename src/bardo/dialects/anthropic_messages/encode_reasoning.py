"""A reasoning policy in the form one Claude model takes, and what the thinking forbids beside it.

A policy that cannot be expressed exactly is expressed as near as possible, and the difference is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.anthropic_messages.models import Traits
from bardo.dialects.anthropic_messages.words import NAME, without
from bardo.dialects.levels import BUDGETS, effort_of
from bardo.values.blocks import fields_for
from bardo.values.degradation import Degradation
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy

LEAST_BUDGET = 1024
HEADROOM = 1024
"""Tokens of `max_tokens` that are left to the answer where a budget would take all."""
DEFAULT_OUTPUT = 8192
"""`max_tokens` where the caller named none; thinking comes on top."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent: the `thinking` object, the effort, the output limit, and what had to differ."""

    thinking: dict[str, Any] | None = None
    effort: Effort | None = None
    max_tokens: int = DEFAULT_OUTPUT
    degraded: tuple[Degradation, ...] = ()

    @property
    def budgeted(self) -> bool:
        """Whether the model thinks within a budget, which forbids more than adaptive thinking does."""
        return self.thinking is not None and self.thinking.get("type") == "enabled"


def encode_reasoning(policy: ReasoningPolicy | None, traits: Traits, limit: int | None) -> Thinking:
    """Return what makes the model think as asked, under the caller's output limit if there is one."""
    if policy is None:
        return Thinking(max_tokens=limit or _room(0, traits))
    told = fields_for(NAME, policy.carried)
    if "thinking" in told and _takes(told["thinking"], policy, traits, limit):
        return _as_told(told["thinking"], policy, traits, limit)
    if "thinking" in told and told["thinking"] is None:
        return _effort_alone(policy, traits, limit)
    sent = _nearest(policy, traits, limit)
    if told.get("thinking", {}).get("type") == "between_tools":
        lost = Degradation(
            "reasoning", asked="between_tools", sent=_kind(sent), why="this model thinks throughout or not at all"
        )
        sent = msgspec.structs.replace(sent, degraded=(*sent.degraded, lost))
    # What else the caller wrote in the object (`block_binding`) goes on.
    kept = without(told.get("thinking") or {}, "type", "budget_tokens", "display")
    return msgspec.structs.replace(sent, thinking={**kept, **sent.thinking}) if kept and sent.thinking else sent


def _kind(sent: Thinking) -> Any:
    return sent.thinking["type"] if sent.thinking else None


def _effort_alone(policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    """Return an effort the model knows; thinking that was not asked for is not turned on for it."""
    effort = nearest_effort(policy.effort, traits.efforts) if policy.effort and traits.efforts else None
    why = "the nearest effort this model offers" if effort else "this model knows no effort"
    lost = Degradation("reasoning_effort", asked=policy.effort, sent=effort, why=why)
    return Thinking(effort=effort, max_tokens=limit or _room(BUDGETS[effort or "minimal"], traits), degraded=(lost,))


def _nearest(policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    if traits.thinking == "none":
        return _cannot_think(policy, traits, limit)
    if policy.mode == "off":
        return _off(policy, traits, limit)
    return _budgeted(policy, traits, limit) if _wants_budget(policy, traits) else _adaptive(policy, traits, limit)


def without_thinking(sent: Thinking, why: str) -> Thinking:
    """Return `sent` with budgeted thinking turned off, for a request it cannot go with."""
    lost = Degradation("reasoning", asked=sent.thinking, sent="off", why=why)
    return msgspec.structs.replace(sent, thinking={"type": "disabled"}, degraded=(*sent.degraded, lost))


def nearest_effort(wanted: Effort, offered: Sequence[Effort]) -> Effort:
    """Choose the highest offered level not above `wanted`, or the lowest there is."""
    ranked = sorted(offered, key=EFFORTS.index)
    return max(
        (one for one in ranked if EFFORTS.index(one) <= EFFORTS.index(wanted)), key=EFFORTS.index, default=ranked[0]
    )


def _takes(thinking: dict[str, Any] | None, policy: ReasoningPolicy, traits: Traits, limit: int | None) -> bool:
    """Whether the model takes the object as the caller wrote it."""
    if not traits.known:
        return True
    if policy.effort is not None and policy.effort not in traits.efforts:
        return False
    kind = thinking["type"] if thinking else ""
    if kind == "enabled":
        return traits.budgets and policy.budget is not None and (limit is None or LEAST_BUDGET <= policy.budget < limit)
    if kind == "adaptive":
        return traits.thinking == "adaptive"
    if kind == "disabled":
        return traits.off == "disabled" and traits.thinking != "none" and not _too_much(policy, traits)
    return kind != "between_tools" or traits.off == "between_tools"


def _as_told(thinking: dict[str, Any] | None, policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    budget = policy.budget or BUDGETS.get(policy.effort or "minimal", 0)
    return Thinking(thinking=thinking, effort=policy.effort, max_tokens=limit or _room(budget, traits))


def _cannot_think(policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    lost = Degradation("reasoning", asked=_asked(policy), sent=None, why="this model does not think")
    degraded = () if policy.mode == "off" else (lost,)
    return Thinking(max_tokens=limit or _room(0, traits), degraded=degraded)


def _off(policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    room = limit or _room(0, traits)
    if traits.off == "none":
        why = "this model always thinks; this is its lowest effort"
        lost = Degradation("reasoning", asked="off", sent="low", why=why)
        return Thinking(thinking={"type": "adaptive"}, effort="low", max_tokens=room, degraded=(lost,))
    if traits.off == "between_tools":
        why = "this model cannot stop thinking between tools"
        lost = Degradation("reasoning", asked="off", sent="between_tools", why=why)
        return Thinking(thinking={"type": "between_tools"}, max_tokens=room, degraded=(lost,))
    effort = policy.effort if traits.thinking == "adaptive" else None
    if effort is None or not _too_much(policy, traits):
        return Thinking(thinking={"type": "disabled"}, effort=effort, max_tokens=room)
    why = "thinking is off only up to this effort"
    lost = Degradation("reasoning_effort", asked=effort, sent=traits.off_below, why=why)
    return Thinking(thinking={"type": "disabled"}, effort=traits.off_below, max_tokens=room, degraded=(lost,))


def _too_much(policy: ReasoningPolicy, traits: Traits) -> bool:
    return policy.effort is not None and EFFORTS.index(policy.effort) > EFFORTS.index(traits.off_below)


def _wants_budget(policy: ReasoningPolicy, traits: Traits) -> bool:
    return traits.thinking == "budget" or (policy.mode == "budget" and traits.budgets)


def _adaptive(policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    degraded: tuple[Degradation, ...] = ()
    asked = policy.effort
    if policy.mode == "budget":
        asked = effort_of(policy.budget or 0)
    effort = asked and nearest_effort(asked, traits.efforts)
    if policy.mode == "budget":
        why = "this model takes no budget of tokens"
        degraded = (Degradation("reasoning_budget", asked=policy.budget, sent=effort, why=why),)
    elif effort != asked:
        why = "the nearest effort this model offers"
        degraded = (Degradation("reasoning_effort", asked=asked, sent=effort, why=why),)
    room = limit or _room(BUDGETS[effort or "medium"], traits)
    return Thinking(
        thinking={"type": "adaptive", **_display(policy, traits)}, effort=effort, max_tokens=room, degraded=degraded
    )


def _budgeted(policy: ReasoningPolicy, traits: Traits, limit: int | None) -> Thinking:
    wanted = policy.budget if policy.mode == "budget" and policy.budget else BUDGETS[policy.effort or "medium"]
    room = limit or _room(wanted, traits)
    budget = max(LEAST_BUDGET, min(wanted, room - HEADROOM))
    if budget >= room:
        why = f"max_tokens leaves no room for the least thinking, {LEAST_BUDGET} tokens"
        lost = Degradation("reasoning", asked=_asked(policy), sent="off", why=why)
        return Thinking(thinking={"type": "disabled"}, max_tokens=room, degraded=(lost,))
    degraded: tuple[Degradation, ...] = ()
    effort = policy.effort if policy.mode == "budget" and policy.effort in traits.efforts else None
    if policy.mode == "auto":
        why = "this model takes only a budget of tokens"
        degraded = (Degradation("reasoning", asked="auto", sent=budget, why=why),)
    elif budget != wanted:
        degraded = (
            Degradation("reasoning_budget", asked=wanted, sent=budget, why="clamped to what max_tokens allows"),
        )
    thinking = {"type": "enabled", "budget_tokens": budget, **_display(policy, traits)}
    if policy.mode == "budget" and policy.effort and not effort:
        why = "this model knows no effort beside the budget"
        degraded = (*degraded, Degradation("reasoning_effort", asked=policy.effort, sent=None, why=why))
    return Thinking(thinking=thinking, effort=effort, max_tokens=room, degraded=degraded)


def _display(policy: ReasoningPolicy, traits: Traits) -> dict[str, Any]:
    # A caller of this dialect who says nothing means the model's own default; others want to read what they asked for.
    if policy.visible is False:
        return {"display": "omitted"}
    silent = policy.visible is None and policy.carried is not None and policy.carried.dialect == NAME
    return {"display": "summarized"} if traits.hides and not silent else {}


def _room(budget: int, traits: Traits) -> int:
    return min(DEFAULT_OUTPUT + budget, traits.output_limit)


def _asked(policy: ReasoningPolicy) -> Any:
    return policy.budget if policy.mode == "budget" else policy.effort or policy.mode
