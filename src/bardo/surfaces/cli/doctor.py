"""`bardo doctor`: what is configured, what works, and how to fix what does not.

Nothing is changed, nothing is created, and no key is shown: only the name of the variable that holds it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bardo._version import __version__
from bardo.adapters.config.accounts import keys_that_are_set
from bardo.adapters.config.embeddings import model_of_vectors
from bardo.adapters.config.gateway import check_bind
from bardo.adapters.config.pipeline import OFF, layers_of, profiles_named
from bardo.adapters.config.problems import address_secrets
from bardo.adapters.config.providers import ProviderEntry
from bardo.adapters.config.settings import Settings, load_settings, log_path, provider_of
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log import LogMissing, LogProblem, LogReader
from bardo.catalog.layer_rows import layer_rows
from bardo.planning.aliases import Aliases
from bardo.planning.route import Provider, resolve, unknown_model
from bardo.routing.workloads import PREFIX
from bardo.services.accounts.key_registry import HOW_TO_GET_IN
from bardo.services.accounts.opening import any_key_is_active, has_keys
from bardo.surfaces.cli.options import AsJson, Config, finite
from bardo.surfaces.cli.payment_check import check_payments
from bardo.surfaces.cli.provider_checks import Finding, check_providers, plural
from bardo.surfaces.render.console import show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import BardoError
from bardo.values.extras import how_to_install
from bardo.values.secrets import secrets_of

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
        from bardo.surfaces.cli.doctor_watch import watch

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
    findings = [_versions()]
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


def _versions() -> Finding:
    found = f"bardo {__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding(area="versions", status="ok", found=found)


def _configuration(settings: Settings) -> Finding:
    if settings.source:
        found = f"{settings.source}: {plural(len(settings.providers), 'provider')}"
        return Finding(area="configuration", status="ok", found=found)
    found = "no bardo.toml here and no BARDO_CONFIG; defaults and keys in the environment are used"
    return Finding(area="configuration", status="ok", found=found)


def _access(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Return what is wrong with whom the gateway asks for a key."""
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
    return found


def _packages(settings: Settings) -> list[Finding]:
    """Return which packages are configured to be used and are not installed."""
    wanted = (
        (settings.telemetry.metrics, "prometheus_client", "[telemetry] metrics", "telemetry"),
        (settings.telemetry.otlp, "opentelemetry.exporter", "[telemetry] otlp", "telemetry"),
        (settings.http.client == "aiohttp", "aiohttp", "[http] client", "aiohttp"),
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
        return _new_log(Path(path))
    except LogProblem as problem:
        return Finding(area="log", status="problem", found=problem.message, fix=problem.hint)
    if "://" in str(path):
        # The address may hold a password.
        return Finding(area="log", status="ok", found=f"a database, {plural(rows, 'call')}")
    if not os.access(path, os.W_OK):
        fix = "make it writable, or set log.path or BARDO_LOG_PATH"
        return Finding(area="log", status="problem", found=f"{path} cannot be written", fix=fix)
    return Finding(area="log", status="ok", found=f"{path}, {plural(rows, 'call')}")


def _new_log(path: Path) -> Finding:
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return Finding(area="log", status="ok", found=f"{path}, made at the first start")
    fix = "make it writable, or set log.path or BARDO_LOG_PATH"
    return Finding(area="log", status="problem", found=f"{path} cannot be made: {parent} is not writable", fix=fix)


def _lessons(settings: Settings) -> list[Finding]:
    """Return what refusals taught the gateway that runs here; nothing where what listens there is none, or wants another key."""
    from bardo.surfaces.cli.doctor_watch import ask_once, lesson_text

    try:
        report = ask_once(settings)
    except BardoError:
        return []
    fix = "DELETE /v1/bardo/lessons, or the panel’s page Health, forgets it; SIGHUP forgets all"
    told = [
        Finding(area="lessons", status="warning", found=lesson_text(one, report.at), fix=fix)
        for one in report.lessons[:_MOST_LESSONS]
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
