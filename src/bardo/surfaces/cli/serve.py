"""`bardo serve`: run the gateway, whose workers share a temporary folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bardo.adapters.config.environment import WORKERS_FOLDER
from bardo.adapters.config.gateway import check_bind
from bardo.adapters.config.paths import named_path
from bardo.adapters.config.settings import Settings, load_settings, log_path, provider_of, state_path
from bardo.adapters.config.storage import is_file_name, place_of
from bardo.adapters.net.addresses import check_proxies
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.database.problems import LOG, STATE, DatabaseProblem
from bardo.adapters.stores.database.sqlite_file import check_ledger
from bardo.adapters.stores.log.sqlite_store import SqliteLogStore
from bardo.adapters.stores.response_store import RESPONSES, open_responses
from bardo.server.serving import serve as serve_app
from bardo.server.worker_events import FOLDER_VARIABLE, LONGEST_PATH
from bardo.services.accounts.key_registry import HOW_TO_GET_IN
from bardo.services.accounts.opening import any_key_is_active, asks_for_keys
from bardo.services.facts.directory import with_keys
from bardo.surfaces.cli.options import Config, warn_of_secrets
from bardo.surfaces.render.console import print_stderr
from bardo.values.errors import InvalidRequest
from bardo.values.secrets import shown_url
from bardo.wiring import open_log

try:
    import fcntl
except ImportError:  # Windows, where no lock tells whether a gateway runs: folders of killed gateways stay.
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_PREFIX = "bardo-"
_LOCK = "lock"


@contextmanager
def own_folder(place: Path) -> Iterator[Path]:
    """Make a folder below `place` that only this user can read, and remove it at the end.

    A folder belongs to a running gateway as long as `lock` in it is locked. The system releases the lock when the process of the gateway
    ends, however it ends. Workers do not hold it: they end soon after their gateway.
    """
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place) as name:
        # O_CLOEXEC: programs that this process starts do not keep the lock.
        new = Path(name, "new-lock")
        lock = os.open(new, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if _HAS_LOCKS:
                # It gets its name when it is locked: a gateway that starts at this moment never finds it free.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new.rename(Path(name, _LOCK))
            yield Path(name)
        finally:
            os.close(lock)


def remove_abandoned(place: Path) -> None:
    """Remove the folders below `place` of gateways of this user that were killed. What cannot be removed stays."""
    if not _HAS_LOCKS:
        return
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether a folder is this user's and has a lock that nobody holds. A folder without one may be of another program."""
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        return False
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where prometheus-client keeps what each worker counted, so that each answers for all."""
_FOLDERS = {_METRICS_FOLDER: "metrics", FOLDER_VARIABLE: "events", WORKERS_FOLDER: "stores"}
# bardo-12345678/events/1234567.sock, with the separators
_SOCKET_NAME = 40
APP = "bardo.surfaces.gateway.main:create_app"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", epilog="Example: bardo serve --config bardo.toml --port 8484")(serve)


def serve(
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on; by default 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="By default 8484; 0 finds a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that share the port; by default 1.")] = None,
    allow_unauthenticated: Annotated[
        bool, typer.Option("--allow-unauthenticated", help="Listen on other addresses than loopback without keys.")
    ] = False,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Simulated providers inside: no key, no network, no configuration.")
    ] = False,
    or_simulated: Annotated[
        bool,
        typer.Option("--or-simulated", help="The same where no provider is configured and no provider's key is set."),
    ] = False,
) -> None:
    """Run the gateway until Ctrl-C. Providers come from the configuration, or from keys in the environment.

    With --simulated they are simulators, and the log and all state are in a folder that is deleted at the end.
    """
    if simulated and config is not None:
        raise InvalidRequest("simulated providers have a configuration of their own", hint="leave out --config")
    with ExitStack() as stack:
        if simulated or (or_simulated and not load_settings(config).providers and not with_keys(Keyring())):
            config = stack.enter_context(_simulated_providers())
            simulated = True
        _serve(config, host, port, workers, allow_unauthenticated, simulated=simulated)


@contextmanager
def _simulated_providers() -> Iterator[Path]:
    """Run a simulator of each provider, and give the configuration that points at them."""
    # Neither is needed to serve real providers.
    from bardo.simulators import Simulator, presets, running_many
    from bardo.surfaces.cli.simulate import KEY_VARIABLE, configuration, entry_for

    simulators = [Simulator(name, keep_requests=False) for name in presets()]
    with tempfile.TemporaryDirectory(prefix="bardo-simulated-") as folder, running_many(simulators) as servers:
        entries = [entry_for(one, servers[one.provider.name].base_url) for one in simulators]
        file = Path(folder) / "bardo.toml"
        state = f'[log]\npath = "{Path(folder).as_posix()}/log.db"'
        file.write_text(f"{configuration(entries)}\n\n{state}\n", encoding="utf-8")
        os.environ.setdefault(KEY_VARIABLE, "simulated")
        yield file


def _serve(
    config: Path | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    allow_unauthenticated: bool,
    *,
    simulated: bool,
) -> None:
    settings = load_settings(config)
    gateway = msgspec.structs.replace(
        settings.gateway,
        host=host or settings.gateway.host,
        allow_unauthenticated=allow_unauthenticated or settings.gateway.allow_unauthenticated,
    )
    settings = msgspec.structs.replace(settings, gateway=gateway)
    # Look through what nobody can make anew, before anybody is told that bardo listens. Raises OperatorError, which names the file.
    log, state = log_path(settings), state_path(settings)
    if settings.log.enabled and isinstance(log, Path):
        check_ledger(log, LOG)
    if isinstance(state, Path):
        check_ledger(state, STATE)
        if state.is_file() and state.stat().st_size:
            # So a form that this version does not know is told here, and workers do not migrate side by side.
            from bardo.services.accounts.key_store import holds_keys, open_keys

            if holds_keys(state):
                open_keys(state).dispose()
    responses = place_of(settings.responses, os.environ, "responses")
    if is_file_name(responses):
        check_ledger(named_path(responses), RESPONSES)
        store = open_responses(settings.responses)
        if store is not None:
            store.close()
    configured = [provider_of(entry, settings.source) for entry in settings.providers] or with_keys(Keyring())
    check_proxies(url for provider in configured for url in provider.base_urls)
    check_bind(gateway, has_keys=asks_for_keys(settings))
    _check_log(settings)
    # The workers are processes of their own: they read the configuration themselves.
    os.environ["BARDO_HOST"] = gateway.host
    os.environ["BARDO_ALLOW_UNAUTHENTICATED"] = str(gateway.allow_unauthenticated).lower()
    if config is not None:
        os.environ["BARDO_CONFIG"] = str(config.absolute())
    processes = workers or gateway.workers
    os.environ["BARDO_WORKERS"] = str(processes)
    # A session of the panel holds in every worker.
    os.environ.setdefault("BARDO_PANEL_SECRET", secrets.token_hex(32))
    with _shared_stores(settings, processes):
        serve_app(
            APP,
            host=gateway.host,
            port=gateway.port if port is None else port,
            workers=processes,
            announce=lambda address: _announce(address, settings, simulated=simulated),
        )


@contextmanager
def _shared_stores(settings: Settings, workers: int) -> Iterator[None]:
    """Share state between workers that one worker would keep in memory: in files that are deleted when the gateway ends."""
    shared = [WORKERS_FOLDER] if workers > 1 else []
    if workers > 1 and hasattr(socket, "AF_UNIX"):
        shared.append(FOLDER_VARIABLE)
    if settings.telemetry.metrics and workers > 1 and _METRICS_FOLDER not in os.environ:
        shared.append(_METRICS_FOLDER)
    if not shared:
        yield
        return
    # The folder is readable by its owner alone.
    usual = tempfile.gettempdir()
    is_too_long = len(os.fsencode(usual)) + _SOCKET_NAME > LONGEST_PATH
    place = Path("/tmp" if is_too_long and os.access("/tmp", os.W_OK) else usual)
    remove_abandoned(place)
    with own_folder(place) as folder:
        os.environ.update({variable: _make_folder(variable, folder) for variable in shared})
        try:
            yield
        finally:
            for variable in shared:
                del os.environ[variable]


def _make_folder(variable: str, folder: Path) -> str:
    """Make the folder that workers share for one purpose, and return its path."""
    place = folder / _FOLDERS[variable]
    place.mkdir()
    return str(place)


def _check_log(settings: Settings) -> None:
    """Create or migrate the log before workers open it side by side, and try whether it can be written. Raises LogProblem."""
    log, path = open_log(settings), log_path(settings)
    if log is None:
        return
    log.close()
    if isinstance(path, Path):
        store = SqliteLogStore(path, keep_content=False)
        try:
            store.check_writable()
        finally:
            store.close()


def _announce(address: str, settings: Settings, *, simulated: bool) -> None:
    print_stderr(f"bardo listens on {address}  (Ctrl-C ends it)")
    if simulated:
        names = [entry.id for entry in settings.providers]
        print_stderr(f"providers: {len(names)} simulated ones, which need no key: {', '.join(names)}")
        print_stderr(f"try it:\n{_curl_line(address)}")
    else:
        print_stderr(f"configuration: {settings.source or 'none; keys in the environment and local servers are used'}")
        none = "none yet; local servers are looked for on their usual ports, and --simulated needs neither"
        print_stderr(f"providers: {_providers(settings) or none}")
    for line in _without_keys(settings):
        print_stderr(line)
    warn_of_secrets(settings)
    asks = asks_for_keys(settings)
    # Workers say so where the database of keys cannot be asked.
    with contextlib.suppress(DatabaseProblem):
        if asks and not any_key_is_active(settings):
            print_stderr(f"no key of this gateway is active: {HOW_TO_GET_IN}")
    any_will_do = not asks or settings.gateway.allow_unauthenticated
    key = "any" if any_will_do else "<one of `bardo keys list`>"
    print_stderr(f"point an OpenAI SDK at it: OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY={key}")
    if settings.gateway.panel:
        print_stderr(f"watch it in a browser: {address}/panel")


def _curl_line(address: str) -> str:
    """Return what asks a simulated provider from a shell."""
    body = '{"model": "claude-sonnet-5", "reasoning_effort": "low", "messages": [{"role": "user", "content": "What is 27 * 43?"}]}'
    return f"  curl {address}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'"


def _without_keys(settings: Settings) -> list[str]:
    """Return a line for each configured provider whose key is not set."""
    keyring = Keyring()
    keyring.pays = bool(settings.payments.wallet_key_env)
    lines = []
    for entry in settings.providers:
        provider = provider_of(entry, settings.source)
        if keyring.lacks(provider) and provider.row.auth != "client":
            names = " or ".join((*provider.row.key_variables, *provider.row.header_variables.values()))
            lines.append(f"provider {provider.id} has no key: calls to it fail until {names} is set")
    return lines


def _providers(settings: Settings) -> str:
    providers = [provider_of(entry, settings.source) for entry in settings.providers] or with_keys(Keyring())
    return ", ".join(f"{provider.id} ({shown_url(provider.base_url)})" for provider in providers)
