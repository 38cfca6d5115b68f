"""`bardo doctor --watch`: the health of a running gateway's providers, asked for again and again until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence

import msgspec

from bardo.adapters.config.settings import Settings
from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.services.facts.cache_health import CacheHealth
from bardo.services.facts.health_report import HealthReport, KeyHealth, ProviderHealth, TargetHealth
from bardo.services.facts.lessons import KnownLesson
from bardo.surfaces.cli.running_gateway import address_of, checked_address, gateway_error, gateway_key, not_running
from bardo.surfaces.render.console import console, show, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import BardoError, MalformedReply, Unreachable

PATH = "/v1/bardo/health"
_OPTION = "--url"
_ASKING = Deadlines(connect=3.0, first_byte=10.0, idle=10.0)
_ASKING_ONCE = Deadlines(connect=1.0, first_byte=2.0, idle=2.0)
_MOST_BYTES = 8 * 1024 * 1024
_CLEAR = "\x1b[H\x1b[2J"
_COLUMNS = (
    Column("state"),
    Column("provider", keep=True),
    Column("model", keep=True),
    Column("failed", right=True),
    Column("p50", right=True, drop=1),
    Column("p95", right=True, drop=2),
    Column("first token", right=True, drop=3),
    Column("again in", right=True),
    Column("why", wrap=True),
)


def watch(settings: Settings, address: str | None, every: float, *, as_json: bool) -> None:
    """Show the health of a gateway every so many seconds, until Ctrl-C. Raises BardoError where it does not answer the first time."""
    try:
        asyncio.run(
            _watch(
                settings, checked_address(address, _OPTION) if address else address_of(settings), every, as_json=as_json
            )
        )
    except KeyboardInterrupt:
        return


async def _watch(settings: Settings, address: str, every: float, *, as_json: bool) -> None:
    transport = HttpTransport(settings.http.client)
    try:
        report: HealthReport | BardoError = await ask(transport, address)
        while True:
            _show(report, address, as_json=as_json)
            await asyncio.sleep(every)
            report = await _ask_again(transport, address)
    finally:
        await transport.close()


async def _ask_again(transport: HttpTransport, address: str) -> HealthReport | BardoError:
    """Return the report, or why there is none: a gateway that restarts is there again a moment later."""
    try:
        return await ask(transport, address)
    except BardoError as problem:
        return problem


def ask_once(settings: Settings) -> HealthReport:
    """Return the health that the gateway of these settings reports. Raises BardoError where none answers."""

    async def run() -> HealthReport:
        transport = HttpTransport(settings.http.client)
        try:
            return await ask(transport, address_of(settings), _ASKING_ONCE)
        finally:
            await transport.close()

    return asyncio.run(run())


async def ask(transport: HttpTransport, address: str, deadlines: Deadlines = _ASKING) -> HealthReport:
    """Return the health that a gateway reports. Raises BardoError."""
    key = gateway_key()
    headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    call = Call(method="GET", url=address + PATH, headers=headers, provider="the gateway")
    try:
        reply = await transport.send(call, deadlines)
    except Unreachable as problem:
        raise not_running(address, problem, _OPTION) from problem
    try:
        body = await reply.read(_MOST_BYTES)
    finally:
        await reply.close()
    if reply.status != 200:
        raise gateway_error(address, reply.status, _OPTION)
    try:
        return msgspec.json.decode(body, type=HealthReport)
    except msgspec.DecodeError as problem:
        raise MalformedReply(f"{address} reports no health that this version reads", hint=str(problem)) from problem


def _show(report: HealthReport | BardoError, address: str, *, as_json: bool) -> None:
    if as_json:
        fields = {"error": report.message} if isinstance(report, BardoError) else report
        show_text(msgspec.json.encode(fields).decode())
        return
    if console().is_terminal:
        sys.stdout.write(_CLEAR)
    if isinstance(report, BardoError):
        show_text(report.message)
        return
    show_text(f"{address}, by the calls of the last minutes; Ctrl-C ends\n")
    show(table(_COLUMNS, [cells for provider in report.providers for cells in _rows(provider)]))
    for lesson in report.lessons:
        show_text(lesson_text(lesson, report.at))


def lesson_text(lesson: KnownLesson, now: float) -> str:
    """Return a lesson as one line: what is not sent, where and for whom, until when, and the provider's words."""
    place = f"{lesson.provider}/{lesson.model}" if lesson.model else f"{lesson.provider} ({lesson.dialect})"
    since, left = (f"{max(0.0, seconds) / 60:.0f} min" for seconds in (now - lesson.since, lesson.until - now))
    asked = f"{lesson.shape} requests" if lesson.shape else "all requests"
    caller = f" of {lesson.caller}" if lesson.caller else ""
    said = f", because it said: {lesson.words}" if lesson.words else ""
    dated = f"learned {since} ago, ends in {left}, lesson {lesson.id}"
    return f"{place} refuses {lesson.what} ({lesson.kind}), in {asked}{caller}: {dated}{said}"


def _rows(provider: ProviderHealth) -> Iterator[tuple[str, ...]]:
    yield _target(provider.provider, provider.connection)
    for key in provider.keys:
        yield _key(provider.provider, key)
    for model in provider.models:
        yield _target(provider.provider, model)
    yield from _caches(provider.provider, provider.caches)
    for server in provider.servers:
        name = f"{provider.provider} at {server.address}"
        yield _target(name, server.connection)
        for key in server.keys:
            yield _key(name, key)
        for model in server.models:
            yield _target(name, model)
        yield from _caches(name, server.caches)


def _target(provider: str, target: TargetHealth) -> tuple[str, ...]:
    latency = target.latency
    failed = f"{target.failed} of {target.calls}" if target.calls else ""
    return (
        target.state,
        provider,
        target.model or "(connection)",
        failed,
        _latency_text(latency.p50_ms),
        _latency_text(latency.p95_ms),
        _latency_text(latency.first_token_p50_ms),
        _rest_text(target.wait_seconds),
        target.why,
    )


def _key(provider: str, key: KeyHealth) -> tuple[str, ...]:
    name = f"(key {key.label})" if key.label else "(key)"
    why = f"{key.why} at {', '.join(key.models)}" if key.models else key.why
    return key.state, provider, name, "", "", "", "", _rest_text(key.wait_seconds), why


def _caches(provider: str, caches: Sequence[CacheHealth]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each prompt cache with at least one observation."""
    for cache in caches:
        half_life = (
            ""
            if cache.half_life_seconds is None
            else f", half of a prompt is left after {cache.half_life_seconds:,.0f} s"
        )
        measured = half_life if cache.observations else ""
        why = f"{cache.hit_rate:.0%} of {cache.input_tokens:,} prompt tokens were cached{measured}"
        yield "", provider, f"(cache of {cache.model})", "", "", "", "", "", why


def _latency_text(value: int | None) -> str:
    return "" if value is None else f"{value:,} ms"


def _rest_text(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} s"
