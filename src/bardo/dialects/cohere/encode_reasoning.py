"""A reasoning policy in the form Cohere's models take: `thinking` with its type and a budget of tokens.

Models that can think do so unless told otherwise, as much as they like.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.cohere.words import NAME
from bardo.dialects.levels import BUDGETS
from bardo.dialects.losses import Losses
from bardo.values.blocks import fields_for
from bardo.values.request import ReasoningPolicy

HEADROOM = 1024
"""Tokens of `max_tokens` that are left to the answer where a budget would take all."""


def encode_reasoning(policy: ReasoningPolicy | None, limit: int | None, losses: Losses) -> dict[str, Any]:
    """Return the fields that make the model think as asked, under the caller's output limit if there is one."""
    if policy is None:
        return {}
    told = fields_for(NAME, policy.carried)
    if told:
        return told
    losses.own_fields(policy.carried)
    if policy.mode == "off":
        return {"thinking": {"type": "disabled"}}
    if policy.mode == "auto":
        return {}
    if policy.mode == "effort" and policy.effort in ("high", "xhigh", "max") and limit is None:
        # No budget is the highest there is.
        return {"thinking": {"type": "enabled"}}
    return {"thinking": {"type": "enabled", "token_budget": _budget(policy, limit, losses)}}


def _budget(policy: ReasoningPolicy, limit: int | None, losses: Losses) -> int:
    wanted = policy.budget if policy.mode == "budget" and policy.budget else BUDGETS[policy.effort or "medium"]
    if limit is None:
        return wanted
    room = limit - HEADROOM if limit > 2 * HEADROOM else max(1, limit // 2)
    if wanted > room:
        losses.lose("reasoning_budget", wanted, "clamped to what max_tokens allows", sent=room)
    return min(wanted, room)
