"""What prompt caches and the cache of replies did, asked of a log in SQL that both engines speak.

Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Text, case, cast, func, select

from bardo.adapters.stores.log.columns import WATCHED
from bardo.adapters.stores.log.costs import cost_groups
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, CostGroup
from bardo.adapters.stores.log.row import CacheTotal, ReplyCacheTotal
from bardo.adapters.stores.log.schema import inference_log
from bardo.adapters.stores.log.stored import LONGEST_NAME, mended_text

_column = inference_log.c
_GROUP = (_column.provider, _column.model, _column.key_id)
_CHANGING = cast(_column.degraded, Text).contains(f'"{WATCHED}"')
_MOST_READ = 200
_Place = tuple[str, str, str | None]


def cache_totals(connection: Connection, *, since: float | None, key: str | None = None) -> list[CacheTotal]:
    """Sum what was read from caches and written to them by provider, model and key, most input first.

    Whole days of UTC are told by the sums of days, which are few; only prompts that begin anew are looked for in the rows.
    """
    if since is not None and since % SECONDS_PER_DAY:
        return _row_totals(connection, since=since, key=key)
    counts = _changing_counts(connection, [*_conditions(since, key), _CHANGING])
    reasons = _reasons(connection, [*_conditions(since, key), _CHANGING]) if counts else {}
    groups = cost_groups(connection, ("provider", "model", "key"), since=since, until=None, of_key=key)
    found = [_of_sums(one, counts, reasons) for one in groups]
    return sorted(found, key=lambda one: -1 if one.input_tokens is None else one.input_tokens, reverse=True)


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


def _changing_counts(connection: Connection, wanted: list[ColumnElement[bool]]) -> dict[_Place, int]:
    query = select(*_GROUP, func.count()).where(*wanted).group_by(*_GROUP)
    return {(provider, model, key_id): calls for provider, model, key_id, calls in connection.execute(query)}


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
    found = [CacheTotal(**row._asdict()) for row in connection.execute(query)]
    reasons = _reasons(connection, [*begun, _CHANGING]) if any(one.changing for one in found) else {}
    return [msgspec.structs.replace(one, why=reasons.get((one.provider, one.model, one.key_id), "")) for one in found]


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
