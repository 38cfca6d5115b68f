"""How an agent's daily budget is divided among its parts, and what a part does when its share is spent. Amounts are US dollars."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Literal

import msgspec

from bardo.routing.pressure import Fraction, pressure_at
from bardo.values.errors import InvalidRequest

Positive = Annotated[float, msgspec.Meta(gt=0)]
WhenSpent = Literal["skip_cycle", "deterministic_rules", "static_heuristics", "lower_tier", "never"]


class BudgetShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One subsystem's share of the daily budget, and how much of the share full pressure takes. `unlimited`: it has no bound."""

    subsystem: str
    share: Fraction = 0.0
    shrinks: Fraction = 0.0
    unlimited: bool = False


class SpentRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fallback of a subsystem whose budget is spent. `tier` is the tier that stands in with `lower_tier`; `why` is for a person."""

    subsystem: str
    then: WhenSpent
    tier: str = ""
    why: str


class BudgetRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The shares, and what income does to them.

    The sustainability ratio is what an agent earns by what it spends on inference. Above `abundant_above` all shares are
    `abundant_factor` times as large; below `scarce_below` they are `scarce_factor` times as large, but for `scarce_exempt`.
    """

    abundant_above: Positive
    abundant_factor: Positive
    scarce_below: Positive
    scarce_factor: Positive
    scarce_exempt: tuple[str, ...] = ()
    share: tuple[BudgetShare, ...]
    spent: tuple[SpentRow, ...] = ()


class SubsystemBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of one subsystem for a day: `usd`, infinite for one without a bound, and before it `diem`, which costs no dollars.

    `diem` is the day's whole allocation, which all subsystems share that it pays for; it is 0 for the others.
    """

    subsystem: str
    usd: float
    diem: float = 0.0


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays for one call: staked DIEM, and dollars for the rest."""

    usd: float
    diem: float


def compute_reasoning_budgets(
    vitality: float,
    daily_budget_usd: float,
    rules: BudgetRules,
    *,
    sustainability: float | None = None,
    diem: float = 0.0,
    paid_by_diem: Collection[str] = (),
) -> dict[str, SubsystemBudget]:
    """Return each subsystem's budget of the day, by its name.

    `sustainability` None: nothing is known of income. `diem` is the rest of the day's DIEM, in dollars, and `paid_by_diem` names the
    subsystems whose calls it pays. Source: 000 §9, "Reasoning budget and mortality integration".
    Raises InvalidRequest for a vitality, an amount or a ratio that is out of range.
    """
    pressure = pressure_at(vitality)
    for name, amount in (("daily_budget_usd", daily_budget_usd), ("sustainability", sustainability), ("diem", diem)):
        if amount is not None and not 0 <= amount < math.inf:
            raise InvalidRequest(f"{name} {amount!r} is out of range", hint=f"{name} is a number from 0 up", param=name)
    budgets = {}
    for row in rules.share:
        if sustainability is None:
            factor = 1.0
        elif sustainability > rules.abundant_above:
            factor = rules.abundant_factor
        else:
            scarce = sustainability < rules.scarce_below and row.subsystem not in rules.scarce_exempt
            factor = rules.scarce_factor if scarce else 1.0
        usd = daily_budget_usd * row.share * (1 - pressure * row.shrinks) * factor
        budgets[row.subsystem] = SubsystemBudget(
            subsystem=row.subsystem,
            usd=math.inf if row.unlimited else usd,
            diem=diem if row.subsystem in paid_by_diem else 0.0,
        )
    return budgets


def charge(cost_usd: float, *, diem_left: float) -> Charge:
    """Return who pays for a call that DIEM may pay: DIEM as long as there is some, dollars for the rest."""
    covered = min(cost_usd, max(diem_left, 0.0))
    return Charge(usd=cost_usd - covered, diem=covered)


def when_spent(budget: SubsystemBudget, rules: BudgetRules, *, spent_usd: float, spent_diem: float) -> SpentRow | None:
    """Return what a subsystem does instead of its next call; None as long as something is left, and where no row speaks of it."""
    if spent_usd < budget.usd or spent_diem < budget.diem:
        return None
    return next((row for row in rules.spent if row.subsystem == budget.subsystem), None)
