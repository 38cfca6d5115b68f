"""The verdict on a policy, by the observed reply alone.

The rules, in order; the first that fits gives the verdict. A reply *thought* where it reports reasoning tokens, shows thinking, or holds
its opaque state; it *did not think* where it reports 0 tokens, or holds a block of thinking with nothing in it, and has none of these; else
it is *unclear*.

1. Nothing was asked: `unknown`.
2. Off was asked. Did not think: `honoured`. The least there is was sent instead: `floored`. Unclear: by the level that the reply reports,
   `honoured` for no level and `contradicted` for one; `unknown` where it says nothing. Thought, and its text was seen: `contradicted`.
   Thought, but only tokens or opaque state show it: `hidden_only`.
3. Auto was asked. Unclear: `unknown`; else `honoured`, for whether to think was the model's to decide.
4. Reported more than 1.25 times the budget that was asked for (and 256 tokens more), whatever was sent for it: `contradicted`. For a level
   that was sent as a budget, that budget counts. An estimate never contradicts.
5. Nothing could be sent for a level or a budget: `void`. Off was sent instead, for what thinking could not go with: `clamped`, or
   `contradicted` where it thought after all.
6. Did not think, though told to. A form that leaves it to the model, or a level up to `low` that was asked for: `unknown`, for an easy
   question needs no thought. Else `void`: the control moved nothing.
7. A level or budget other than the asked one was sent, or the reply says that another level was applied than was sent: `clamped`. It says
   that none was, and does not show that it thought: `void`.
8. It is unclear whether it thought, or the model is unknown, or the server of a model that thinks unasked: `unknown`, for that a model
   thinks is no evidence that it was told how much. Else `honoured`.

What was asked for is a limit and a signal, no prediction: fewer tokens than a budget contradict nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bardo.reasoning.control.plan import ControlPlan
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility
from bardo.values.request import EFFORTS

Verdict = Literal["honoured", "clamped", "floored", "hidden_only", "void", "contradicted", "unknown"]

_SLACK = 1.25
_GRACE = 256
_LIGHT = frozenset(EFFORTS[: EFFORTS.index("low") + 1])


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The visible signs of thinking in a reply. `reasoning_tokens` None: not reported and not to be estimated.

    `empty`: it holds a block of thinking with nothing in it. `effort` is the level that the reply says was applied, or None if it
    says nothing.
    """

    reasoning_tokens: int | None = None
    reported: bool = False
    approx: bool = False
    text_seen: bool = False
    empty: bool = False
    visibility: ReasoningVisibility = ReasoningVisibility.NONE
    effort: str | None = None

    @property
    def thought(self) -> bool | None:
        """Whether the model thought, or None if it is unknown."""
        if self.reasoning_tokens or self.text_seen or self.visibility is not ReasoningVisibility.NONE:
            return True
        return False if self.reported or self.empty else None


def observation(chain: ReasoningChain, effort: str | None = None) -> Observation:
    """Return what a chain shows, beside the level that its reply says was applied."""
    return Observation(
        reasoning_tokens=chain.reasoning_tokens if chain.reported or chain.tokens_approx or chain.empty else None,
        reported=chain.reported,
        approx=chain.tokens_approx,
        text_seen=bool(chain.content) or chain.withheld,
        empty=chain.empty,
        visibility=chain.visibility,
        effort=effort,
    )


def observe(plan: ControlPlan, observed: Observation) -> Verdict:
    """Return what became of the plan, by the rules above."""
    thought = observed.thought
    if plan.mode == "none":
        return "unknown"
    if plan.asks_for_none:
        return _off(plan, observed, thought)
    if plan.mode == "auto":
        return "unknown" if thought is None else "honoured"
    if _exceeded(plan, observed):
        return "contradicted"
    if not plan.fields and not plan.system_text and plan.emitted != "on":
        return "void"
    if plan.emitted == "off":
        return "contradicted" if thought else "clamped"
    if thought is False:
        asked = None if plan.policy is None or plan.mode != "effort" else plan.policy.effort
        return "unknown" if plan.soft or (asked or plan.level) in _LIGHT else "void"
    if observed.effort == "none" and not thought:
        return "void"
    if plan.clamped or _applied_other(plan, observed):
        return "clamped"
    return "unknown" if thought is None or _unproven(plan) else "honoured"


def _unproven(plan: ControlPlan) -> bool:
    """Whether that the model thought says nothing of what was sent: it may do so whatever it is told."""
    known = plan.known
    return plan.unclassified or (known is not None and known.unknown_server and known.facts.omit != "off")


def _off(plan: ControlPlan, observed: Observation, thought: bool | None) -> Verdict:
    if thought is False:
        return "honoured"
    if plan.floored:
        return "floored"
    if thought is None:
        return "honoured" if observed.effort == "none" else "contradicted" if observed.effort in EFFORTS else "unknown"
    return "contradicted" if observed.text_seen else "hidden_only"


def _applied_other(plan: ControlPlan, observed: Observation) -> bool:
    """Whether the reply says that another level was applied than was sent."""
    asked = plan.policy.effort if plan.policy is not None else None
    sent = plan.level or (asked if plan.mode == "effort" and plan.budget is None else None)
    return sent is not None and observed.effort in EFFORTS and observed.effort != sent


def _exceeded(plan: ControlPlan, observed: Observation) -> bool:
    asked = plan.policy.budget if plan.mode == "budget" and plan.policy is not None else None
    budget = plan.budget if asked is None else asked
    if budget is None or not observed.reported or observed.approx or observed.reasoning_tokens is None:
        return False
    return observed.reasoning_tokens > budget * _SLACK + _GRACE


def receipt(plan: ControlPlan, observed: Observation, verdict: Verdict) -> dict[str, Any]:
    """Return the whole receipt of one call, as plain values."""
    return {
        "intent": plan.intent,
        "emitted": {"model": plan.model, **plan.fields} if plan.model else plan.fields,
        "layer": plan.layer,
        "reason": plan.reason,
        "assumed": plan.assumed,
        "observed": {
            "reasoning_tokens": observed.reasoning_tokens,
            "reported": observed.reported,
            "approx": observed.approx,
            "text_seen": observed.text_seen,
            "visibility": observed.visibility.value,
            "effort": observed.effort,
        },
        "verdict": verdict,
    }


def receipt_header(plan: ControlPlan, verdict: str | None = None) -> str:
    """Return the receipt as a header: `intent=low; emitted=high; layer=L1; verdict=clamped`. A stream's head comes before the verdict."""
    told = f"intent={plan.intent}; emitted={plan.emitted}; layer={plan.layer}"
    return told if verdict is None else f"{told}; verdict={verdict}"
