"""`bardo doctor`: what is configured, what works, how to fix what does not, and with `--watch` the health of a running gateway.

Nothing is changed, nothing is created, and no key is shown: only the name of the variable that holds it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bardo._version import __version__
from bardo.accounting.payments import Payer, dollars
from bardo.adapters.config.accounts import keys_that_are_set
from bardo.adapters.config.gateway import check_bind
from bardo.adapters.config.pipeline import OFF, layers_of
from bardo.adapters.config.providers import ProviderEntry
from bardo.adapters.config.secrets import address_secrets
from bardo.adapters.config.settings import (
    Settings,
    load_settings,
    log_path,
    model_of_vectors,
    profiles_named,
    provider_of,
    state_path,
)
from bardo.adapters.net.client import Call, Deadlines, HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.sealing import open_sealer
from bardo.adapters.stores.log import LogMissing, LogProblem, LogReader
from bardo.catalog.layer_rows import layer_rows
from bardo.planning.model_names import Aliases
from bardo.planning.route import Provider, resolve, unknown_model
from bardo.routing.workloads import PREFIX
from bardo.services.accounts.key_registry import HOW_TO_GET_IN
from bardo.services.accounts.opening import any_key_is_active, has_keys
from bardo.services.facts.cache_health import CacheHealth
from bardo.services.facts.health_report import HealthReport, KeyHealth, ProviderHealth, TargetHealth
from bardo.services.facts.lessons import KnownLesson
from bardo.surfaces.cli.options import AsJson, Config, finite
from bardo.surfaces.cli.provider_checks import Finding, check_providers, plural
from bardo.surfaces.cli.running_gateway import address_of, checked_address, gateway_error, gateway_key, not_running
from bardo.surfaces.render.console import console, show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import BardoError, MalformedReply, Unreachable
from bardo.values.request import how_to_install
from bardo.values.secrets import secrets_of


def check_payments(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Return what is found of the wallet; nothing where none is named.

    They are its address, its caps, and the money that was spent today.
    """
    if not settings.payments.wallet_key_env:
        return []
    try:
        return [_wallet_finding(settings, environment)]
    except BardoError as problem:
        return [Finding(area="payments", status="problem", found=problem.message, fix=problem.hint)]


def _wallet_finding(settings: Settings, environment: Mapping[str, str]) -> Finding:
    """Return the wallet as a finding. Raises ConfigError and DatabaseProblem where it cannot pay."""
    from bardo.adapters.config.accounts import rules_of
    from bardo.services.payments.packages import INSTALL
    from bardo.services.payments.wallet import PACKAGES, signer_of

    rules = rules_of(settings.payments)
    signer = signer_of(settings.payments, environment)
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        found = f"{' and '.join(missing)} are not installed"
        return Finding(area="payments", status="problem", found=found, fix=INSTALL)
    spent, still_open = _ledger_figures(settings, environment)
    caps = f"at most {dollars(rules.per_call)} a call and {dollars(rules.per_day)} a day"
    found = f"wallet {signer.address}, {caps}, {dollars(spent)} spent today"
    if still_open:
        found = f"{found}, {still_open} of unknown outcome"
        return Finding(area="payments", status="warning", found=found, fix="bardo payments reconcile")
    if not rules.recipients:
        fix = "name the addresses that may be paid: payments.recipients"
        return Finding(area="payments", status="warning", found=f"{found}; nobody may be paid", fix=fix)
    return Finding(area="payments", status="ok", found=found)


def _ledger_figures(settings: Settings, environment: Mapping[str, str]) -> tuple[int, int]:
    """Return what was spent today, in nano-dollars, and how many payments have an unknown outcome. Creates nothing."""
    from bardo.services.payments.ledger import day_of, find_ledger

    ledger = find_ledger(state_path(settings, environment))
    if ledger is None:
        return 0, 0
    try:
        unknown = ledger.latest(1000, states=("unknown",))
        return ledger.spent(day_of(time.time()), Payer()).day, len(unknown)
    finally:
        ledger.close()


