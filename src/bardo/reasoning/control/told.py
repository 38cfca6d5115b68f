"""What becomes of a plan whose caller spoke the target's own language."""

from __future__ import annotations

import msgspec

from bardo.reasoning.control.plan import ControlPlan


def as_told(plan: ControlPlan, limit: int | None) -> ControlPlan:
    """Return the plan with no more in it than such a caller would say.

    A `limit` of output that was left out stays out where the target can do without. To a model nothing is known of, the caller's own
    words go in place of a guess, where the endpoint's row lets them.
    """
    known, told = plan.known, plan.policy.told if plan.policy is not None else {}
    if known is None:
        return plan
    if limit is None and known.form.limit == "with_thinking":
        plan = msgspec.structs.replace(plan, max_output_tokens=None)
    if known.classified or not known.endpoint.own_words or not told:
        return plan
    return msgspec.structs.replace(
        plan, fields=told, said=plan.intent, level=None, budget=None, clamped=False, floored=False, degraded=()
    )
