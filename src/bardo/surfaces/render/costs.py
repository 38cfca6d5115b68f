"""What calls cost, as tables for people: what is not known is said to be unknown, and is not 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.adapters.stores.log import Dimension
from bardo.surfaces.render.cost_records import CAUSE
from bardo.surfaces.render.tables import Column, TextTable, table
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars


def costs_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> TextTable:
    """Return calls, tokens and cost of each group."""
    # What may go first where there is little room.
    heads = {"calls": 0, "failed": 4, "in": 0, "out": 0, "thinking": 3, "cost": 0, "difference": 5}
    columns = (*_common_columns(by), *(Column(head, right=True, drop=drop) for head, drop in heads.items()), Column(""))
    return table(columns, ((*_common_cells(one, by), *_cells(one)) for one in records))


def causes_table(records: Sequence[dict[str, Any]], by: Sequence[Dimension]) -> TextTable:
    """Return the cost of each cause in each group."""
    columns = (*_common_columns(by), Column(CAUSE), Column("cost", right=True), Column(""))
    return table(columns, ((*_common_cells(one, by), *_cause_cells(one)) for one in records))


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
        "" if difference is None else dollars(difference),
        f"for {known:,} of {calls:,}" if 0 < known < calls else "",
    )


def _cause_cells(record: dict[str, Any]) -> tuple[str, ...]:
    unknown = record["calls"]
    cost = dollars(record["cost_usd"], estimated=record["estimated"])
    return record[CAUSE], cost, "" if unknown is None else f"{unknown:,} calls"
