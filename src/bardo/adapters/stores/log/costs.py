"""What calls cost, read from the sums that are kept by day; the rows themselves are read only for parts of days.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, func, select

from bardo.adapters.stores.log.rollup import (
    CAUSES,
    SECONDS_PER_DAY,
    SUMS,
    CallSums,
    CostGroup,
    Dimension,
    RollupKey,
    SpendTotal,
    part_column,
    roll_up,
)
from bardo.adapters.stores.log.row import LogRow
from bardo.adapters.stores.log.schema import inference_log, inference_rollup
from bardo.adapters.stores.log.stored import LONGEST_NAME, mended_text

_COLUMNS: dict[Dimension, str] = {
    "day": "day",
    "provider": "provider",
    "model": "model",
    "key": "key_id",
    "subsystem": "subsystem",
    "operation": "operation",
}
_READ = (
    "started_at", "provider", "model", "key_id", "subsystem", "operation", "outcome", "seconds", "input_tokens", "output_tokens",
    "reasoning_tokens", "cached_input_tokens", "cache_write_tokens", "cost_nanos", "cost_parts", "reported_cost_nanos",
    "computed_cost_nanos", "cache_saved_nanos", "tokens_approx", "attempt_records",
)  # fmt: skip


def cost_groups(
    connection: Connection,
    by: Sequence[Dimension],
    *,
    since: float | None,
    until: float | None,
    of_key: str | None = None,
    further: Sequence[LogRow] = (),
) -> list[CostGroup]:
    """Return the sums of calls that began from `since` to before `until`, by what they have in common: in its order.

    `of_key` is the id of the key whose calls alone are summed, None for those of all; `further` are calls that are not stored yet.
    """
    groups: dict[tuple[int | str, ...], CallSums] = {}
    further = [
        row
        for row in further
        if (since is None or row.started_at >= since)
        and (until is None or row.started_at < until)
        and of_key in (None, row.key_id)
    ]
    for key, sums in chain(_load_sums(connection, by, since, until, of_key), _summed(further, by)):
        known = groups.get(key)
        if known is None:
            groups[key] = sums
        else:
            known.add(sums)
    return [CostGroup(of=dict(zip(by, key, strict=True)), sums=sums) for key, sums in sorted(groups.items())]


def rollup_spend(engine: Engine, key_id: str | None, day_from: int, day_to: int) -> SpendTotal:
    """Return what was spent from one day to another, both included, by one key, or by all where it is None."""
    column = inference_rollup.c
    wanted = [column.day >= day_from, column.day <= day_to]
    if key_id is not None:
        wanted.append(column.key_id == mended_text(key_id, LONGEST_NAME))
    names = ("cost_nanos", "partial_nanos", "calls", "cost_known")
    query = select(*(func.coalesce(func.sum(column[name]), 0) for name in names)).where(*wanted)
    with engine.connect() as connection:
        nanos, partial, calls, known = map(int, connection.execute(query).one())
    return SpendTotal(nanos=nanos, partial_nanos=partial, calls=calls, unknown=calls - known)


def _load_sums(
    connection: Connection, by: Sequence[Dimension], since: float | None, until: float | None, of_key: str | None
) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    """Yield sums of whole days, and of the rows of the days that are asked for in part."""
    begin = -math.inf if since is None else since
    end = math.inf if until is None else until
    first = -math.inf if since is None else math.ceil(begin / SECONDS_PER_DAY)
    last = math.inf if until is None else math.floor(end / SECONDS_PER_DAY)
    if first >= last:
        yield from _of_rows(connection, by, begin, end, of_key)
        return
    yield from _of_days(connection, by, first, last, of_key)
    yield from _of_rows(connection, by, begin, first * SECONDS_PER_DAY, of_key)
    yield from _of_rows(connection, by, last * SECONDS_PER_DAY, end, of_key)


def _of_days(
    connection: Connection, by: Sequence[Dimension], first: float, last: float, of_key: str | None
) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    column = inference_rollup.c
    wanted: list[ColumnElement[bool]] = []
    wanted += [] if first == -math.inf else [column.day >= first]
    wanted += [] if last == math.inf else [column.day < last]
    wanted += [] if of_key is None else [column.key_id == mended_text(of_key, LONGEST_NAME)]
    names = (*SUMS, *map(part_column, CAUSES))
    common = [column[_COLUMNS[one]] for one in by]
    query = select(*common, *(func.sum(column[name]) for name in names)).where(*wanted).group_by(*common)
    for row in connection.execute(query):
        if row[len(by)] is not None:  # A sum over no days at all.
            yield tuple(row[: len(by)]), _sums(dict(zip(names, row[len(by) :], strict=True)))


def _sums(found: dict[str, Any]) -> CallSums:
    # PostgreSQL sums whole numbers into decimals.
    numbers = {name: found[name] if name == "seconds" else int(found[name]) for name in SUMS}
    parts: dict[str, int] = {cause: nanos for cause in CAUSES if (nanos := int(found[part_column(cause)]))}
    return CallSums(**numbers, parts=parts)


def _of_rows(
    connection: Connection, by: Sequence[Dimension], begin: float, end: float, of_key: str | None
) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    if not begin < end:
        return
    column = inference_log.c
    query = select(*(column[name] for name in _READ)).where(column.started_at >= begin, column.started_at < end)
    query = query if of_key is None else query.where(column.key_id == mended_text(of_key, LONGEST_NAME))
    yield from _summed(connection.execute(query), by)


def _summed(rows: Iterable[Any], by: Sequence[Dimension]) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    places = [RollupKey._fields.index(_COLUMNS[one]) for one in by]
    for key, sums in roll_up(rows).items():
        yield tuple(key[place] for place in places), sums
