"""The costs page: a period by cause or by what calls have in common, as a chart, a table and CSV, and the day of the agent.

The agent's day stands beside what the documents project: what each share of the budget paid for, and how many ticks had which tier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec

from bardo.adapters.stores.log import CostGroup, Dimension, LogReader
from bardo.adapters.stores.log.rollup import DIMENSIONS, SECONDS_PER_DAY
from bardo.golem.rows import pressure_rows, route_rows, tier_rows
from bardo.golem.running import Means, budget_names, budget_of, budgets_of, workload_of_tier
from bardo.routing.tiers import daily_costs
from bardo.surfaces.panel.charts import MOST_SERIES, Chart, Column, column_chart, row_chart
from bardo.surfaces.panel.cost_tables import (
    amounts_by_day,
    cause_table,
    figures_of,
    group_table,
    name_text,
    names_of,
    split_table,
    unknown_by_day,
)
from bardo.surfaces.panel.pages import Download, Page, PanelRequest, query_text
from bardo.surfaces.panel.periods import CHOICES, OWN, Period, read_period
from bardo.surfaces.panel.tables import Cell, Head, Pager, Table, paged
from bardo.surfaces.render.costs import (
    CAUSE,
    CAUSE_CSV_COLUMNS,
    CSV_COLUMNS,
    cause_records,
    cost_records,
    costs_csv,
    day_text,
    estimates_note,
    sum_groups,
)
from bardo.surfaces.render.wording import count, dollars
from bardo.values.usage import usd

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel


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
        tier_rows().scenario, key=lambda one: sum(abs(one.share.get(name, 0.0) - part) for name, part in share.items())
    )
    return nearest.name, sum(daily_costs(nearest).values()), nearest.ticks


_MOST_DAYS = 120
"""Longer periods are drawn by month."""


def groups_chart(groups: Sequence[CostGroup], by: str, period: Period, names: Mapping[str, str]) -> Chart:
    """Return the cost of groups: of days beside each other, of others below each other."""
    title = f"Cost by {by}, {period.words}"
    if by == "day":
        return _by_day(
            {int(group.of["day"]): {"": group.sums.cost_nanos} for group in groups},
            unknown_by_day(groups),
            [""],
            title,
            names,
            "",
        )
    if by == CAUSE:
        records = cause_records(groups)
        rows = [
            Column(name_text(CAUSE, record[CAUSE], names), (usd(record["cost_nanos"] or 0),), record["calls"] or 0)
            for record in records
        ]
    else:
        rows = [
            Column(
                name_text(by, str(group.of[by]), names),  # type: ignore[index]
                (usd(group.sums.cost_nanos),),
                group.sums.calls - group.sums.cost_known,
            )
            for group in groups
        ]
    return row_chart("chart", title, rows, dollars)


def split_chart(groups: Sequence[CostGroup], split: str, period: Period, names: Mapping[str, str]) -> Chart:
    """Return the cost of days, each divided by something else."""
    days, series = amounts_by_day(groups, split)
    return _by_day(days, unknown_by_day(groups), series, f"Cost by day and {split}, {period.words}", names, split)


def _by_day(
    days: Mapping[int, Mapping[str, int | None]],
    unknown: Mapping[int, int],
    series: Sequence[str],
    title: str,
    names: Mapping[str, str],
    split: str,
) -> Chart:
    shown = series if len(series) <= MOST_SERIES + 1 else series[:MOST_SERIES]
    places = {name: place for place, name in enumerate(shown)}
    labels = [name_text(split, name, names) for name in shown]
    if len(shown) < len(series):
        labels.append(f"{len(series) - len(shown)} others")
    amounts: dict[str, list[int]] = defaultdict(lambda: [0] * len(labels))
    missing: dict[str, int] = defaultdict(int)
    for day, label in _column_days(days).items():
        missing[label] += unknown.get(day, 0)
        row = amounts[label]
        for name, nanos in days.get(day, {}).items():
            row[places.get(name, len(labels) - 1)] += nanos or 0
    columns = [Column(label, tuple(usd(one) for one in row), missing[label]) for label, row in amounts.items()]
    return column_chart("chart", title, columns, labels, dollars)


def _column_days(days: Mapping[int, object]) -> dict[int, str]:
    """Return the days from the first to the last with the label of their column, days without calls among them."""
    first, last = min(days), max(days)
    if last - first < _MOST_DAYS:
        return {day: day_text(day)[5:] for day in range(first, last + 1)}
    return {day: day_text(day)[:7] for day in sorted(days)}


_PATH = "/panel/costs"
_DIMENSION_TITLES = {"key": "key", "subsystem": "subsystem", CAUSE: "cause"}
_SPLITS = ("provider", "model", "key", "subsystem", "operation", CAUSE)


class CostQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: the sums of a period `by` something, and of each day also by `split`, which is empty for none."""

    by: str
    split: str
    period: Period

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """What the log sums by: sessions with their keys, two of which may give two sessions one name."""
        words = (self.by, self.split, *(("key",) if self.by == "session" else ()))
        return cast("tuple[Dimension, ...]", tuple(word for word in words if word in DIMENSIONS))

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an address that mean this question."""
        return {"by": self.by, "split": self.split, **self.period.fields}


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page of a question."""
    question = _read_question(request.query, panel.context.services.clock(), sees_all=request.viewer.operator)
    groups = await _groups(panel, request, question)
    names = names_of(panel.context.accounts) if request.viewer.operator else {}
    values = await _values(request, question, groups, names)
    return Page("costs.html", "Costs", values | await _agent_values(panel, request))


