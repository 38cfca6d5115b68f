"""What calls cost in a period: by day, model, provider, key, subsystem, operation or cause, as a chart and a table, and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from bardo.adapters.stores.log import CostGroup, Dimension, LogReader
from bardo.adapters.stores.log.rollup import DIMENSIONS, SECONDS_PER_DAY
from bardo.surfaces.panel.cost_charts import groups_chart, split_chart
from bardo.surfaces.panel.cost_tables import cause_table, figures_of, group_table, names_of, split_table
from bardo.surfaces.panel.pages import Download, Page, PanelRequest
from bardo.surfaces.panel.periods import CHOICES, OWN, Period, read_period
from bardo.surfaces.panel.tables import Pager, paged
from bardo.surfaces.panel.templating import query_text
from bardo.surfaces.render.cost_records import (
    CAUSE,
    CAUSE_CSV_COLUMNS,
    CSV_COLUMNS,
    cause_records,
    cost_records,
    costs_csv,
    estimates_note,
    sum_groups,
)

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

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
        """What the log sums by."""
        return cast("tuple[Dimension, ...]", tuple(one for one in (self.by, self.split) if one in DIMENSIONS))

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an address that mean this question."""
        return {"by": self.by, "split": self.split, **self.period.fields}


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page of a question."""
    question = _read_question(request.query, panel.context.runner.clock(), sees_all=request.viewer.operator)
    groups = await _groups(panel, request, question)
    names = names_of(panel.context.accounts) if request.viewer.operator else {}
    values = await _values(request, question, groups, names)
    return Page("costs.html", "Costs", values | await _agent_values(panel, request))


async def _agent_values(panel: Panel, request: PanelRequest) -> dict[str, object]:
    """Return what the page says of the operator's agent: nothing where there is none."""
    agent = panel.context.runner.agent
    if agent is None or not request.viewer.operator:
        return {"agent": None}
    # Read only where somebody has such an agent.
    from bardo.surfaces.panel.agent_tables import agent_figures, agent_table, day_of_agent

    since = panel.context.runner.clock() // SECONDS_PER_DAY * SECONDS_PER_DAY
    groups = await panel.read_log(lambda log: log.costs(("subsystem",), since=since))
    day = day_of_agent(groups, agent.settings.daily_budget_usd, agent.settings.routes)
    return {"agent": agent_table(day), "agent_figures": agent_figures(day)}


async def download(panel: Panel, request: PanelRequest) -> Download:
    """Return the sums of a question as CSV, as `bardo costs --csv` prints them."""
    question = _read_question(request.query, panel.context.runner.clock(), sees_all=request.viewer.operator)
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
        "by_choices": [(one, _DIMENSION_TITLES.get(one, one)) for one in words],
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
