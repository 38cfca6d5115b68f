"""The gateway as a server process loads it: configured by `BARDO_CONFIG`, ./bardo.toml, or what is found.

A gateway of one configuration is its application, its engine, its keys and its batches, which begin and end together. What is changed in
the configuration is applied to new requests, while those that are open go on as they began. SIGHUP, or a change of the file, has the
configuration read again. One that is wrong is reported in the log of the process, and the one at work stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from bardo.adapters.config.gateway import ErrorReply, ServerBounds, check_bind
from bardo.adapters.config.settings import Settings, load_settings, log_path, state_path
from bardo.adapters.sealing import Sealer, open_sealer
from bardo.batches.service import BatchService
from bardo.server.worker_events import FOLDER_VARIABLE, WorkerEvents
from bardo.services.accounts.accounts import Accounts
from bardo.services.accounts.opening import asks_for_keys, open_accounts
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.batches import read_item
from bardo.surfaces.gateway.callers import Pairs
from bardo.surfaces.gateway.context import PanelLoader
from bardo.surfaces.gateway.http import Receive, Scope, Send
from bardo.values.errors import BardoError, ConfigError
from bardo.wiring import Assembly, assemble, load_libraries, preload

_log = logging.getLogger("bardo.gateway")


class ConfiguredGateway:
    """The gateway that `settings` describe. `application` answers requests; it starts and stops all of it with the server's lifespan.

    `before` is the gateway of an earlier configuration, from which it takes over what calls left there, once `commit` was called.
    Raises ConfigError, DatabaseProblem and LogProblem; nothing that was opened is left behind then.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        *,
        before: ConfiguredGateway | None = None,
    ) -> None:
        self.settings = settings
        self._before = before
        # A key of this process alone is kept: what it has sealed is with clients.
        same = before is not None and _seal_key(before.settings) == _seal_key(settings)
        self._sealer: Sealer = before._sealer if before is not None and same else open_sealer(settings, environment)
        kept = before._accounts if before is not None and _same_accounts(before.settings, settings) else None
        # First, because it starts no thread: nothing is left behind where keys and budgets are wrong.
        self._accounts: Accounts | None = kept or open_accounts(settings, environment)
        self._kept_accounts = kept is not None
        self._gave_accounts = False
        try:
            earlier = None if before is None else before.assembly
            self.assembly: Assembly = assemble(
                settings, environment=environment, before=earlier, for_clients=True, accounts=self._accounts
            )
        except BaseException:
            self._close_new_accounts()
            raise
        if self._accounts is not None:
            self._accounts.use_log(self.assembly.log)
        self._batches = self._batch_service(environment)
        self._loading: asyncio.Task[None] | None = None
        self._panel = PanelLoader(settings, environment) if settings.gateway.panel else None
        self.application: Gateway = Gateway(
            self.assembly.services,
            settings.gateway,
            responses=self.assembly.responses,
            feedback=self.assembly.feedback,
            batches=self._batches,
            panel=self._panel,
            memory=self.assembly.memory,
            sealer=self._sealer,
            accounts=self._accounts,
            before=None if before is None else before.application,
            start=self.start,
            stop=self.stop,
        )

    def _batch_service(self, environment: Mapping[str, str] | None) -> BatchService | None:
        if not self.settings.batches.enabled:
            return None
        return BatchService(
            self.assembly.services,
            self.settings.batches,
            state_path(self.settings, environment),
            partial(read_item, sealer=self._sealer),
            log=self.assembly.log,
            log_path=log_path(self.settings, environment),
        )

    async def start(self) -> None:
        """Begin what goes on beside the requests."""
        preload()
        self._loading = asyncio.create_task(asyncio.to_thread(load_libraries))
        if self.assembly.services.pipeline is not None:
            await self.assembly.services.pipeline.load()
        if self._accounts is not None and not self._kept_accounts:
            self._accounts.start()
        if not self.settings.providers:
            await self.assembly.services.directory.add_local()
        self.assembly.start()
        if self._batches is not None:
            await self._batches.start()
        providers = self.assembly.services.directory.providers
        if providers:
            _log.info("providers: %s", ", ".join(provider.id for provider in providers))
        else:
            _log.warning("no provider: set a provider's key in the environment, or write a bardo.toml")

    def take_over(self) -> None:
        """Replace the previous gateway: from now on, that one leaves shared resources open when it stops."""
        before, self._before = self._before, None
        assert before is not None
        self.assembly.lasting.commit()
        before._gave_accounts = self._kept_accounts

    async def end_batches(self) -> None:
        """End the work on batches. A later gateway goes on with them: two never work on the same ones."""
        batches, self._batches = self._batches, None
        if batches is not None:
            await batches.close()

    async def stop(self) -> None:
        """End what goes on beside the requests, and close all that no later gateway took over."""
        await self.end_batches()
        if self._loading is not None:
            await self._loading
        if self._panel is not None:
            self._panel.close()
        await self.assembly.close()
        if self._accounts is not None and not self._gave_accounts:
            await self._accounts.stop()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self.application.is_busy

    def abandon(self) -> None:
        """Close a gateway that never began; the one before it goes on."""
        self.assembly.lasting.abandon()
        self._close_new_accounts()

    def _close_new_accounts(self) -> None:
        if self._accounts is not None and not self._kept_accounts:
            self._accounts.close()