async def _agent_values(panel: Panel, request: PanelRequest) -> dict[str, object]:
    """Return what the page says of the operator's agent: nothing where there is none."""
    agent = panel.context.services.agent
    if agent is None or not request.viewer.operator:
        return {"agent": None}
    # Read only where somebody has such an agent.

    since = panel.context.services.clock() // SECONDS_PER_DAY * SECONDS_PER_DAY
    groups = await panel.read_log(lambda log: log.costs(("subsystem",), since=since))
    day = day_of_agent(groups, agent.settings.daily_budget_usd, agent.settings.routes)
    return {"agent": agent_table(day), "agent_figures": agent_figures(day)}


async def download(panel: Panel, request: PanelRequest) -> Download:
    """Return the sums of a question as CSV, as `bardo costs --csv` prints them."""
    question = _read_question(request.query, panel.context.services.clock(), sees_all=request.viewer.operator)
    groups = await _groups(panel, request, question)
    by_cause = CAUSE in (question.by, question.split)
    records = cause_records(groups) if by_cause else cost_records(groups)
    columns = (*question.dimensions, *(CAUSE_CSV_COLUMNS if by_cause else CSV_COLUMNS))
    name = "-".join(["bardo-costs", question.by, *filter(None, [question.split])])
    return Download(f"{name}.csv", "text/csv; charset=utf-8", costs_csv(records, columns).encode())


async def _groups(panel: Panel, request: PanelRequest, question: CostQuestion) -> list[CostGroup]:
    period, key = question.period, request.viewer.key_id

    def read(log: LogReader) -> list[CostGroup]:
        return log.costs(question.dimensions, since=period.since, until=period.until, key=key)

    return await panel.read_log(read)


def _read_question(query: Mapping[str, str], now: float, *, sees_all: bool) -> CostQuestion:
    """Return what a query asks for; what is not known there, or not for this viewer, is as if it were left out."""
    words = _choices(sees_all=sees_all)
    by = query.get("by", "")
    by = by if by in words else "day"
    split = query.get("split", "")
    split = split if by == "day" and split in words and split in _SPLITS else ""
    return CostQuestion(by=by, split=split, period=read_period(query, now))


def _choices(*, sees_all: bool) -> list[str]:
    return [one for one in (*DIMENSIONS, CAUSE) if sees_all or one != "key"]


async def _values(
    request: PanelRequest, question: CostQuestion, groups: Sequence[CostGroup], names: Mapping[str, str]
) -> dict[str, object]:
    words = _choices(sees_all=request.viewer.operator)
    values: dict[str, object] = {
        "question": question,
        "by_choices": [(word, _DIMENSION_TITLES.get(word, word)) for word in words],
        "split_choices": [("", "none"), *((one, _DIMENSION_TITLES.get(one, one)) for one in words if one in _SPLITS)],
        "period_choices": [*((name, words) for name, (words, _) in CHOICES.items()), (OWN, "custom dates")],
        "figures": figures_of(sum_groups(groups)),
        "estimates": estimates_note(sum_groups(groups)),
        "csv": f"{_PATH}.csv?{query_text(question.fields)}",
    }
    pager: Pager | None
    if question.split:
        table, pager = split_table(groups, question.split, question.period, names, _PATH, request.query)
        chart = split_chart(groups, question.split, question.period, names) if groups else None
    elif question.by == CAUSE:
        table, pager = cause_table(groups, question.period), None
        chart = groups_chart(groups, CAUSE, question.period, names) if groups else None
    else:
        ordered = cost_records(groups)[:: -1 if question.by == "day" else 1]
        visible_text, pager = paged(ordered, _PATH, {**request.query})
        table = group_table(visible_text, sum_groups(groups), question.by, question.period, names)
        chart = groups_chart(groups, question.by, question.period, names) if groups else None
    return {**values, "table": table, "pager": pager, "chart": chart}


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
    for group in groups:
        name = str(group.of["subsystem"])
        before = sums.get(name, SubsystemSums(0, 0.0))
        spent = usd(group.sums.cost_nanos + group.sums.partial_nanos)
        sums[name] = SubsystemSums(before.calls + group.sums.calls, before.usd + spent)
    sums.pop("", None)
    return agent_day(sums, daily_budget_usd, table)


def agent_figures(day: AgentDay) -> list[tuple[str, str, str]]:
    """Return what the agent cost today beside the projections: what each figure is, how much, and what is to be said of it."""
    every = sum(day.ticks.values())
    parts = ", ".join(f"{name} {number * 100 / every:.0f} %" for name, number in day.ticks.items()) if every else ""
    least, most = day.target_usd
    worth = (
        f"{day.dear_calls:.1f} calls of the dearest model or {day.cheap_calls:,.0f} of the cheapest; {day.life_days:.2f} days of life; "
        f"takes a credit of {dollars(day.credit_usd)}; the aim of a whole day is {dollars(least)} to {dollars(most)}"
    )
    found = [("Agent today (UTC)", dollars(day.spent_usd), worth), ("Ticks today", count(every), parts)]
    if day.scenario:
        words = f"a {day.scenario} day of {count(day.scenario_ticks)} ticks, whose tiers are nearest"
        found.append(("Heartbeats as projected", dollars(day.scenario_usd), words))
    if day.configured_usd is not None:
        found.append(("Day as projected", dollars(day.configured_usd), "by the table of routes that is configured"))
    found.append(("Without routing", dollars(day.unrouted_usd), "one model for every tick, as projected"))
    return found


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
