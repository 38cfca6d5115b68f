"""What becomes of a plan whose caller spoke the target's own language."""

from __future__ import annotations

import msgspec

from bardo.reasoning.control.plan import ControlPlan
from bardo.reasoning.control.target import Known


def as_told(plan: ControlPlan, limit: int | None) -> ControlPlan:
    """Return the plan with no more in it than such a caller would say.

    A `limit` of output that was left out stays out where the target can do without. To a model or a server nothing is known of, the
    caller's own words go in place of a guess, where the endpoint's row lets them.
    """
    known, told = plan.known, plan.policy.told if plan.policy is not None else {}
    if known is None:
        return plan
    if limit is None and known.form.limit == "with_thinking":
        plan = msgspec.structs.replace(plan, max_output_tokens=None)
    if not told or not _unknown(known):
        return plan
    return msgspec.structs.replace(
        plan, fields=told, said=plan.intent, level=None, budget=None, clamped=False, floored=False, degraded=()
    )


def _unknown(known: Known) -> bool:
    """Whether too little is known to say a policy better than the caller did. What an operator or the server itself says is known."""
    return known.unknown_server or (known.endpoint.own_words and not known.classified)
