"""What calls cost, as records for programs and as tables for people: what is not known is said to be unknown, and is not 0."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from bardo.edge.log import CostGroup, Dimension
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars, printable
from bardo.values.cost import usd

if TYPE_CHECKING:
    from rich.table import Table

CAUSE = "cause"
UNKNOWN, NOT_SPLIT = "unknown", "not split"
_TOKENS = (
    ("input_tokens", "input_known"),
    ("output_tokens", "output_known"),
    ("reasoning_tokens", "reasoning_known"),
    ("cached_input_tokens", "cached_known"),
    ("cache_write_tokens", "written_known"),
)
_EPOCH = date(1970, 1, 1).toordinal()


def cost_records(groups: Sequence[CostGroup]) -> list[dict[str, Any]]:
    """Return a record of each group: by day in its order, else most calls first."""
    ordered = groups if any("day" in one.of for one in groups) else sorted(groups, key=lambda one: -one.sums.calls)
    return [_record(group) for group in ordered]


def cause_records(groups: Sequence[CostGroup]) -> list[dict[str, Any]]:
    """Return a record of each cause in each group. The last ones tell what is not split by cause, and what is unknown of how many calls."""
    return [record for group in groups for record in _causes(group)]


def common_fields(group: CostGroup) -> dict[str, str]:
    """Return what the calls of a group have in common, with the day as a date."""
    return {name: _day(value) if isinstance(value, int) else value for name, value in group.of.items()}


def _day(number: int) -> str:
    try:
        return date.fromordinal(_EPOCH + number).isoformat()
    except (ValueError, OverflowError):
        return str(number)


def _record(group: CostGroup) -> dict[str, Any]:
    sums = group.sums
    tokens = {name: getattr(sums, name) if getattr(sums, known) else None for name, known in _TOKENS}
    compared = sums.compared > 0
    return {
        **common_fields(group),
        "calls": sums.calls,
        "failed": sums.failed,
        "seconds": sums.seconds,
        **tokens,
        "reasoning_known": sums.reasoning_known,
        "cost_usd": usd(sums.cost_nanos) if sums.cost_known else None,
        "cost_nanos": sums.cost_nanos if sums.cost_known else None,
        "cost_known": sums.cost_known,
        "cost_unknown": sums.calls - sums.cost_known,
        "partial_usd": usd(sums.partial_nanos),
        "reported_usd": usd(sums.reported_nanos) if compared else None,
        "computed_usd": usd(sums.computed_nanos) if compared else None,
        "difference_usd": usd(sums.reported_nanos - sums.computed_nanos) if compared else None,
        "compared": sums.compared,
        "saved_usd": usd(sums.saved_nanos) if sums.saved_known else None,
        "parts": dict(sums.parts),
    }


def _causes(group: CostGroup) -> Iterator[dict[str, Any]]:
    sums, common = group.sums, common_fields(group)
    for cause, nanos in sorted(sums.parts.items(), key=lambda part: -part[1]):
        if nanos:
            yield {**common, CAUSE: cause, "cost_usd": usd(nanos), "cost_nanos": nanos, "calls": None}
    rest = sums.cost_nanos - sum(sums.parts.values())
    if rest:
        yield {**common, CAUSE: NOT_SPLIT, "cost_usd": usd(rest), "cost_nanos": rest, "calls": None}
    unknown = sums.calls - sums.cost_known
    if unknown:
        yield {**common, CAUSE: UNKNOWN, "cost_usd": None, "cost_nanos": None, "calls": unknown}


def costs_csv(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """Write records as CSV with a head. What is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        cells = [record[name] for name in columns]
        writer.writerow([printable(one) if isinstance(one, str) else one for one in cells])
    return text.getvalue()


CSV_COLUMNS = (
    "calls", "failed", "input_tokens", "output_tokens", "reasoning_tokens", "cached_input_tokens", "cache_write_tokens", "cost_usd",
    "cost_nanos", "cost_known", "cost_unknown", "reported_usd", "computed_usd", "difference_usd", "saved_usd",
)  # fmt: skip
CAUSE_CSV_COLUMNS = (CAUSE, "cost_usd", "cost_nanos", "calls")


def costs_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> Table:
    """Return calls, tokens and cost of each group."""
    heads = ("calls", "failed", "in", "out", "thinking", "cost", "difference")
    columns = (*_common_columns(by), *(Column(head, right=True) for head in heads), Column(""))
    return table(columns, ((*_common_cells(one, by), *_cells(one)) for one in records))


def causes_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> Table:
    """Return the cost of each cause in each group."""
    columns = (*_common_columns(by), Column(CAUSE), Column("cost", right=True), Column(""))
    return table(columns, ((*_common_cells(one, by), *_cause_cells(one)) for one in records))


def _common_columns(by: Sequence[Dimension]) -> tuple[Column, ...]:
    return tuple([Column(name, cut=name == "model") for name in by])


def _common_cells(record: dict[str, Any], by: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple([record[name] or ("nobody" if name == "provider" else NOT_REPORTED) for name in by])


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    known, calls = record["cost_known"], record["calls"]
    difference = record["difference_usd"]
    return (
        count(calls),
        count(record["failed"]),
        count(record["input_tokens"]),
        count(record["output_tokens"]),
        count(record["reasoning_tokens"]),
        dollars(record["cost_usd"]),
        "" if difference is None else dollars(difference),
        f"for {known:,} of {calls:,}" if 0 < known < calls else "",
    )


def _cause_cells(record: dict[str, Any]) -> tuple[str, ...]:
    unknown = record["calls"]
    return record[CAUSE], dollars(record["cost_usd"]), "" if unknown is None else f"{unknown:,} calls"
