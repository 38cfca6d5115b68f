"""What calls cost, as tables for people and as records for programs and pages: an unknown cost is said to be unknown, and is not 0."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from bardo.adapters.stores.log import CallSums, CostGroup, Dimension
from bardo.adapters.stores.log.rollup import DIMENSIONS
from bardo.surfaces.render.tables import Column, TextTable, table
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars
from bardo.values.error_cleaning import table_cell
from bardo.values.errors import InvalidRequest
from bardo.values.usage import usd

CAUSE = "cause"
USUAL_DIMENSIONS: tuple[Dimension, ...] = ("provider", "model")
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
    return {name: day_text(value) if isinstance(value, int) else value for name, value in group.of.items()}


def day_text(day: int) -> str:
    """Write a day: `2026-11-23`."""
    try:
        return date.fromordinal(_EPOCH + day).isoformat()
    except (ValueError, OverflowError):
        return str(day)


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
        **_estimates(sums),
        "reported_usd": usd(sums.reported_nanos) if compared else None,
        "computed_usd": usd(sums.computed_nanos) if compared else None,
        "difference_usd": usd(sums.reported_nanos - sums.computed_nanos) if compared else None,
        "compared": sums.compared,
        "saved_usd": usd(sums.saved_nanos) if sums.saved_known else None,
        "parts": dict(sums.parts),
    }


def _estimates(sums: CallSums) -> dict[str, Any]:
    """Return how many calls the sums hold estimates of, and their part of the cost."""
    return {
        "estimated_calls": sums.estimated_calls,
        "estimated_usd": usd(sums.estimated_nanos),
        "thinking_estimated_calls": sums.estimated_calls + sums.thinking_estimated,
    }


def _causes(group: CostGroup) -> Iterator[dict[str, Any]]:
    sums, common = group.sums, common_fields(group)
    estimated = {"estimated": sums.estimated_nanos != 0}
    for cause, nanos in sorted(sums.parts.items(), key=lambda part: -part[1]):
        if nanos:
            yield {**common, CAUSE: cause, "cost_usd": usd(nanos), "cost_nanos": nanos, "calls": None, **estimated}
    rest = sums.cost_nanos - sum(sums.parts.values())
    if rest:
        yield {**common, CAUSE: NOT_SPLIT, "cost_usd": usd(rest), "cost_nanos": rest, "calls": None, **estimated}
    unknown = sums.calls - sums.cost_known
    if unknown:
        yield {**common, CAUSE: UNKNOWN, "cost_usd": None, "cost_nanos": None, "calls": unknown, "estimated": False}


def costs_csv(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """Write records as CSV with a head. What is not known is empty.

    Clients choose names: one that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        cells = [record[name] for name in columns]
        writer.writerow([table_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


CSV_COLUMNS = (
    "calls", "failed", "input_tokens", "output_tokens", "reasoning_tokens", "cached_input_tokens", "cache_write_tokens", "cost_usd",
    "cost_nanos", "cost_known", "cost_unknown", "reported_usd", "computed_usd", "difference_usd", "saved_usd", "estimated_calls",
    "estimated_usd", "thinking_estimated_calls",
)  # fmt: skip
CAUSE_CSV_COLUMNS = (CAUSE, "cost_usd", "cost_nanos", "calls", "estimated")


def read_dimensions(by: Sequence[str] | None) -> tuple[tuple[Dimension, ...], bool]:
    """Return what costs are summed by, and whether they are split by cause. Raises InvalidRequest."""
    words = [word.strip().lower() for one in by or () for word in one.split(",") if word.strip()]
    unknown = [word for word in words if word != CAUSE and word not in DIMENSIONS]
    if unknown:
        hint = f"costs are summed by {', '.join(DIMENSIONS)} and {CAUSE}"
        raise InvalidRequest(f"--by does not understand {unknown[0]!r}", hint=hint)
    if not words:
        return USUAL_DIMENSIONS, False
    if "session" in words and "key" not in words:
        # Two keys may give two sessions one name.
        words.insert(words.index("session"), "key")
    return tuple([one for one in dict.fromkeys(words) if one != CAUSE]), CAUSE in words  # type: ignore[misc]


def totals_record(groups: Sequence[CostGroup]) -> dict[str, Any]:
    """Return calls and cost of all groups together."""
    sums = sum_groups(groups)
    return {
        "calls": sums.calls,
        "failed": sums.failed,
        "cost_usd": usd(sums.cost_nanos) if sums.cost_known else None,
        "cost_nanos": sums.cost_nanos if sums.cost_known else None,
        "cost_known": sums.cost_known,
        "cost_unknown": sums.calls - sums.cost_known,
        "partial_usd": usd(sums.partial_nanos),
        **_estimates(sums),
    }


def sum_groups(groups: Sequence[CostGroup]) -> CallSums:
    """Return the sums of all groups together."""
    whole = CallSums()
    for group in groups:
        whole.add(group.sums)
    return whole


def totals_text(groups: Sequence[CostGroup]) -> str:
    """Write calls and cost of all groups together, and what is estimated of them."""
    sums = sum_groups(groups)
    spent = dollars(usd(sums.cost_nanos) if sums.cost_known else None, estimated=sums.estimated_nanos != 0)
    part = "" if sums.cost_known in (0, sums.calls) else f" for the {sums.cost_known:,} whose cost is known"
    at_least = f"; of the others {dollars(usd(sums.partial_nanos))} at least" if sums.partial_nanos else ""
    note = estimates_note(sums)
    return f"{sums.calls:,} calls, cost {spent}{part}{at_least}" + (f"\n{note}" if note else "")


def estimates_note(sums: CallSums) -> str:
    """Say what `~` before a figure means, where sums hold estimates; nothing where they are exact."""
    parts = []
    if sums.estimated_calls:
        of_cost = f", {dollars(usd(sums.estimated_nanos))} of the cost" if sums.estimated_nanos else ""
        parts.append(f"replies that did not come to their end ({_calls(sums.estimated_calls)}{of_cost})")
    if sums.thinking_estimated:
        parts.append(f"thinking that was not counted apart from the answer ({_calls(sums.thinking_estimated)})")
    return f"~ holds estimates: of {' and of '.join(parts)}" if parts else ""


def _calls(number: int) -> str:
    return f"{number:,} call{'s' * (number != 1)}"


def costs_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> TextTable:
    """Return calls, tokens and cost of each group."""
    # What may go first where there is little room.
    heads = {
        "calls": 0,
        "failed": 4,
        "in": 0,
        "out": 0,
        "thinking": 3,
        "cost": 0,
        "cached": 6,
        "saved": 7,
        "difference": 5,
    }
    columns = (*_common_columns(by), *(Column(head, right=True, drop=drop) for head, drop in heads.items()), Column(""))
    return table(columns, ((*_common_cells(record, by), *_cells(record)) for record in records))


def caches_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> TextTable:
    """Return what prompt caches read, wrote and saved in each group, that in which they saved most first."""
    heads = ("calls", "in", "cached", "written", "saved")
    names = ("calls", "input_tokens", "cached_input_tokens", "cache_write_tokens")
    ordered = sorted(records, key=lambda one: -(one["saved_usd"] or 0))
    rows = [
        (*_common_cells(one, by), *(count(one[name]) for name in names), dollars(one["saved_usd"])) for one in ordered
    ]
    return table((*_common_columns(by), *(Column(head, right=True) for head in heads)), rows)


def causes_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> TextTable:
    """Return the cost of each cause in each group."""
    columns = (*_common_columns(by), Column(CAUSE), Column("cost", right=True), Column(""))
    return table(columns, ((*_common_cells(record, by), *_cause_cells(record)) for record in records))


def _common_columns(by: Sequence[Dimension]) -> tuple[Column, ...]:
    return tuple([Column(name, keep=True) for name in by])


def _common_cells(record: dict[str, Any], by: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple([record[name] or ("nobody" if name == "provider" else NOT_REPORTED) for name in by])


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    known, calls = record["cost_known"], record["calls"]
    difference = record["difference_usd"]
    return (
        count(calls),
        count(record["failed"]),
        count(record["input_tokens"], estimated=record["estimated_calls"] > 0),
        count(record["output_tokens"], estimated=record["estimated_calls"] > 0),
        count(record["reasoning_tokens"], estimated=record["thinking_estimated_calls"] > 0),
        dollars(record["cost_usd"], estimated=record["estimated_usd"] != 0),
        count(record["cached_input_tokens"]),
        "" if record["saved_usd"] is None else dollars(record["saved_usd"]),
        "" if difference is None else dollars(difference),
        f"for {known:,} of {calls:,}" if 0 < known < calls else "",
    )


def _cause_cells(record: dict[str, Any]) -> tuple[str, ...]:
    unknown = record["calls"]
    cost = dollars(record["cost_usd"], estimated=record["estimated"])
    return record[CAUSE], cost, "" if unknown is None else f"{unknown:,} calls"
