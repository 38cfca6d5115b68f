"""The health of providers as tables of a page: states, windows of calls, keys that rest, prompt caches and balances."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bardo.services.facts.cache_health import CacheHealth
from bardo.services.facts.health_report import HealthReport, KeyHealth, ProviderHealth, ServerHealth, TargetHealth
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.wording import NOT_REPORTED, count, seconds

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
                one.provider, one.model or "all models", Cell(one.what, below=one.kind), one.shape or "all", one.caller or "without a key",
                seconds(max(0.0, one.until - report.at)), f"{one.proofs:,} ×", one.words,
            )
            for one in report.lessons
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
    yield _target(provider.provider, provider.connection, _balances(provider))
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


def _balances(provider: ProviderHealth) -> str:
    return ", ".join(f"{amount:,.2f} {name.upper()} left" for name, amount in sorted(provider.balances.items()))


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
