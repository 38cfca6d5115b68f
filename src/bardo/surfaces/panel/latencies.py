"""How long calls took by provider and model: percentiles, a line by time, and how they failed. Told from the newest calls of the log."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bardo.adapters.stores.log.row import CallTimes
from bardo.surfaces.panel.charts import Sparkline, sparkline
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.wording import NOT_REPORTED, count, seconds

MOST_CALLS = 10_000
"""How many calls are looked at, the newest ones."""
BUCKETS = 24
SPANS: Mapping[str, tuple[str, float]] = {
    "1h": ("the last hour", 3_600.0),
    "24h": ("the last 24 hours", 86_400.0),
    "7d": ("the last 7 days", 7 * 86_400.0),
}
_HEADS = (
    Head("provider and model", wrap=True),
    Head("calls", number=True),
    Head("failed", number=True),
    Head("p50", number=True),
    Head("p95", number=True),
    Head("first byte p50", number=True),
    Head("first byte p95", number=True),
    Head("median over time"),
    Head("errors", wrap=True),
)


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The calls to one model of a provider.

    Seconds are those of calls that were answered, sorted. `medians` are by time, None where there was no call.
    """

    provider: str
    model: str
    calls: int
    failed: int
    took: tuple[float, ...]
    first_byte: tuple[float, ...]
    medians: tuple[float | None, ...]
    errors: Mapping[str, int]


def histories(times: Iterable[CallTimes], since: float, until: float) -> list[History]:
    """Return what calls from `since` to `until` took, the most used model first."""
    groups: dict[tuple[str, str], list[CallTimes]] = defaultdict(list)
    for one in times:
        if one.provider:
            groups[one.provider, one.model].append(one)
    found = [_history(provider, model, calls, since, until) for (provider, model), calls in groups.items()]
    return sorted(found, key=lambda one: (-one.calls, one.provider, one.model))


def percentile(ordered: Sequence[float], part: float) -> float | None:
    """Return the number that this part of the others does not exceed, by the nearest rank; None of none."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None


def latency_table(found: Sequence[History], words: str) -> Table:
    """Return a row for each model."""
    return Table(
        name="latencies",
        caption=f"Latency in {words}",
        heads=_HEADS,
        rows=tuple(map(_cells, found)),
        empty=f"No calls in {words}.",
    )


def _history(provider: str, model: str, calls: Sequence[CallTimes], since: float, until: float) -> History:
    answered = [one for one in calls if one.outcome == "ok"]
    spans: dict[int, list[float]] = defaultdict(list)
    width = max(1.0, (until - since) / BUCKETS)
    for one in answered:
        spans[min(BUCKETS - 1, max(0, int((one.started_at - since) / width)))].append(one.seconds)
    medians = tuple(percentile(sorted(spans[place]), 0.5) if place in spans else None for place in range(BUCKETS))
    return History(
        provider=provider,
        model=model,
        calls=len(calls),
        failed=len(calls) - len(answered),
        took=tuple(sorted(one.seconds for one in answered)),
        first_byte=tuple(sorted(one.first_byte_seconds for one in answered if one.first_byte_seconds is not None)),
        medians=medians,
        errors=Counter(one.error_class or one.outcome for one in calls if one.outcome != "ok"),
    )


def _cells(one: History) -> tuple[Cell | Sparkline | str, ...]:
    name = f"{one.provider}/{one.model}" if one.model else one.provider
    known = [median for median in one.medians if median is not None]
    said = (
        f"Median latency of {name} over time: from {seconds(min(known))} to {seconds(max(known))}"
        if known
        else f"No answered calls of {name}"
    )
    errors = ", ".join(f"{name} {number:,}" for name, number in sorted(one.errors.items(), key=lambda item: -item[1]))
    return (
        Cell(one.model or NOT_REPORTED, below=one.provider),
        count(one.calls),
        f"{count(one.failed)} ({one.failed / one.calls:.0%})" if one.failed else "0",
        _time(percentile(one.took, 0.5)),
        _time(percentile(one.took, 0.95)),
        _time(percentile(one.first_byte, 0.5)),
        _time(percentile(one.first_byte, 0.95)),
        sparkline(said, one.medians, note=f"0 to {seconds(max(known))}" if known else ""),
        errors,
    )


def _time(duration: float | None) -> str:
    return NOT_REPORTED if duration is None else seconds(duration)