_MOST_LESSONS = 20


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", epilog="Example: bardo doctor --config bardo.toml")(doctor)


def doctor(
    config: Config = None,
    as_json: AsJson = False,
    watching: Annotated[
        bool, typer.Option("--watch", help="Show the provider health of a running gateway, until Ctrl-C.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The gateway to watch; by default that of the configuration."),
    ] = None,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, callback=finite, help="How often to look.")
    ] = 2.0,
) -> None:
    """Check the configuration, and say how to fix problems.

    Looks at the configuration, keys, providers, local servers, the log and the port; takes a few seconds and changes nothing. Ends with
    1 where something configured does not work. Keys are never shown.

    With --watch it asks a running gateway; $BARDO_API_KEY is its key.
    """
    if watching:
        watch(load_settings(config), url, every, as_json=as_json)
        return
    findings = run_checks(config)
    problems = [finding for finding in findings if finding.status == "problem"]
    if as_json:
        show_json({"ok": not problems, "findings": findings})
    else:
        _show(findings, len(problems))
    if problems:
        raise typer.Exit(1)


def _show(findings: list[Finding], problems: int) -> None:
    columns = (Column(""), Column("what"), Column("found", wrap=True))
    show(table(columns, (_cells(finding) for finding in findings), head=False))
    nothing = any(one.area == "providers" and one.status == "warning" for one in findings)
    fine = "nothing is configured yet that could be tried" if nothing else "all that is configured works"
    show_text(f"\n{problems} to mend" if problems else f"\n{fine}")


def _cells(finding: Finding) -> tuple[str, str, str]:
    fix = f"\n→ {finding.fix}" if finding.fix else ""
    return finding.status, finding.area, finding.found + fix


def run_checks(config: Path | None, environment: Mapping[str, str] | None = None) -> list[Finding]:
    """Return everything that was found, in the order a person would look."""
    environment = os.environ if environment is None else environment
    found = f"bardo {__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    findings = [Finding(area="versions", status="ok", found=found)]
    try:
        settings = load_settings(config, environment)
    except BardoError as problem:
        each = getattr(problem, "problems", ()) or (problem,)
        wrong = (Finding(area="configuration", status="problem", found=one.message, fix=one.hint) for one in each)
        return [*findings, *wrong]
    findings += [_configuration(settings), *_access(settings, environment), *_packages(settings), *_names(settings)]
    keyring = Keyring(environment)
    keyring.pays = bool(settings.payments.wallet_key_env)
    findings += [*asyncio.run(check_providers(settings, keyring)), *_vectors(settings, keyring)]
    port = _port(settings)
    running = _lessons(settings) if port.status == "warning" else []
    findings += [*check_payments(settings, environment), _log(settings, environment), port, *running]
    # Drivers quote what they were given.
    secrets = secrets_of(address_secrets(settings, environment))
    return [
        msgspec.structs.replace(one, found=secrets.in_text(one.found), fix=secrets.in_text(one.fix)) for one in findings
    ]


def _configuration(settings: Settings) -> Finding:
    if settings.source:
        found = f"{settings.source}: {plural(len(settings.providers), 'provider')}"
        return Finding(area="configuration", status="ok", found=found)
    found = "no bardo.toml here and no BARDO_CONFIG; defaults and keys in the environment are used"
    return Finding(area="configuration", status="ok", found=found)


