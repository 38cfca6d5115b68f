"""Whether a model is asked at all, and how good a one: tiers, chosen by rules over signals, and what a day of them costs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import msgspec

from bardo.values.errors import InvalidRequest

Comparison = Literal["<", "<=", "==", "!=", ">=", ">"]
Signal = bool | float | str
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


class TierRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier: who handles it, with which models, in dollars a call, when, and which share of all ticks it is expected to be.

    `workload` is the workload whose model is asked; a tier without one asks no model.
    """

    name: str
    handler: str
    workload: str = ""
    models: tuple[str, ...] = ()
    cost_usd: tuple[float, float] = (0.0, 0.0)
    trigger: str
    share: float


class TierRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal that compares so with a value asks for a tier."""

    signal: str
    comparison: Comparison
    value: Signal
    tier: str
    why: str = ""

    def holds(self, signals: Mapping[str, Signal]) -> bool:
        """Whether the signal is there and compares so."""
        if self.signal not in signals:
            return False
        given = signals[self.signal]
        if isinstance(given, str) != isinstance(self.value, str):
            kind = "a text" if isinstance(self.value, str) else "a number, true or false"
            raise InvalidRequest(f"signal {self.signal!r} is {given!r}", hint=f"give {kind}", param=self.signal)
        return _COMPARE[self.comparison](given, self.value)


class TierDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The tier of one tick, and the rules that asked for it; no rule where nothing asked for more than the lowest tier."""

    tier: str
    rules: tuple[TierRule, ...] = ()


class CostScenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A day: how many ticks, which share of them is of which tier, and what a call of each tier costs in dollars."""

    name: str
    ticks: int
    share: dict[str, float]
    cost_per_call_usd: dict[str, float]


def compares(given: object, comparison: Comparison, value: Signal) -> bool:
    """Whether a value compares so; False for one that is of another kind, a text and a number."""
    same_kind = isinstance(given, str) == isinstance(value, str) and isinstance(given, bool | int | float | str)
    return same_kind and _COMPARE[comparison](given, value)


def decide_tier(signals: Mapping[str, Signal], rules: Sequence[TierRule], tiers: Sequence[TierRow]) -> TierDecision:
    """Return the highest tier that a rule asks for, else the lowest there is. `tiers` stand in rising order.

    Raises InvalidRequest for a signal that no rule knows, and for one that is no number where its rule compares numbers.
    """
    names = sorted({rule.signal for rule in rules})
    for name, value in signals.items():
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known signals: {', '.join(names)}"
            raise InvalidRequest(f"no rule knows the signal {name!r}", hint=hint, param=name)
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidRequest(f"signal {name!r} is {value!r}", hint="give a finite number", param=name)
    order = [tier.name for tier in tiers]
    holding = [rule for rule in rules if rule.holds(signals)]
    if not holding:
        return TierDecision(tier=order[0])
    highest = max((rule.tier for rule in holding), key=order.index)
    return TierDecision(tier=highest, rules=tuple(rule for rule in holding if rule.tier == highest))


def next_tier(tier: str, tiers: Sequence[TierRow]) -> str | None:
    """Return the tier above, where a call is escalated to; None above the highest."""
    order = [row.name for row in tiers]
    place = order.index(tier) + 1
    return order[place] if place < len(order) else None


def daily_costs(scenario: CostScenario) -> dict[str, float]:
    """Return what each tier costs in a day, in dollars."""
    return {
        tier: scenario.ticks * share * scenario.cost_per_call_usd.get(tier, 0.0)
        for tier, share in scenario.share.items()
    }
