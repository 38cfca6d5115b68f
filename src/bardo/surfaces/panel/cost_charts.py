"""Costs as charts of a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from bardo.adapters.stores.log import CostGroup
from bardo.surfaces.panel.charts import MOST_SERIES, Chart, Column, column_chart, row_chart
from bardo.surfaces.panel.cost_tables import amounts_by_day, name_text, unknown_by_day
from bardo.surfaces.panel.periods import Period, day_text
from bardo.surfaces.render.cost_records import CAUSE, cause_records
from bardo.surfaces.render.wording import dollars
from bardo.values.cost import usd

_MOST_DAYS = 120
"""Longer periods are drawn by month."""


def groups_chart(groups: Sequence[CostGroup], by: str, period: Period, names: Mapping[str, str]) -> Chart:
    """Return the cost of groups: of days beside each other, of others below each other."""
    title = f"Cost by {by}, {period.words}"
    if by == "day":
        return _by_day(
            {int(one.of["day"]): {"": one.sums.cost_nanos} for one in groups},
            unknown_by_day(groups),
            [""],
            title,
            names,
            "",
        )
    if by == CAUSE:
        records = cause_records(groups)
        rows = [
            Column(name_text(CAUSE, one[CAUSE], names), (usd(one["cost_nanos"] or 0),), one["calls"] or 0)
            for one in records
        ]
    else:
        rows = [
            Column(
                name_text(by, str(one.of[by]), names),  # type: ignore[index]
                (usd(one.sums.cost_nanos),),
                one.sums.calls - one.sums.cost_known,
            )
            for one in groups
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