def _access(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Return the findings on whom the gateway asks for a key."""
    there = {entry.key_env for _, entry in keys_that_are_set(settings.keys, environment)}
    missing = [entry for entry in settings.keys if entry.key_env not in there]
    found = [
        Finding(
            area=f"key {entry.id}",
            status="problem",
            found=f"{entry.key_env} is not set, so nobody can use this key",
            fix=f"set {entry.key_env} where bardo runs, or leave the key out",
        )
        for entry in missing
    ]
    try:
        asks = has_keys(settings, environment)
        check_bind(settings.gateway, has_keys=asks)
        if asks and not any_key_is_active(settings, environment):
            said = "no key is active: nobody gets in"
            found.append(Finding(area="keys", status="problem", found=said, fix=HOW_TO_GET_IN))
    except BardoError as problem:
        found.append(Finding(area="keys", status="problem", found=problem.message, fix=problem.hint))
    if missing and not there and not any(one.area == "keys" for one in found) and not asks:
        said = "the gateway would ask nobody for a key, although [[keys]] are configured"
        found.append(Finding(area="keys", status="problem", found=said, fix="set the variables of [[keys]]"))
    try:
        open_sealer(settings, environment)
    except BardoError as problem:
        found.append(Finding(area="compaction", status="problem", found=problem.message, fix=problem.hint))
    return found


def _packages(settings: Settings) -> list[Finding]:
    """Return which packages are configured to be used and are not installed."""
    wanted = (
        (settings.telemetry.metrics, "prometheus_client", "[telemetry] metrics", "telemetry"),
        (settings.telemetry.otlp, "opentelemetry.exporter", "[telemetry] otlp", "telemetry"),
        (bool(settings.payments.wallet_key_env), "x402", "[payments] wallet_key_env", "x402"),
        (bool(settings.inference.pipeline.embedding), "onnxruntime", "[inference.pipeline] embedding", "onnx"),
        (
            settings.inference.pipeline.privacy.engine == "presidio",
            "presidio_analyzer",
            "[inference.pipeline.privacy] engine",
            "presidio",
        ),
    )
    return [
        Finding(
            area="packages",
            status="problem",
            found=f"{setting} needs a package that is not installed: {module.partition('.')[0]}",
            fix=how_to_install(extra),
        )
        for is_set, module, setting, extra in wanted
        if is_set and not _is_installed(module)
    ]


def _names(settings: Settings) -> list[Finding]:
    """Return what is configured and leads nowhere: aliases to models that nobody has, and settings of layers that no profile has."""
    found = []
    providers = [provider_of(entry, settings.source) for entry in settings.providers]
    # Without providers in the file, those of keys and of this machine are meant, whose models are not known here.
    for name, alias in settings.aliases.items() if providers else ():
        for model in (alias.model, *alias.fallbacks):
            # A glob stands for whatever its client asks for.
            if "*" in model or model.startswith(PREFIX) or _may_be_served(model, settings, providers):
                continue
            problem = unknown_model(model, providers)
            found.append(
                Finding(
                    area=f"alias {name}",
                    status="problem",
                    found=f"it stands for {model!r}, which no configured provider is known to serve",
                    fix=problem.hint,
                )
            )
    pipeline = settings.inference.pipeline
    used = {pipeline.profile, *(profile for _, _, profile in profiles_named(settings))} - {"", OFF}
    open_to_calls = bool(settings.gateway.client_pipelines) or any(key.pipelines for key in settings.keys)
    layers = {layer for name in used for layer in layers_of(name, pipeline)}
    for layer in layer_rows():
        table = getattr(pipeline, layer, None)
        if table is None or table == type(table)() or layer in layers or open_to_calls:
            continue
        said = f"[inference.pipeline.{layer}] is set, and no profile that is used has this layer"
        fix = f'set [inference.pipeline] profile to one with "{layer}", or leave the table out'
        found.append(Finding(area="layers", status="warning", found=said, fix=fix))
    return found


def _vectors(settings: Settings, keyring: Keyring) -> list[Finding]:
    """Return who makes the vectors of layers, where a provider shall: whether it can be asked, and whether a layer wants any."""
    model = model_of_vectors(settings)
    if model is None:
        return []
    provider = settings.inference.embeddings.provider
    entry = next((one for one in settings.providers if one.id == provider), ProviderEntry(id=provider))
    row = provider_of(entry, settings.source).row
    if row.key_variables and not keyring.has(row):
        found = f"{model} shall make vectors, and there is no key for {provider}: they are made on this machine"
        fix = f'set {row.key_variables[0]}, or write provider = "local" below [inference.embeddings]'
        return [Finding(area="embeddings", status="problem", found=found, fix=fix)]
    pipeline = settings.inference.pipeline
    used = {pipeline.profile, *(profile for _, _, profile in profiles_named(settings))} - {"", OFF}
    if not used and not settings.gateway.client_pipelines and not any(key.pipelines for key in settings.keys):
        found = f"{model} shall make vectors, and no profile is used whose layers want any"
        fix = "set [inference.pipeline] profile, or leave [inference.embeddings] out"
        return [Finding(area="embeddings", status="warning", found=found, fix=fix)]
    return [Finding(area="embeddings", status="ok", found=f"{model} makes the vectors of layers; it was not asked now")]


def _may_be_served(model: str, settings: Settings, providers: list[Provider]) -> bool:
    """Whether a name stands for a model that a provider lists, or may have without a list in the configuration."""
    target = Aliases(settings.aliases).find(model).model
    if any(not provider.models for provider in providers):
        # Who has no list in the configuration is asked for it when the gateway runs.
        return True
    try:
        return bool(resolve(target, providers))
    except BardoError:
        return False


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _log(settings: Settings, environment: Mapping[str, str]) -> Finding:
    if not settings.log.enabled:
        return Finding(area="log", status="ok", found="off, as configured")
    path = log_path(settings, environment)
    try:
        with LogReader(path, journals=True) as reader:
            rows = reader.last_row_number() + reader.waiting()
    except LogMissing:
        if "://" in str(path):
            return Finding(area="log", status="ok", found="a database, whose tables are made at the first start")
        parent = next(folder for folder in Path(path).absolute().parents if folder.exists())
        if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
            return Finding(area="log", status="ok", found=f"{path}, made at the first start")
        fix = "make it writable, or set log.path or BARDO_LOG_PATH"
        return Finding(area="log", status="problem", found=f"{path} cannot be made: {parent} is not writable", fix=fix)
    except LogProblem as problem:
        return Finding(area="log", status="problem", found=problem.message, fix=problem.hint)
    if "://" in str(path):
        # The address may hold a password.
        return Finding(area="log", status="ok", found=f"a database, {plural(rows, 'call')}")
    if not os.access(path, os.W_OK):
        fix = "make it writable, or set log.path or BARDO_LOG_PATH"
        return Finding(area="log", status="problem", found=f"{path} cannot be written", fix=fix)
    return Finding(area="log", status="ok", found=f"{path}, {plural(rows, 'call')}")


def _lessons(settings: Settings) -> list[Finding]:
    """Return what refusals taught the gateway that runs here; nothing where what listens there is none, or wants another key."""

    try:
        report = ask_once(settings)
    except BardoError:
        return []
    fix = "DELETE /v1/bardo/lessons, or the panel’s page Health, forgets it; SIGHUP forgets all"
    told = [
        Finding(area="lessons", status="warning", found=lesson_text(lesson, report.at), fix=fix)
        for lesson in report.lessons[:_MOST_LESSONS]
    ]
    more = len(report.lessons) - len(told)
    found = (
        f"{plural(more, 'more lesson')} of the gateway that runs"
        if told
        else "none: refusals taught the gateway that runs nothing"
    )
    return told if told and not more else [*told, Finding(area="lessons", status="ok", found=found)]


def _port(settings: Settings) -> Finding:
    host, port = settings.gateway.host, settings.gateway.port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as problem:
        if problem.errno == errno.EADDRINUSE:
            fix = "fine if that is bardo; else `bardo serve --port …` or gateway.port"
            return Finding(area="port", status="warning", found=f"{host}:{port} is in use", fix=fix)
        fix = "set gateway.host to an address of this machine"
        return Finding(area="port", status="problem", found=f"{host}:{port}: {problem.strerror or problem}", fix=fix)
    return Finding(area="port", status="ok", found=f"{host}:{port} is free")


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
    transport = HttpTransport()
    try:
        report: HealthReport | BardoError = await ask(transport, address)
        while True:
            _show_changes(report, address, as_json=as_json)
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
        transport = HttpTransport()
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


def _show_changes(report: HealthReport | BardoError, address: str, *, as_json: bool) -> None:
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
