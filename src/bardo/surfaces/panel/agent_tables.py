"""The agent's day as a table and figures of the page of costs: what its parts spent, beside what the documents project."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.adapters.stores.log import CostGroup
from bardo.golem.day import AgentDay, SubsystemSums, agent_day
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.wording import count, dollars
from bardo.values.cost import usd

_HEADS = (
    Head("share"),
    Head("calls", number=True),
    Head("spent", number=True),
    Head("budget", number=True),
    Head("when spent"),
)


def day_of_agent(groups: Sequence[CostGroup], daily_budget_usd: float | None, table: str) -> AgentDay:
    """Return the day of the agent by the sums of its subsystems."""
    sums: dict[str, SubsystemSums] = {}
    for one in groups:
        name = str(one.of["subsystem"])
        before = sums.get(name, SubsystemSums(0, 0.0))
        spent = usd(one.sums.cost_nanos + one.sums.partial_nanos)
        sums[name] = SubsystemSums(before.calls + one.sums.calls, before.usd + spent)
    sums.pop("", None)
    return agent_day(sums, daily_budget_usd, table)


def agent_figures(day: AgentDay) -> list[tuple[str, str, str]]:
    """Return what the agent cost today beside the projections: what each figure is, how much, and what is to be said of it."""
    every = sum(day.ticks.values())
    parts = ", ".join(f"{name} {number * 100 / every:.0f} %" for name, number in day.ticks.items()) if every else ""
    found = [
        ("Agent today (UTC)", dollars(day.spent_usd), _worth(day)),
        ("Ticks today", count(every), parts),
    ]
    if day.scenario:
        words = f"a {day.scenario} day of {count(day.scenario_ticks)} ticks, whose tiers are nearest"
        found.append(("Heartbeats as projected", dollars(day.scenario_usd), words))
    if day.configured_usd is not None:
        found.append(("Day as projected", dollars(day.configured_usd), "by the table of routes that is configured"))
    found.append(("Without routing", dollars(day.unrouted_usd), "one model for every tick, as projected"))
    return found


def _worth(day: AgentDay) -> str:
    """Return what the money of the day is to the agent's life."""
    least, most = day.target_usd
    return (
        f"{day.dear_calls:.1f} calls of the dearest model or {day.cheap_calls:,.0f} of the cheapest; {day.life_days:.2f} days of life; "
        f"takes a credit of {dollars(day.credit_usd)}; the aim of a whole day is {dollars(least)} to {dollars(most)}"
    )


def agent_table(day: AgentDay) -> Table:
    """Return what each share of the day's budget paid for."""
    return Table(
        name="agent",
        caption="The agent's budget today, at full vitality",
        heads=_HEADS,
        rows=tuple(
            (
                Cell(one.name),
                count(one.calls),
                dollars(one.spent_usd),
                "no bound" if one.budget_usd is None else dollars(one.budget_usd),
                one.then,
            )
            for one in day.shares
        ),
    )
