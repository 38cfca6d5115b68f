"""The health page: providers, their models, keys and caches as they are now, and how long calls took by the newest calls of the log."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import CallTimes
from bardo.routing.candidates import Health
from bardo.services.facts.cache_health import CacheHealth
from bardo.services.facts.health_report import (
    HealthReport,
    KeyHealth,
    ProviderHealth,
    ServerHealth,
    TargetHealth,
    health_report,
)
from bardo.surfaces.panel.charts import Sparkline, sparkline
from bardo.surfaces.panel.pages import Page, PanelRequest, Redirect
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.wording import NOT_REPORTED, count, seconds
from bardo.values.errors import Forbidden, Unsupported

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

_BADGES = {"healthy": "ok", "ok": "ok", "degraded": "warn", "resting": "warn", "missing": "warn", "down": "bad"}
_PLACE = (Head("provider", wrap=True), Head("model", wrap=True))
_HEADS = (
    *_PLACE,
    Head("state"),
    Head("failed", number=True),
    Head("errors", wrap=True),
    Head("p50", number=True),
    Head("p95", number=True),
    Head("first token p50", number=True),
    Head("retry in", number=True),
    Head("why", wrap=True),
)


def state_cell(state: str) -> Cell:
    """Return a state, which is said in words and has a colour besides."""
    return Cell(state, badge=_BADGES.get(state, "info"))


def states_table(report: HealthReport) -> Table:
    """Return a row for the connection of each provider and of each of its servers, and for each model that was called."""
    return Table(
        name="states",
        caption="Providers and models, from the calls of the last minutes",
        heads=_HEADS,
        rows=tuple(row for provider in report.providers for row in _rows(provider)),
        empty="No provider is configured. Set a provider’s API key, or add a provider to bardo.toml.",
    )


def plain_states_table(report: HealthReport, own: Collection[tuple[str, str]]) -> Table:
    """Return the states alone, for whoever may not see other keys' figures: of providers, and of the models in `own`."""
    rows = [
        (provider.provider, target.model or "connection", state_cell(target.state), _rest_text(target.wait_seconds))
        for provider in report.providers
        for target in (provider.connection, *models_of(provider))
        if not target.model or (provider.provider, target.model) in own
    ]
    return Table(
        name="states",
        caption="Providers and the models called with your key",
        heads=(*_PLACE, Head("state"), Head("retry in", number=True)),
        rows=tuple(dict.fromkeys(rows)),
        empty="No provider is configured.",
    )


def models_of(provider: ProviderHealth) -> list[TargetHealth]:
    """Return the models of a provider that were called, at all of its servers."""
    return [*provider.models, *(model for server in provider.servers for model in server.models)]


def keys_table(report: HealthReport) -> Table:
    """Return the keys of providers, by the names of their variables."""
    return Table(
        name="provider-keys",
        caption="Provider keys that rotate, are rate limited or are missing",
        heads=(Head("provider", wrap=True), Head("variable", wrap=True), Head("state"), Head("recent uses", number=True),
               Head("available in", number=True), Head("why", wrap=True)),
        rows=tuple(row for provider in report.providers for row in _key_rows(provider)),
        empty="No provider key is rate limited, rejected or missing.",
    )  # fmt: skip


def lessons_table(report: HealthReport) -> Table:
    """Return what refusals taught, with the providers' words."""
    return Table(
        name="lessons",
        caption="What refusals taught: left out or changed in later requests of the same caller",
        heads=(*_PLACE, Head("not sent", wrap=True), Head("requests", wrap=True), Head("caller", wrap=True), Head("ends in", number=True),
               Head("proved", number=True), Head("the provider’s words", wrap=True)),
        rows=tuple(
            (
                row.provider, row.model or "all models", Cell(row.what, below=row.kind), row.shape or "all", row.caller or "without a key",
                seconds(max(0.0, row.until - report.at)), f"{row.proofs:,} ×", row.words,
            )
            for row in report.lessons
        ),
        empty="No lesson holds: nothing is left out because of an earlier refusal.",
    )  # fmt: skip


def caches_table(report: HealthReport) -> Table:
    """Return what was seen of prompt caches."""
    return Table(
        name="caches",
        caption="Prompt caches of providers, since this gateway started",
        heads=(*_PLACE, Head("calls", number=True), Head("prompt tokens", number=True), Head("read from the cache", number=True),
               Head("half-life", number=True), Head("measured by", wrap=True)),
        rows=tuple(row for provider in report.providers for row in _cache_rows(provider)),
        empty="No data about prompt caches. A pipeline profile with the affinity layer collects it.",
    )  # fmt: skip


def _rows(provider: ProviderHealth) -> Iterator[tuple[Cell | str, ...]]:
    balances = ", ".join(f"{amount:,.2f} {name.upper()} left" for name, amount in sorted(provider.balances.items()))
    yield _target(provider.provider, provider.connection, balances)
    for model in provider.models:
        yield _target(provider.provider, model)
    for server in provider.servers:
        name = _server_name(provider, server)
        busy = f"{server.in_flight:,} calls now" if server.in_flight else ""
        yield _target(name, server.connection, busy)
        for model in server.models:
            yield _target(name, model)


def _server_name(provider: ProviderHealth, server: ServerHealth) -> str:
    return f"{provider.provider} at {server.address}"


