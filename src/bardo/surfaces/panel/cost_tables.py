"""Costs as tables of a page. Each sum is exact; a cost that is not known is said to be unknown, and is not 0."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from bardo.adapters.stores.log import CallSums, CostGroup
from bardo.services.accounts.accounts import Accounts
from bardo.surfaces.panel.periods import Period
from bardo.surfaces.panel.tables import Cell, Head, Pager, Table, paged
from bardo.surfaces.render.costs import CAUSE, NOT_SPLIT, UNKNOWN, cause_records, day_text
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars
from bardo.values.usage import exact_dollars, usd

_MISSING = {
    "provider": "none",
    "key": "no key",
    "subsystem": "none",
    "session": "no session",
    "agent": "not known",
    "repository": "not known",
}
_HEADS = (
    Head("calls", number=True),
    Head("failed", number=True),
    Head("input", number=True),
    Head("output", number=True),
    Head("thinking", number=True),
    Head("cost", number=True),
    Head("saved by caching", number=True),
)
CAUSE_WORDS = {
    "input": "input",
    "cache_read": "cache read",
    "cache_write": "cache write",
    "answer": "answer",
    "thinking": "thinking",
    "fee": "fees",
    "retry": "retries",
    "failover": "failovers: attempts before another provider answered",
    "escalation": "escalations: cheaper models tried first",
    "repair": "repairs of typed answers",
    "hedge": "hedging: the slower of two calls",
    NOT_SPLIT: "not split by cause",
    UNKNOWN: "unknown",
}


def names_of(accounts: Accounts | None) -> dict[str, str]:
    """Return the names of keys by their ids; those without a name are left out."""
    return {} if accounts is None else {one.id: one.name for one in accounts.known if one.name}


def name_text(dimension: str, value: str, names: Mapping[str, str]) -> str:
    """Return what calls have in common, in words."""
    if dimension == CAUSE:
        return CAUSE_WORDS.get(value, value)
    return (names.get(value) if dimension == "key" else "") or value or _MISSING.get(dimension, NOT_REPORTED)


def figures_of(sums: CallSums) -> list[tuple[str, str, str]]:
    """Return the sums of a period: what each is, how much, and what is to be said of it."""
    unknown = sums.calls - sums.cost_known
    parts = [f"for {count(sums.cost_known)} calls of known cost"] if unknown and sums.cost_known else []
    parts += [f"others: at least {dollars(usd(sums.partial_nanos))}"] if sums.partial_nanos else []
    saved = dollars(usd(sums.saved_nanos)) if sums.saved_known else "unknown"
    cost = dollars(usd(sums.cost_nanos), estimated=sums.estimated_nanos != 0)
    saved_text = f"known for {count(sums.saved_known)} calls" if sums.saved_known != sums.calls else ""
    return [
        ("Cost", cost if sums.cost_known or not sums.calls else "unknown", "; ".join(parts)),
        ("Calls", count(sums.calls), f"{count(sums.failed)} failed" if sums.failed else ""),
        ("Calls of unknown cost", count(unknown), ""),
        ("Saved by prompt caches", saved if sums.calls else dollars(0), saved_text),
    ]


def exact_text(nanos: int, *, estimated: bool = False) -> str:
    """Write nano-dollars by all their digits, with two at least: `$12.50`, `$0.000000001`, and `~$12.50` where they hold an estimate."""
    whole, _, part = exact_dollars(abs(nanos)).partition(".")
    return f"{'~' * estimated}{'-' if nanos < 0 else ''}${int(whole):,}.{part.ljust(2, '0')}"


def group_table(
    records: Sequence[Mapping[str, Any]], whole: CallSums, by: str, period: Period, names: Mapping[str, str]
) -> Table:
    """Return calls, tokens and cost of groups, and the sums of all."""
    return Table(
        name="costs",
        caption=f"Calls by {by}, {period.words}",
        heads=(Head(by, wrap=by != "day"), *_HEADS, Head("", wrap=True)),
        rows=tuple((_name_cell(by, record, names), *_cells(record)) for record in records),
        foot=("total", *_foot(whole)),
        empty=f"No calls {period.words}.",
    )


def _name_cell(by: str, record: Mapping[str, Any], names: Mapping[str, str]) -> Cell:
    value = str(record[by])
    named = name_text(by, value, names)
    if by == "session":
        return Cell(named, below=name_text("key", str(record["key"]), names))
    if by != "key" or not value:
        return Cell(named)
    return Cell(named, href=f"/panel/keys/{quote(value, safe='')}", below=value if named != value else "")


def _cells(record: Mapping[str, Any]) -> tuple[str, ...]:
    known, calls = record["cost_known"], record["calls"]
    return (
        count(calls),
        count(record["failed"]),
        count(record["input_tokens"], estimated=record["estimated_calls"] > 0),
        count(record["output_tokens"], estimated=record["estimated_calls"] > 0),
        count(record["reasoning_tokens"], estimated=record["thinking_estimated_calls"] > 0),
        dollars(record["cost_usd"], estimated=record["estimated_usd"] != 0),
        NOT_REPORTED if record["saved_usd"] is None else dollars(record["saved_usd"]),
        _unknown_note(known, calls),
    )


def _foot(sums: CallSums) -> tuple[str, ...]:
    estimated = sums.estimated_calls > 0
    tokens = (
        (sums.input_tokens, sums.input_known, estimated),
        (sums.output_tokens, sums.output_known, estimated),
        (sums.reasoning_tokens, sums.reasoning_known, estimated or sums.thinking_estimated > 0),
    )
    return (
        count(sums.calls),
        count(sums.failed),
        *(count(amount if known else None, estimated=approximate) for amount, known, approximate in tokens),
        exact_text(sums.cost_nanos, estimated=sums.estimated_nanos != 0) if sums.cost_known else "unknown",
        exact_text(sums.saved_nanos) if sums.saved_known else NOT_REPORTED,
        _unknown_note(sums.cost_known, sums.calls),
    )


def _unknown_note(known: int, calls: int) -> str:
    return f"cost known for {known:,} of {calls:,}" if 0 < known < calls else ""


def cause_table(groups: Sequence[CostGroup], period: Period) -> Table:
    """Return the cost of each cause, and of how many calls it is unknown."""
    records = cause_records(groups)
    whole = sum(record["cost_nanos"] or 0 for record in records)
    rows = []
    for one in records:
        unknown = one["calls"]
        share = f"{one['cost_nanos'] / whole:.1%}" if one["cost_nanos"] and whole else ""
        cost = "unknown" if one["cost_nanos"] is None else exact_text(one["cost_nanos"], estimated=one["estimated"])
        rows.append(
            (CAUSE_WORDS.get(one[CAUSE], one[CAUSE]), cost, share, "" if unknown is None else f"{unknown:,} calls")
        )
    return Table(
        name="costs",
        caption=f"Cost by cause, {period.words}",
        heads=(Head("cause", wrap=True), Head("cost", number=True), Head("share", number=True), Head("")),
        rows=tuple(rows),
        foot=("total", exact_text(whole, estimated=any(one["estimated"] for one in records)), "", ""),
        empty=f"No calls {period.words}.",
    )


def split_table(
    groups: Sequence[CostGroup],
    split: str,
    period: Period,
    names: Mapping[str, str],
    path: str,
    query: Mapping[str, str],
) -> tuple[Table, Pager]:
    """Return the cost of each day by something else, one column for each of it, the costliest first."""
    days, series = amounts_by_day(groups, split)
    shown, pager = paged(sorted(days, reverse=True), path, query)
    heads = [Head(name_text(split, one, names), number=True) for one in series]
    unknown = unknown_by_day(groups)
    estimated = {
        (int(group.of["day"]), name)
        for group in groups
        if group.sums.estimated_nanos
        for name, nanos in _parts(group, split)
        if nanos is not None
    }
    rows = []
    for day in shown:
        cells = [_amount(days[day].get(one), estimated=(day, one) in estimated) for one in series]
        known = [nanos for nanos in days[day].values() if nanos is not None]
        whole = dollars(usd(sum(known)), estimated=any((day, one) in estimated for one in series))
        remark = f"{unknown[day]:,} calls of unknown cost" if unknown[day] else ""
        rows.append((day_text(day), whole if known else "unknown", *cells, remark))
    return Table(
        name="costs",
        caption=f"Cost by day and {split}, {period.words}",
        heads=(Head("day"), Head("known cost", number=True), *heads, Head("")),
        rows=tuple(rows),
        empty=f"No calls {period.words}.",
    ), pager


def _amount(nanos: int | None, *, estimated: bool) -> str:
    return "" if nanos is None else dollars(usd(nanos), estimated=estimated)


def amounts_by_day(groups: Sequence[CostGroup], split: str) -> tuple[dict[int, dict[str, int | None]], list[str]]:
    """Return the nano-dollars of each day by something else, and all there is of it, the costliest first.

    None stands where there are calls, and the cost of none is known.
    """
    days: dict[int, dict[str, int | None]] = defaultdict(dict)
    whole: dict[str, int] = defaultdict(int)
    for group in groups:
        of_day = days[int(group.of["day"])]
        for name, nanos in _parts(group, split):
            before = of_day.get(name)
            of_day[name] = nanos if before is None else before + (nanos or 0)
            whole[name] += nanos or 0
    return dict(days), sorted(whole, key=lambda name: (-whole[name], name))


def _parts(group: CostGroup, split: str) -> list[tuple[str, int | None]]:
    if split == CAUSE:
        return [(one[CAUSE], one["cost_nanos"]) for one in cause_records([group]) if one["cost_nanos"] is not None]
    sums = group.sums
    return [(str(group.of[split]), sums.cost_nanos if sums.cost_known else None)]  # type: ignore[index]


def unknown_by_day(groups: Sequence[CostGroup]) -> dict[int, int]:
    """Return of how many calls of each day the cost is not known."""
    found: dict[int, int] = defaultdict(int)
    for group in groups:
        found[int(group.of["day"])] += group.sums.calls - group.sums.cost_known
    return found
