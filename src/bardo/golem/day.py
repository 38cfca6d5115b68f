"""A day of the agent beside what the documents project: what each share of the budget paid for, and how many ticks had which tier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from bardo.golem.rows import pressure_rows, route_rows, tier_rows
from bardo.golem.running import Means, budget_names, budget_of, budgets_of, workload_of_tier
from bardo.routing.tiers import daily_costs


class SubsystemSums(NamedTuple):
    """The calls of one subsystem in a day, and what they cost in dollars."""

    calls: int
    usd: float


class ShareDay(msgspec.Struct, frozen=True, kw_only=True):
    """What one share of the budget paid for. `budget_usd` None: it has no bound. `then` says what becomes of calls when it is spent."""

    name: str
    calls: int
    spent_usd: float
    budget_usd: float | None = None
    then: str = ""


class AgentDay(msgspec.Struct, frozen=True, kw_only=True):
    """One day. `ticks` are heartbeats by their tier.

    `scenario` is the document's day whose tiers are nearest to these, with its cost in dollars for `scenario_ticks`; empty where there
    was no tick. `configured_usd` is what the documents expect of a day with the configured table of routes, or None if there is none, and
    `unrouted_usd` of a day in which one model does all. `credit_usd` is the credit of which inference may take so much, `life_days` how
    many days of life the money would have bought, and `dear_calls` and `cheap_calls` how many calls of the dearest and the cheapest model
    it is. `target_usd` is what all of a day shall cost, with what is no inference.
    """

    shares: tuple[ShareDay, ...]
    spent_usd: float
    ticks: dict[str, int]
    scenario: str = ""
    scenario_usd: float = 0.0
    scenario_ticks: int = 0
    configured_usd: float | None = None
    unrouted_usd: float
    credit_usd: float
    life_days: float
    dear_calls: float
    cheap_calls: float
    target_usd: tuple[float, float]


def agent_day(sums: Mapping[str, SubsystemSums], daily_budget_usd: float | None, table: str) -> AgentDay:
    """Return the day of an agent in full health, by what its subsystems did, and the name of its table of routes."""
    budgets = budgets_of(Means(daily_budget_usd=daily_budget_usd), vitality=None, tick=None)
    by_share: dict[str, SubsystemSums] = {name: SubsystemSums(0, 0.0) for name in budget_names()}
    for name, one in sums.items():
        share = budget_of(name) or "others"
        before = by_share.get(share, SubsystemSums(0, 0.0))
        by_share[share] = SubsystemSums(before.calls + one.calls, before.usd + one.usd)
    words = {row.subsystem: row.why for row in pressure_rows().budgets.spent}
    shares = tuple(
        ShareDay(
            name=name,
            calls=one.calls,
            spent_usd=one.usd,
            budget_usd=None if name not in budgets or budgets[name].usd == float("inf") else budgets[name].usd,
            then=words.get(name, ""),
        )
        for name, one in by_share.items()
    )
    ticks = {row.name: sums.get(workload_of_tier(row.name), SubsystemSums(0, 0.0)).calls for row in tier_rows().tier}
    scenario, usd, of_ticks = _nearest(ticks)
    rows, economy = route_rows(), tier_rows().economy
    spent = sum(one.spent_usd for one in shares)
    return AgentDay(
        shares=shares,
        spent_usd=spent,
        credit_usd=spent / economy.llm_share_of_credit,
        life_days=spent / economy.life_day_usd,
        dear_calls=spent / economy.opus_call_usd,
        cheap_calls=spent / economy.haiku_call_usd,
        target_usd=economy.daily_target_usd,
        ticks=ticks,
        scenario=scenario,
        scenario_usd=usd,
        scenario_ticks=of_ticks,
        configured_usd=next((one.daily_cost_usd for one in rows.table if one.name == table), None),
        unrouted_usd=max(one.daily_cost_usd for one in rows.configuration),
    )


def _nearest(ticks: Mapping[str, int]) -> tuple[str, float, int]:
    """Return the day of the documents whose tiers are nearest to these, what it costs, and how many ticks it has."""
    every = sum(ticks.values())
    if not every:
        return "", 0.0, 0
    share = {name: count / every for name, count in ticks.items()}
    nearest = min(
        tier_rows().scenario,
        key=lambda one: sum(abs(one.share.get(name, 0.0) - part) for name, part in share.items()),
    )
    return nearest.name, sum(daily_costs(nearest).values()), nearest.ticks