def _target(provider: str, target: TargetHealth, below: str = "") -> tuple[Cell | str, ...]:
    latency = target.latency
    return (
        Cell(provider, below=below),
        target.model or "connection",
        state_cell(target.state),
        f"{target.failed:,} of {target.calls:,}" if target.calls else NOT_REPORTED,
        ", ".join(f"{fault} {number:,}" for fault, number in target.faults.items()),
        _latency_text(latency.p50_ms),
        _latency_text(latency.p95_ms),
        _latency_text(latency.first_token_p50_ms),
        _rest_text(target.wait_seconds),
        target.why,
    )


def _key_rows(provider: ProviderHealth) -> Iterator[tuple[Cell | str, ...]]:
    for key in provider.keys:
        yield _key(provider.provider, key)
    for server in provider.servers:
        for key in server.keys:
            yield _key(_server_name(provider, server), key)


def _key(provider: str, key: KeyHealth) -> tuple[Cell | str, ...]:
    why = f"{key.why} at {', '.join(key.models)}" if key.models else key.why
    uses = "" if key.uses is None else f"{key.uses:.1f}"
    return provider, key.label or "its only key", state_cell(key.state), uses, _rest_text(key.wait_seconds), why


def _cache_rows(provider: ProviderHealth) -> Iterator[tuple[Cell | str, ...]]:
    for cache in provider.caches:
        yield _cache(provider.provider, cache)
    for server in provider.servers:
        for cache in server.caches:
            yield _cache(_server_name(provider, server), cache)


def _cache(provider: str, cache: CacheHealth) -> tuple[Cell | str, ...]:
    lasts = NOT_REPORTED if cache.half_life_seconds is None else seconds(cache.half_life_seconds)
    measured = f"{cache.observations:,} pauses" if cache.observations else "nothing yet"
    return (
        provider,
        cache.model,
        count(cache.calls),
        count(cache.input_tokens),
        f"{count(cache.cached_tokens)} ({cache.hit_rate:.0%})",
        lasts,
        measured,
    )


def _latency_text(value: int | None) -> str:
    return NOT_REPORTED if value is None else f"{value:,} ms"


def _rest_text(value: float | None) -> str:
    return "" if value is None else seconds(value)


MOST_CALLS = 10_000
"""How many calls are looked at, the newest ones."""
BUCKETS = 24
SPANS: Mapping[str, tuple[str, float]] = {
    "1h": ("the last hour", 3_600.0),
    "24h": ("the last 24 hours", 86_400.0),
    "7d": ("the last 7 days", 7 * 86_400.0),
}
_LATENCY_HEADS = (
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

    Seconds are those of calls that were answered, sorted. `medians` are by time, or None if there was no call.
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
        heads=_LATENCY_HEADS,
        rows=tuple(map(_cells, found)),
        empty=f"No calls in {words}.",
    )


def _history(provider: str, model: str, calls: Sequence[CallTimes], since: float, until: float) -> History:
    answered = [call for call in calls if call.outcome == "ok"]
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
        errors=Counter(call.error_class or call.outcome for call in calls if call.outcome != "ok"),
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


_USUAL = "24h"


async def show(panel: Panel, request: PanelRequest) -> Page | Redirect:
    """Return the page, or forget a lesson. A key that is no operator's sees the states alone, and the times of its own calls."""
    operator = request.viewer.operator
    if request.method == "POST":
        if not operator:
            raise Forbidden("lessons are forgotten by operators", hint="ask whoever runs this gateway")
        name = request.form.get("lesson", "")
        panel.context.services.facts.lessons.forget("" if name == "all" else name or "none")
        return Redirect("/panel/health")
    report = health_report(panel.context.services)
    chosen = request.query.get("span", "")
    span = chosen if chosen in SPANS else _USUAL
    words, seconds = SPANS[span]
    now = panel.context.services.clock()
    times = await _times(panel, now - seconds, request.viewer.key_id)
    cut = times is not None and len(times) == MOST_CALLS
    begin = times[-1].started_at if cut and times else now - seconds
    values = {
        "span": span,
        "spans": [(name, words.removeprefix("the last ").removeprefix("the ")) for name, (words, _) in SPANS.items()],
        "figures": _figures(report, models=operator),
        "states": states_table(report)
        if operator
        else plain_states_table(report, {(one.provider, one.model) for one in times or ()}),
        "lesson_choices": [
            ("all", "all lessons"),
            *((one.id, f"{one.what} at {one.provider} {one.model}") for one in report.lessons if operator),
        ],
        "lessons_table": lessons_table(report) if operator else None,
        "further": (keys_table(report), caches_table(report)) if operator else (),
        "latencies": None if times is None else latency_table(histories(times, begin, now), words),
        "cut": cut,
        "begin": begin,
        "most": MOST_CALLS,
        "at": report.at,
    }
    return Page("health.html", "Health", values)


async def _times(panel: Panel, since: float, key: str | None) -> list[CallTimes] | None:
    """Return the newest calls, or None if no log is kept."""

    def read(log: LogReader) -> list[CallTimes]:
        return log.call_times(MOST_CALLS, since=since, key=key)

    try:
        return await panel.read_log(read)
    except Unsupported:
        return None


def _figures(report: HealthReport, *, models: bool) -> list[tuple[str, str, str]]:
    states = Counter(provider.connection.state for provider in report.providers)
    found = [("Providers", str(len(report.providers)), _counts_text(states))]
    if models:
        called = [model for provider in report.providers for model in models_of(provider)]
        found.append(("Models called recently", str(len(called)), _counts_text(Counter(one.state for one in called))))
    return found


def _counts_text(states: Mapping[Health, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items(), key=lambda one: -one[1]))
