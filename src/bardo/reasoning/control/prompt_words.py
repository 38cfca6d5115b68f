"""Say in the system prompt how much to think, to a model that has no field for it."""

from __future__ import annotations

import msgspec

from bardo.reasoning.control.plan import ControlPlan
from bardo.values.degradation import Degradation

_STEPS = "Think step by step before you answer."
_WORDS = {
    "off": "Answer directly, without explaining your reasoning.",
    "high": _STEPS,
    "xhigh": _STEPS,
    "max": _STEPS,
}
"""What is written, by what is asked; other levels need no words."""
SENT = "words in the system prompt"


def in_words(plan: ControlPlan) -> ControlPlan:
    """Return the plan with words for the system prompt, where the model does not think and nothing else can be said to it."""
    known, policy = plan.known, plan.policy
    if known is None or policy is None or known.controllable or plan.thinks or plan.fields or plan.system_text:
        return plan
    words = _WORDS.get("off" if policy.mode == "off" else policy.effort or "")
    if not words:
        return plan
    told = Degradation("reasoning", asked=plan.intent, sent=SENT, why="this model has no control of its thinking")
    others = tuple(one for one in plan.degraded if one.what != "reasoning")
    return msgspec.structs.replace(plan, system_text=words, degraded=(told, *others))
