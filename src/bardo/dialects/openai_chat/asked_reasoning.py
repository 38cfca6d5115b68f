"""How a client of this dialect says how the model should think: `reasoning_effort`, OpenRouter's `reasoning`, `include_reasoning`."""

from __future__ import annotations

from typing import Any

from bardo.dialects.jsonfield import optional
from bardo.dialects.openai_chat.words import NAME
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy

_READ = frozenset({"effort", "max_tokens", "enabled", "exclude"})


def read_reasoning(fields: dict[str, Any]) -> tuple[ReasoningPolicy | None, bool]:
    """Return the policy, and whether the reply is to leave the thinking out."""
    nested = optional(fields, "reasoning", dict) or {}
    visible = _visible(fields, nested)
    effort, place = optional(fields, "reasoning_effort", str), "reasoning_effort"
    if not effort:
        effort, place = optional(nested, "effort", str, "reasoning."), "reasoning.effort"
    budget = optional(nested, "max_tokens", int, "reasoning.")
    if budget is not None and budget < 0:
        raise InvalidRequest("reasoning.max_tokens must not be negative", param="reasoning.max_tokens")
    enabled = optional(nested, "enabled", bool, "reasoning.")
    rest = {name: value for name, value in nested.items() if name not in _READ and value is not None}
    carried = Carried(NAME, rest) if rest else None
    policy: ReasoningPolicy | None = None
    if effort == "none" or enabled is False:
        policy = ReasoningPolicy(mode="off", visible=visible, carried=carried)
    elif budget is not None:
        policy = ReasoningPolicy(mode="budget", budget=budget, visible=visible, carried=carried)
    elif effort and effort != "default":
        policy = ReasoningPolicy(mode="effort", effort=_level(effort, place), visible=visible, carried=carried)
    elif effort or enabled or nested or visible is not None:
        policy = ReasoningPolicy(mode="auto", visible=visible, carried=carried)
    return policy, visible is False


def _visible(fields: dict[str, Any], nested: dict[str, Any]) -> bool | None:
    """Whether the client wants to read the thinking; None where it does not say."""
    excluded = optional(nested, "exclude", bool, "reasoning.")
    included = optional(fields, "include_reasoning", bool)
    return included if excluded is None else not excluded


def _level(effort: str, place: str) -> Effort:
    for level in EFFORTS:
        if effort == level:
            return level
    known = ", ".join(("none", *EFFORTS))
    raise InvalidRequest(f"{place} is {effort!r}", hint=f"use one of {known}", param=place)