def _same_accounts(before: Settings, now: Settings) -> bool:
    """Return whether keys, and where they and what they spent are kept, are the same."""
    return (
        before.keys == now.keys
        and before.state == now.state
        and before.log == now.log
        and before.budgets == now.budgets
        and before.gateway.allow_unauthenticated == now.gateway.allow_unauthenticated
    )


def _seal_key(settings: Settings) -> tuple[object, ...]:
    """Return the settings that say where the key for sealing is."""
    return settings.responses.seal_key_env, settings.state, settings.log


LOOK_SECONDS = 1.0
"""How often the file is looked at."""
_FIXED = ("host", "port", "workers", *ServerBounds.__struct_fields__)


class ReloadingGateway:
    """Answers requests by the configuration at work. `load` reads the configuration, and raises ConfigError where it is wrong."""

    def __init__(self, first: ConfiguredGateway, load: Callable[[], Settings]) -> None:
        self._now = first
        self._load = load
        self._earlier: deque[ConfiguredGateway] = deque()
        self._reloading = asyncio.Lock()
        self._retiring = asyncio.Lock()
        self._ending = asyncio.Event()
        self._tasks: set[asyncio.Task[object]] = set()
        source = first.settings.source
        self._file = Path(source) if source and first.settings.gateway.reload_on_change else None
        self._read_as = None if self._file is None else _signature(self._file)

    @property
    def bounds(self) -> ServerBounds:
        """What the server accepts from clients, as the configuration at the start says."""
        return self._now.application.bounds

    @property
    def max_body_bytes(self) -> int:
        """How long a body may be, as the configuration at work says."""
        return self._now.application.max_body_bytes

    def encode_error(self, path: str, headers: Pairs, problem: BardoError) -> ErrorReply:
        """Return the answer to a request that the server refused before it came here."""
        return self._now.application.encode_error(path, headers, problem)

    def end_streams(self) -> None:
        """End the streams that have no end of their own, those of earlier configurations too, because the gateway stops."""
        for gateway in (*self._earlier, self._now):
            gateway.application.end_streams()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            await self._now.application(scope, receive, send)
            if self._earlier:
                self._begin(self._retire())
        elif scope["type"] == "websocket":
            # Each request of the connection is one by the configuration that is at work then.
            await self._now.application.websocket(scope, receive, send, self)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def reload(self) -> bool:
        """Read the configuration, apply it to new requests, and return whether that could be done."""
        async with self._reloading:
            before = self._now
            try:
                settings = await asyncio.to_thread(self._read, before.settings)
                if settings == before.settings:
                    before.assembly.services.facts.lessons.forget()
                    _log.warning("the configuration was read again, and nothing changes for new requests")
                    return True
                following = ConfiguredGateway(settings, before=before)
            except BardoError as problem:
                _log.error("the configuration is wrong, and stays as it was: %s", problem)
                return False
            following.take_over()
            self._now = following
            self._earlier.append(before)
            await before.end_batches()
            await following.start()
            _log.warning("the configuration was read again, and holds for new requests")
        await self._retire()
        return True

    def _read(self, before: Settings) -> Settings:
        if before.source and _is_empty(Path(before.source)):
            hint = "a write that failed leaves such a file; start bardo again to run without a configuration"
            raise ConfigError(f"{before.source} is empty", hint=hint)
        settings = self._load()
        check_bind(settings.gateway, has_keys=asks_for_keys(settings))
        return with_fixed_settings(settings, before)

    async def _retire(self) -> None:
        """Close the configurations that no request needs any more, the oldest first: later ones share what they hold."""
        async with self._retiring:
            while self._earlier and self._earlier[0].is_idle:
                try:
                    await self._earlier[0].stop()
                finally:
                    self._earlier.popleft()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._now.start()
        events = await _worker_events(self._now)
        with _on_hangup(lambda: self._begin(self.reload())):
            if self._file is not None:
                self._begin(self._watch(self._file))
            await send({"type": "lifespan.startup.complete"})
            await receive()
        self._ending.set()
        # Not cancelled: a configuration of which only a part is closed would leave rows of the log unwritten.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if events is not None:
            await events.stop()
        while self._earlier:
            await self._earlier.popleft().stop()
        await self._now.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _watch(self, file: Path) -> None:
        """Reload when the file has changed and is the same at two looks: whoever writes it may take a moment."""
        seen = self._read_as
        while not await self._ends_within(LOOK_SECONDS):
            before, seen = seen, await asyncio.to_thread(_signature, file)
            if seen is not None and seen != self._read_as and seen == before:
                self._read_as = seen
                await self.reload()

    async def _ends_within(self, seconds: float) -> bool:
        """Return whether the gateway ends before that time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        return self._ending.is_set()

    def _begin(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("a mistake in bardo, while the configuration was read again", exc_info=problem)


def with_fixed_settings(settings: Settings, before: Settings) -> Settings:
    """Return a configuration that is to be applied, with what holds until the process ends from the one before."""
    gateway = {name: getattr(before.gateway, name) for name in _FIXED}
    fixed = msgspec.structs.replace(
        settings, gateway=msgspec.structs.replace(settings.gateway, **gateway), telemetry=before.telemetry
    )
    changed = [f"{name} under [gateway]" for name in _FIXED if getattr(settings.gateway, name) != gateway[name]]
    if settings.telemetry != before.telemetry:
        changed.append("[telemetry]")
    if changed:
        _log.warning("this changes only when bardo is started again: %s", ", ".join(changed))
    return fixed


async def _worker_events(gateway: ConfiguredGateway) -> WorkerEvents | None:
    """Begin to share events with the other workers of `bardo serve`, and return what does, or None if there are none.

    Later configurations keep the bus.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    events = WorkerEvents(gateway.assembly.services.events, Path(folder))
    await events.start()
    return events


@contextlib.contextmanager
def _on_hangup(call: Callable[[], None]) -> Iterator[None]:
    """Call something at each SIGHUP, where the system has it and this is the thread that gets signals."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(hangup, call)
    try:
        yield
    finally:
        loop.remove_signal_handler(hangup)


def _is_empty(file: Path) -> bool:
    """Return whether there is a file without any content."""
    try:
        return not file.read_bytes().strip()
    except OSError:
        return False


def _signature(file: Path) -> tuple[int, int, int] | None:
    """Return what is different when a file has changed, or None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def create_app() -> ReloadingGateway:
    """Return the application of the configuration at hand, which applies what is changed there. Raises ConfigError."""
    settings = load_settings()
    if settings.telemetry.logs == "json":
        from bardo.adapters.log_filter import write_json_logs

        write_json_logs()
    check_bind(settings.gateway, has_keys=asks_for_keys(settings))
    return ReloadingGateway(ConfiguredGateway(settings), load_settings)


def gateway_of(settings: Settings, environment: Mapping[str, str] | None = None) -> Gateway:
    """Return the application of `settings`, with an engine of its own that ends with it."""
    return ConfiguredGateway(settings, environment).application
