"""The tables of docs/reference/golem.md, from the rows of the documents' agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bardo.golem.preset import compute_reasoning_budgets
from bardo.golem.rows import intent_rows, pipeline_rows, pressure_rows, profile_rows, route_rows, tick_rows, tier_rows
from bardo.golem.schemas import SUBSYSTEM_ANSWERS
from bardo.routing.profiles import set_fields
from bardo.routing.tiers import daily_costs

Table = tuple[Sequence[str], Iterator[Sequence[str]]]


def intents() -> Table:
    """Return what each subsystem needs."""
    columns = ("subsystem", "quality", "required", "preferred", "cost sensitivity")
    rows = (
        (f"`{row.name}`", row.quality, _code(row.require), _code(row.prefer), f"{row.cost_sensitivity:g}")
        for row in intent_rows()
    )
    return columns, rows


def profiles() -> Table:
    """Return how each subsystem is answered."""
    columns = ("subsystem", "asks as", "parameters", "typed answer", "locked")
    rows = (
        (
            f"`{row.name}`",
            f"`{row.intent or row.name}`",
            ", ".join(f"`{name}` {_plain(value)}" for name, value in set_fields(row.parameters).items()),
            f"`{SUBSYSTEM_ANSWERS[row.name].__name__}`" if row.name in SUBSYSTEM_ANSWERS else "",
            "yes" if row.locked else "",
        )
        for row in profile_rows().profile
    )
    return columns, rows


def pipelines() -> Table:
    """Return which layers each pipeline profile has, and which subsystems get it."""
    columns = ("pipeline", "layers", "milliseconds", "for", "subsystems")
    rules = pipeline_rows()
    rows = (
        (
            f"`{row.name}`",
            ", ".join(row.layers),
            f"{row.milliseconds[0]:g} to {row.milliseconds[1]:g}",
            row.purpose,
            _code([choice.subsystem for choice in rules.choice if choice.pipeline == row.name]),
        )
        for row in rules.profile
    )
    return columns, rows


def budgets() -> Table:
    """Return each subsystem's share of a day, healthy and dying, and what it does when that is spent."""
    columns = ("subsystem", "share, healthy", "share, dying", "when it is spent")
    healthy, dying = compute_reasoning_budgets(1.0, 100.0), compute_reasoning_budgets(0.0, 100.0)
    spent = {row.subsystem: row.why for row in pressure_rows().budgets.spent}
    rows = ((f"`{name}`", _share(healthy[name].usd), _share(dying[name].usd), spent.get(name, "")) for name in healthy)
    return columns, rows


def tiers() -> Table:
    """Return the tiers."""
    columns = ("tier", "handled by", "models", "dollars a call", "when", "share of ticks")
    rows = (
        (
            row.name,
            row.handler,
            _code(row.models),
            f"{row.cost_usd[0]:g} to {row.cost_usd[1]:g}" if any(row.cost_usd) else "0",
            row.trigger,
            f"{row.share:.0%}",
        )
        for row in tier_rows().tier
    )
    return columns, rows


def tier_rules() -> Table:
    """Return the rules that choose a tier."""
    columns = ("signal", "", "tier", "because")
    rows = (
        (f"`{row.signal}`", f"`{row.comparison} {_plain(row.value)}`", row.tier, row.why) for row in tier_rows().rule
    )
    return columns, rows


def scenarios() -> Table:
    """Return what a day costs."""
    columns = ("day", "ticks", "T0, T1, T2", "dollars a day")
    rows = (
        (
            row.name,
            str(row.ticks),
            ", ".join(f"{share:.0%}" for share in row.share.values()),
            f"{sum(daily_costs(row).values()):.3f}",
        )
        for row in tier_rows().scenario
    )
    return columns, rows


def ticks() -> Table:
    """Return the kinds of ticks, and the words of their tools."""
    return ("kind of tick", "words in the names of its tools"), (
        (f"`{row.name}`", _code(sorted(row.tools))) for row in tick_rows().kind
    )


def routing() -> Table:
    """Return the two concrete tables of routes."""
    tables = route_rows().table
    columns = ("subsystem", *(f"`{table.name}` (${table.daily_cost_usd:.2f} a day)" for table in tables))
    names = dict.fromkeys(row.subsystem for table in tables for row in table.rows)
    rows = (
        (f"`{name}`", *(f"`{row.provider}/{row.model}`" if (row := table.row(name)) else "" for table in tables))
        for name in names
    )
    return columns, rows


def routes() -> Table:
    """Return the routes of subsystems, step by step."""
    columns = ("subsystem", "step", "models", "providers", "variant", "lost", "why")
    rows = (
        (
            f"`{route.subsystem}`",
            str(number),
            _code(step.models),
            _code(step.providers) or "any",
            f"`:{step.variant}`" if step.variant else "",
            _code(step.lost),
            step.why,
        )
        for route in route_rows().route
        for number, step in enumerate(route.step, 1)
    )
    return columns, rows


TABLES: dict[str, Callable[[], Table]] = {
    "golem-intents": intents,
    "golem-profiles": profiles,
    "golem-pipelines": pipelines,
    "golem-budgets": budgets,
    "golem-tiers": tiers,
    "golem-tier-rules": tier_rules,
    "golem-scenarios": scenarios,
    "golem-ticks": ticks,
    "golem-routing": routing,
    "golem-routes": routes,
}


def _code(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _share(usd: float) -> str:
    return "no bound" if usd == float("inf") else f"{usd:g} %"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
