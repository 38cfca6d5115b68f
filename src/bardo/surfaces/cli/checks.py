"""What `bardo doctor` looks at. Each check says what it found and, where that is a problem, how to mend it.

Nothing is changed, nothing is created, and no key is shown: only the name of the variable that holds it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from bardo._version import __version__
from bardo.edge.assembly import log_path
from bardo.edge.directory import KEY_REFUSED, Directory, list_models, with_keys
from bardo.edge.http import Call, Deadlines, HttpTransport, Reply, Transport
from bardo.edge.keys import Keyring
from bardo.edge.knowing import Knowing
from bardo.edge.log import LogMissing, LogProblem, LogReader
from bardo.edge.settings import Settings, load_settings, provider_of
from bardo.edge.settings_secrets import ADVICE, secrets_of
from bardo.engine.route import Provider
from bardo.surfaces.cli.findings import Finding
from bardo.surfaces.cli.thinking import thinking
from bardo.values.errors import BardoError, MalformedReply, MissingKey, ProviderError
from bardo.values.shown import shown_url

_ASKING = Deadlines(connect=2.0, first_byte=4.0, idle=4.0)
_LONGEST_SECONDS = 8.0


def examine(config: Path | None, environment: Mapping[str, str] | None = None) -> list[Finding]:
    """Return everything that was found, in the order a person would look."""
    environment = os.environ if environment is None else environment
    findings = [_versions()]
    try:
        settings = load_settings(config, environment)
    except BardoError as problem:
        return [*findings, Finding(area="configuration", status="problem", found=problem.message, fix=problem.hint)]
    findings.append(_configuration(settings))
    findings += asyncio.run(_providers(settings, Keyring(environment)))
    return [*findings, _log(settings, environment), _port(settings)]


def _versions() -> Finding:
    found = f"bardo {__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding(area="versions", status="ok", found=found)


def _configuration(settings: Settings) -> Finding:
    if settings.source:
        found = f"{settings.source}: {_plural(len(settings.providers), 'provider')}"
        return Finding(area="configuration", status="ok", found=found)
    found = "no bardo.toml here and no BARDO_CONFIG; defaults and keys in the environment are used"
    return Finding(area="configuration", status="ok", found=found)


async def _providers(settings: Settings, keyring: Keyring) -> list[Finding]:
    """Ask every provider for its models, all at once."""
    configured = [provider_of(entry, settings.source) for entry in settings.providers]
    asked = configured or with_keys(keyring)
    transport = HttpTransport()
    try:
        directory = Directory((), transport, keyring, clock=time.monotonic)
        questions = asyncio.gather(*(_provider(provider, transport, keyring) for provider in asked))
        local, found = await asyncio.gather(directory.add_local(), questions)
        models = await thinking(asked, transport, keyring, own=Knowing(settings.models))
    finally:
        await transport.close()
    known = {provider.base_url for provider in asked}
    servers = [_local(server) for server in local if server.base_url not in known]
    return [*found, *servers, *models, *_secrets(settings)] or [_nobody()]


def _secrets(settings: Settings) -> list[Finding]:
    """Return a warning for each provider whose table holds a secret, by its name and never by its value."""
    return [
        Finding(
            area=f"provider {entry.id}",
            status="warning",
            found=f"a secret stands in {settings.source}: {', '.join(found)}",
            fix=ADVICE,
        )
        for entry in settings.providers
        if (found := secrets_of(entry))
    ]


async def _provider(provider: Provider, transport: Transport, keyring: Keyring) -> Finding:
    area = f"provider {provider.id}"
    watched = _Watched(transport)
    started = time.monotonic()
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            models = await list_models(provider, watched, keyring, _ASKING)
    except TimeoutError:
        found = f"{shown_url(provider.base_url)} sends its list of models too slowly"
        return Finding(area=area, status="problem", found=found, fix="check the server, and the network to it")
    except MissingKey as problem:
        return Finding(area=area, status="problem", found=problem.message, fix=problem.hint)
    except ProviderError as problem:
        return _unlisted(provider, problem, watched.status)
    except BardoError as problem:
        return Finding(area=area, status="problem", found=problem.message, fix=problem.hint)
    listed = (
        f"{shown_url(provider.base_url)} answers in {time.monotonic() - started:.2f} s, {_plural(len(models), 'model')}"
    )
    unknown = [model for model in provider.models if model not in models] if provider.configured_models else []
    if unknown:
        fix = "name models it lists, or leave `models` out"
        return Finding(area=area, status="warning", found=f"{listed}; it does not list {', '.join(unknown)}", fix=fix)
    return Finding(area=area, status="ok", found=f"{listed}, {_key(provider, keyring)}")


def _unlisted(provider: Provider, problem: ProviderError, status: int | None) -> Finding:
    """Word what it means that there is no list: no server, a refused key, or a server without a list."""
    area = f"provider {provider.id}"
    if status is None or not isinstance(problem, MalformedReply):
        fix = problem.hint or "check base_url, and that the server runs"
        return Finding(area=area, status="problem", found=problem.message, fix=fix)
    if status in KEY_REFUSED:
        variables = " or ".join(provider.row.key_variables)
        fix = f"check the key in {variables}" if variables else "set api_key_env to the variable that holds its key"
        return Finding(
            area=area, status="problem", found=f"{shown_url(provider.base_url)} refuses the key ({status})", fix=fix
        )
    found = f"{shown_url(provider.base_url)} answers, but {problem.message}"
    if provider.configured_models and status < 500:
        return Finding(area=area, status="ok", found=found)
    fix = "check base_url; where the server has no list, name its models in bardo.toml"
    return Finding(area=area, status="problem" if status >= 500 else "warning", found=found, fix=fix)


def _key(provider: Provider, keyring: Keyring) -> str:
    variables = " or ".join(provider.row.key_variables)
    if keyring.has(provider.row):
        return f"key in {variables}"
    return "no key needed"


def _local(server: Provider) -> Finding:
    found = f"{server.row.name} runs at {shown_url(server.base_url)}, {_plural(len(server.models), 'model')}"
    return Finding(area="local server", status="ok", found=found)


def _nobody() -> Finding:
    fix = "set a provider's key, start a local server, write a bardo.toml, or try `bardo simulate`"
    return Finding(area="providers", status="warning", found="none configured, no key set, none local", fix=fix)


def _log(settings: Settings, environment: Mapping[str, str]) -> Finding:
    if not settings.log.enabled:
        return Finding(area="log", status="ok", found="off, as configured")
    path = log_path(settings, environment)
    try:
        with LogReader(path) as reader:
            rows = reader.last_row_number()
    except LogMissing:
        return _new_log(Path(path))
    except LogProblem as problem:
        return Finding(area="log", status="problem", found=problem.message, fix=problem.hint)
    if "://" in str(path):
        # The address may hold a password.
        return Finding(area="log", status="ok", found=f"a database, {_plural(rows, 'call')}")
    if not os.access(path, os.W_OK):
        fix = "make it writable, or set log.path or BARDO_LOG_PATH"
        return Finding(area="log", status="problem", found=f"{path} cannot be written", fix=fix)
    return Finding(area="log", status="ok", found=f"{path}, {_plural(rows, 'call')}")


def _new_log(path: Path) -> Finding:
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return Finding(area="log", status="ok", found=f"{path}, made at the first start")
    fix = "make it writable, or set log.path or BARDO_LOG_PATH"
    return Finding(area="log", status="problem", found=f"{path} cannot be made: {parent} is not writable", fix=fix)


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


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class _Watched:
    """A transport that notes the status of its last reply: whoever answers at all is reachable."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.status: int | None = None

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        reply = await self._transport.send(call, deadlines)
        self.status = reply.status
        return reply

    async def close(self) -> None:
        await self._transport.close()
