"""The costs of calls and the savings of caches, from the sums of days and of the rows of the days that are asked for in part.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Text, case, cast, func, select

from bardo.adapters.stores.log.columns import WATCHED
from bardo.adapters.stores.log.database import inference_log, inference_rollup
from bardo.adapters.stores.log.rollup import (
    CAUSES,
    LABELS,
    SECONDS_PER_DAY,
    SUMS,
    CallSums,
    CostGroup,
    Dimension,
    day_of,
    part_column,
)
from bardo.adapters.stores.log.row import LONGEST_NAME, CacheTotal, LogRow, ReplyCacheTotal, mended_text

_COLUMNS: dict[Dimension, str] = {
    "day": "day",
    "provider": "provider",
    "model": "model",
    "key": "key_id",
    "subsystem": "subsystem",
    "operation": "operation",
    "session": "session",
    "agent": "agent",
    "repository": "repository",
}
_SUMMED = (
    "started_at", "provider", "model", "key_id", "subsystem", "operation", "outcome", "seconds", "input_tokens", "output_tokens",
    "reasoning_tokens", "cached_input_tokens", "cache_write_tokens", "cost_nanos", "cost_parts", "reported_cost_nanos",
    "computed_cost_nanos", "cache_saved_nanos", "tokens_approx", "attempt_records", "session", "agent", "repository",
)  # fmt: skip
_column = inference_log.c
_GROUP = (_column.provider, _column.model, _column.key_id)
_CHANGING = cast(_column.degraded, Text).contains(f'"{WATCHED}"')
_MOST_READ = 200
_ROWS_AT_ONCE = 1000
_Place = tuple[str, str, str | None]


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
        group = groups.get(key)
        if group is None:
            groups[key] = sums
        else:
            group.add(sums)
    return [CostGroup(of=dict(zip(by, key, strict=True)), sums=sums) for key, sums in sorted(groups.items())]


def _load_sums(
    connection: Connection, by: Sequence[Dimension], since: float | None, until: float | None, of_key: str | None
) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    """Yield sums of whole days, and of the rows of the days that are asked for in part; of rows alone for what no sums are kept by."""
    begin = -math.inf if since is None else since
    end = math.inf if until is None else until
    if any(name in LABELS for name in by):
        yield from _of_rows(connection, by, begin, end, of_key)
        return
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
    common = [column[_COLUMNS[name]] for name in by]
    query = select(*common, *(func.sum(column[name]) for name in names)).where(*wanted).group_by(*common)
    for row in connection.execute(query):
        if row[len(by)] is not None:  # A sum over no days at all.
            yield tuple(row[: len(by)]), _sums(dict(zip(names, row[len(by) :], strict=True)))


def _sums(row: dict[str, Any]) -> CallSums:
    # PostgreSQL sums whole numbers into decimals.
    numbers = {name: row[name] if name == "seconds" else int(row[name]) for name in SUMS}
    parts: dict[str, int] = {cause: nanos for cause in CAUSES if (nanos := int(row[part_column(cause)]))}
    return CallSums(**numbers, parts=parts)


def _of_rows(
    connection: Connection, by: Sequence[Dimension], begin: float, end: float, of_key: str | None
) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    if not begin < end:
        return
    column = inference_log.c
    query = select(*(column[name] for name in _SUMMED))
    query = query if begin == -math.inf else query.where(column.started_at >= begin)
    query = query if end == math.inf else query.where(column.started_at < end)
    query = query if of_key is None else query.where(column.key_id == mended_text(of_key, LONGEST_NAME))
    yield from _summed(connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)), by)


def _summed(rows: Iterable[Any], by: Sequence[Dimension]) -> Iterator[tuple[tuple[int | str, ...], CallSums]]:
    names = [_COLUMNS[name] for name in by]
    groups: dict[tuple[int | str, ...], CallSums] = {}
    for row in rows:
        key = tuple([day_of(row.started_at) if name == "day" else getattr(row, name) or "" for name in names])
        sums = groups.get(key)
        if sums is None:
            sums = groups[key] = CallSums()
        sums.take(row)
    yield from groups.items()


def cache_totals(connection: Connection, *, since: float | None, key: str | None = None) -> list[CacheTotal]:
    """Sum what was read from caches and written to them by provider, model and key, most input first.

    Whole days of UTC are told by the sums of days, which are few; only prompts that begin anew are looked for in the rows.
    """
    if since is not None and since % SECONDS_PER_DAY:
        return _row_totals(connection, since=since, key=key)
    query = select(*_GROUP, func.count()).where(*[*_conditions(since, key), _CHANGING]).group_by(*_GROUP)
    counts = {(provider, model, key_id): calls for provider, model, key_id, calls in connection.execute(query)}
    reasons = _reasons(connection, [*_conditions(since, key), _CHANGING]) if counts else {}
    groups = cost_groups(connection, ("provider", "model", "key"), since=since, until=None, of_key=key)
    totals = [_of_sums(group, counts, reasons) for group in groups]
    return sorted(totals, key=lambda total: -1 if total.input_tokens is None else total.input_tokens, reverse=True)


def _of_sums(group: CostGroup, counts: Mapping[_Place, int], reasons: Mapping[_Place, str]) -> CacheTotal:
    sums, provider, model = group.sums, str(group.of["provider"]), str(group.of["model"])
    key_id = str(group.of["key"]) or None
    place = (provider, model, key_id)
    return CacheTotal(
        provider=provider,
        model=model,
        key_id=key_id,
        calls=sums.calls,
        input_tokens=sums.input_tokens if sums.input_known else None,
        cached_input_tokens=sums.cached_input_tokens if sums.cached_known else None,
        cache_write_tokens=sums.cache_write_tokens if sums.written_known else None,
        saved_nanos=sums.saved_nanos if sums.saved_known else None,
        changing=counts.get(place, 0),
        why=reasons.get(place, ""),
    )


def _row_totals(connection: Connection, *, since: float, key: str | None) -> list[CacheTotal]:
    begun = _conditions(since, key)
    counted = (
        func.count().label("calls"),
        *(cast(func.sum(_column[name]), BigInteger).label(name) for name in ("input_tokens", "cached_input_tokens")),
        cast(func.sum(_column.cache_write_tokens), BigInteger).label("cache_write_tokens"),
        cast(func.sum(_column.cache_saved_nanos), BigInteger).label("saved_nanos"),
        func.sum(cast(case((_CHANGING, 1), else_=0), Integer)).label("changing"),
    )
    query = (
        select(*_GROUP, *counted)
        .where(*begun)
        .group_by(*_GROUP)
        .order_by(func.sum(_column.input_tokens).desc().nulls_last())
    )
    totals = [CacheTotal(**row._asdict()) for row in connection.execute(query)]
    reasons = _reasons(connection, [*begun, _CHANGING]) if any(row.changing for row in totals) else {}
    return [msgspec.structs.replace(row, why=reasons.get((row.provider, row.model, row.key_id), "")) for row in totals]


def reply_cache_totals(connection: Connection, *, since: float | None, key: str | None = None) -> list[ReplyCacheTotal]:
    """Count the calls by what the cache of replies did, and sum what it saved; what happened most often first."""
    begun = _conditions(since, key)
    query = (
        select(
            _column.cache,
            func.count().label("calls"),
            cast(func.sum(_column.reply_saved_nanos), BigInteger).label("saved_nanos"),
            func.sum(cast(case((_column.reply_saved_nanos.is_(None), 1), else_=0), Integer)).label("unknown"),
        )
        .where(_column.cache.is_not(None), *begun)
        .group_by(_column.cache)
        .order_by(func.count().desc(), _column.cache)
    )
    return [ReplyCacheTotal(**row._asdict()) for row in connection.execute(query)]


def _conditions(since: float | None, key: str | None) -> list[ColumnElement[bool]]:
    """Return what calls have to be: begun since then, and made with the key of this id; None for all."""
    begun = [] if since is None else [_column.started_at >= since]
    return begun if key is None else [*begun, _column.key_id == mended_text(key, LONGEST_NAME)]


def _reasons(connection: Connection, wanted: list[ColumnElement[bool]]) -> dict[_Place, str]:
    """Return what the last call of each group says of its prompt."""
    query = select(*_GROUP, _column.degraded).where(*wanted).order_by(_column.row_number.desc()).limit(_MOST_READ)
    reasons: dict[_Place, str] = {}
    for provider, model, key_id, degraded in connection.execute(query):
        for lost in degraded:
            if lost.get("what") == WATCHED:
                reasons.setdefault((provider, model, key_id), str(lost.get("why", "")))
    return reasons
