"""A gateway that applies what is changed in its configuration to new requests, while those that are open go on as they began; as a server
process loads it: configured by `BARDO_CONFIG`, ./bardo.toml, or what is found.

SIGHUP, or a change of the file, has the configuration read again. One that is wrong is reported in the log of the process, and the one
at work stays.
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
from pathlib import Path

import msgspec

from bardo.adapters.config.gateway import ErrorReply, ServerBounds, check_bind
from bardo.adapters.config.settings import Settings, load_settings
from bardo.server.worker_events import FOLDER_VARIABLE, WorkerEvents
from bardo.services.accounts.opening import has_keys
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.callers import Pairs
from bardo.surfaces.gateway.configured import ConfiguredGateway
from bardo.surfaces.gateway.http import Receive, Scope, Send
from bardo.values.errors import BardoError, ConfigError

LOOK_SECONDS = 1.0
"""How often the file is looked at."""
_FIXED = ("host", "port", "workers", *ServerBounds.__struct_fields__)
_log = logging.getLogger("bardo.gateway")


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
            await self._now.application.http(scope, receive, send)
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
        check_bind(settings.gateway, has_keys=has_keys(settings))
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
    check_bind(settings.gateway, has_keys=has_keys(settings))
    return ReloadingGateway(ConfiguredGateway(settings), load_settings)


def gateway_of(settings: Settings, environment: Mapping[str, str] | None = None) -> Gateway:
    """Return the application of `settings`, with an engine of its own that ends with it."""
    return ConfiguredGateway(settings, environment).application
