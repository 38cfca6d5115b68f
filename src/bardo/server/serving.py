"""Serve an ASGI app: in this process, in several workers, or in a thread. `serve` is for the command line, `BackgroundServer` for tests."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import importlib
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.context import SpawnProcess
from types import FrameType, TracebackType
from typing import Any, Literal, Protocol, Self

from bardo.server.protocol import Connection
from bardo.server.reply import SERVER_LOG, Application, Message, ServerState
from bardo.server.shutdown import CANCELLED_SECONDS, HURRIED_SECONDS, HURRY_SIGNAL, GracefulShutdown, StopSignals
from bardo.values.errors import BardoError, ConfigError, InternalError

# Parameters of glibc's `mallopt`, from its <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# How many free bytes the end of the heap keeps, and from which size on memory is mapped, and unmapped once it is freed.
_KEPT_BYTES = 32 * 1024 * 1024
_MAPPED_BYTES = 4 * 1024 * 1024
_LOOK_SECONDS = 5.0
_OPERATORS = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")


def keep_freed_memory(environment: Mapping[str, str] | None = None) -> bool:
    """Have freed memory kept for the next requests, up to 32 MiB, until `give_back_when_idle`, and return whether that is done.

    A request with a body of a megabyte takes several megabytes and frees them at its end. glibc gives them back to the system at once, and
    the next request waits for its pages again: a quarter of its processor time (`python -m benchmarks growth`). Other C libraries are left
    alone, and so is glibc where the environment, by default this process's, sets the same.
    """
    if any(name in (os.environ if environment is None else environment) for name in _OPERATORS):
        return False
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # Only glibc has it; Windows has no library of this name at all.
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES) and mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES))


def give_back_when_idle(is_idle: Callable[[], bool], *, seconds: float = _LOOK_SECONDS) -> None:
    """Look every few `seconds` whether no request is at work, and give the system back what is kept then. Call inside the loop."""
    import ctypes

    trim = ctypes.CDLL(None).malloc_trim
    loop = asyncio.get_running_loop()

    def look() -> None:
        if is_idle():
            trim(0)
        loop.call_later(seconds, look)

    loop.call_later(seconds, look)


Create = Callable[[], Application]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]

_log = logging.getLogger("bardo.gateway")
_server_log = logging.getLogger(SERVER_LOG)
BACKLOG = 2048
_OPEN_FILES = 65_536
# A request makes hundreds of objects and hardly a cycle. With Python's own 700, nearly every request waits for a collection.
_COLLECTION_THRESHOLDS = (10_000, 10, 10)
# The event loop asks for the interpreter again behind each read and write. A short call beside a long body, whose work runs in a thread,
# would wait some ten times for Python's own five milliseconds.
_SWITCH_SECONDS = 0.0005
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The header that gives the date is renewed this often.
_TICK_SECONDS = 1.0
# Connections tell nobody that they have closed.
_LOOK_SECONDS_SERVER = 0.005
# How long a client may take to read the rest of its reply once the server stops.
_UNREAD_SECONDS = 2.0


class StartUpFailed(Exception):
    """The application could not start, and has said why."""


class Server:
    """One server. `leave` ends it from another thread; as the main thread's it ends at SIGINT or SIGTERM."""

    def __init__(self, create: Create) -> None:
        self._create = create
        self._leaving = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, listener: socket.socket) -> None:
        """Serve at a socket until told to end. Raises StartUpFailed, and what making the application raises."""
        try:
            import uvloop
        except ImportError:  # There is none for Windows.
            factory = None
        else:
            factory = uvloop.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(self._serve(listener))

    def leave(self, first: Callable[[], None]) -> None:
        """Begin to stop, after `first` was called in the server's loop. Does nothing once it has stopped."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: it has stopped by itself.
                self._loop.call_soon_threadsafe(self._leave, first)

    def _leave(self, first: Callable[[], None]) -> None:
        first()
        self._leaving.set()

    async def _serve(self, listener: socket.socket) -> None:
        loop = self._loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError):  # Another thread gets no signals.
            for number in _SIGNALS:
                signal.signal(number, lambda *_: self.leave(lambda: None))
        lifespan = Lifespan(self._create())
        state = ServerState(lifespan.app, lifespan.state)
        await lifespan.start()
        server = await loop.create_server(lambda: Connection(state, loop), sock=listener, backlog=BACKLOG)
        while not self._leaving.is_set():
            state.renew_date()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._leaving.wait()
        server.close()
        await self._end_connections(state)
        await lifespan.stop()

    async def _end_connections(self, state: ServerState) -> None:
        """Wait for the connections that are open: whoever serves bounds how long a request may last.

        A client that does not read what was sent to it is waited for only a short time.
        """
        for connection in list(state.connections):
            connection.shutdown()
        loop, tasks = asyncio.get_running_loop(), state.limits.tasks
        unread_until = loop.time() + _UNREAD_SECONDS
        while state.connections or tasks:
            if tasks:
                unread_until = loop.time() + _UNREAD_SECONDS
            elif loop.time() > unread_until:
                for connection in list(state.connections):
                    connection.transport.abort()
            await asyncio.sleep(_LOOK_SECONDS_SERVER)


class Lifespan:
    """The start and the end of an application, by ASGI's messages. `state` is what it gives each of its requests."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self.state: dict[str, Any] = {}
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._answered = asyncio.Event()
        self._answer: Message = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Have the application start. Raises StartUpFailed where it cannot; it, or the log, has said why."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        if not await self._ask("startup"):
            _server_log.error("%s", self._answer.get("message") or "the application did not start")
            raise StartUpFailed

    async def stop(self) -> None:
        """Have the application end what it has begun."""
        assert self._task is not None
        if not self._task.done() and not await self._ask("shutdown"):
            _server_log.error("%s", self._answer.get("message") or "the application did not end what it had begun")

    async def _ask(self, what: str) -> bool:
        self._answer = {}
        self._answered.clear()
        self._messages.put_nowait({"type": f"lifespan.{what}"})
        await self._answered.wait()
        return self._answer.get("type") == f"lifespan.{what}.complete"

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self.app(scope, self._messages.get, self._take_answer)
        except Exception as failure:  # noqa: BLE001 - Whatever it is, the server must know that no answer comes.
            if not self._answer.get("type", "").endswith(".failed"):
                _server_log.error("the application failed in its lifespan", exc_info=failure)
        finally:
            self._answered.set()

    async def _take_answer(self, message: Message) -> None:
        self._answer = message
        self._answered.set()


def serve(
    app_factory_path: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
    log_level: LogLevel = "warning",
    grace: float = 30.0,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve the app that `package.module:function` returns, in this process or in several `workers`, until SIGINT or SIGTERM.

    Open requests then have `grace` seconds to end. `announce` gets the address, in a thread, once every worker serves; port 0 finds a free
    port. The function is called in each worker. Raises ConfigError where the app cannot be loaded or the port cannot be had, SystemExit(1)
    where its start-up fails.
    """
    load_factory(app_factory_path)
    _raise_file_limit()
    with _listening(host, port) as listener:
        started = threading.Semaphore(0) if workers == 1 else multiprocessing.get_context("spawn").Semaphore(0)

        def announce_once_started() -> None:
            for _ in range(workers):
                started.acquire()
            if announce is not None:
                announce(_address(host, listener.getsockname()[1]))

        # A daemon: where a worker does not start, nothing is announced.
        threading.Thread(target=announce_once_started, name="bardo-announcement", daemon=True).start()
        create = partial(_create_app, app_factory_path, grace, started)
        if workers == 1:
            _server_log.setLevel(log_level.upper())
            try:
                Server(create).run(listener)
            except StartUpFailed:
                raise SystemExit(1) from None
        else:
            # A worker whose supervisor was killed has so long to end its requests.
            stop_seconds = grace + 2 * CANCELLED_SECONDS + 1
            supervisor = Supervisor(partial(_serve_as_worker, create, listener, log_level, stop_seconds), workers)
            supervisor.run()
            if supervisor.could_not_start:
                raise SystemExit(1)
            if supervisor.killed_by:
                raise SystemExit(128 + supervisor.killed_by)


def load_factory(path: str) -> Callable[[], Application]:
    """Return the function `package.module:function` names. Raises ConfigError where there is none."""
    module_name, _, name = path.partition(":")
    try:
        factory: Callable[[], Application] = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as failure:
        message = f"{path} does not name an app: {failure}"
        raise ConfigError(message, hint="write it as package.module:function") from failure
    return factory


class BackgroundServer:
    """Serve `app` from a thread of this process while a `with` block runs; `address` is its URL.

    Leaving the block gives open requests `grace` seconds, cancels the rest and waits until all is closed.
    """

    def __init__(self, app: Application, host: str = "127.0.0.1", port: int = 0, *, grace: float = 5.0) -> None:
        self._app = GracefulShutdown(app, grace=grace)
        self._host = host
        self._port = port
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bardo-background-server")
        self.address = ""

    def __enter__(self) -> Self:
        listener = _listening(self._host, self._port)
        self.address = _address(self._host, listener.getsockname()[1])
        _server_log.setLevel(logging.CRITICAL)
        self._server = Server(lambda: self._app)
        self._serving = self._thread.submit(self._serve, listener)
        self._serving.add_done_callback(lambda _: self._app.started.set())
        self._app.started.wait()
        if self._serving.done():
            self._thread.shutdown()
            self._serving.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.leave(self._app.end)
        self._thread.shutdown()
        self._serving.result()

    def _serve(self, listener: socket.socket) -> None:
        with listener:
            try:
                self._server.run(listener)
            except StartUpFailed:
                raise self._app.failure or InternalError("the server did not start") from None


class _Started(Protocol):
    """Counts the processes that serve, over the boundaries of processes."""

    def release(self) -> None: ...


def _create_app(path: str, grace: float, started: _Started) -> Application:
    def begin() -> None:
        # Prepare this process, which only serves, for many requests: collect garbage less often, and exclude all objects that exist now.
        gc.freeze()
        gc.set_threshold(*_COLLECTION_THRESHOLDS)
        sys.setswitchinterval(_SWITCH_SECONDS)
        if keep_freed_memory():
            give_back_when_idle(app.limits.is_idle)
        started.release()

    app = GracefulShutdown(load_factory(path)(), grace=grace, handles_signals=True, on_start=begin)
    return app


def _serve_as_worker(create: Create, listener: socket.socket, log_level: str, stop_seconds: float) -> None:
    """Serve in a process of its own. Where the application cannot start, it ends with one line and an exit code that says so."""
    threading.Thread(target=_end_with_parent, args=(stop_seconds,), name="bardo-parent", daemon=True).start()
    _server_log.setLevel(log_level.upper())
    if hasattr(signal, "SIGBREAK"):  # By this a supervisor ends its workers on Windows.
        signal.signal(signal.SIGBREAK, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        Server(create).run(listener)
    except StartUpFailed:
        raise SystemExit(STARTUP_FAILURE) from None
    except BardoError as problem:
        _log.error("a worker cannot start: %s", problem)
        raise SystemExit(STARTUP_FAILURE) from problem


def _end_with_parent(stop_seconds: float) -> None:
    """Wait until the process that started this worker is gone, and end it as a signal does.

    A supervisor that is killed ends no worker: they would keep the port, and nobody would replace or stop them.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(stop_seconds + HURRIED_SECONDS)
        os._exit(128 + signal.SIGTERM)


def _listening(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # "localhost" has two addresses; clients try the older kind last, but all of them try it.
        family, _, _, _, where = min(found, key=lambda candidate: candidate[0] != socket.AF_INET)
        return socket.create_server(where[:2], family=family, backlog=BACKLOG)
    except socket.gaierror as failure:
        raise ConfigError(f"the host {host} is not known", hint="use 127.0.0.1, 0.0.0.0 or ::") from failure
    except OSError as failure:
        raise _no_port(host, port, failure) from failure


def _no_port(host: str, port: int, failure: OSError) -> ConfigError:
    place = f"port {port} on {host}"
    if failure.errno == errno.EADDRINUSE:
        return ConfigError(f"{place} is already in use", hint="stop what listens there, or choose another port")
    if failure.errno == errno.EACCES:
        return ConfigError(f"{place} is not allowed to this user", hint="choose a port above 1023")
    return ConfigError(f"cannot listen on {place}: {failure.strerror}", hint="choose an address of this machine")


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _raise_file_limit() -> None:
    """Allow as many open files as bardo can use: every streamed reply holds two connections."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


STARTUP_FAILURE = 3
"""The exit code of a worker whose application could not start."""
# How long after a worker that could not start the next one is started.
_RESTART_SECONDS = 5.0
# How often a supervisor looks whether it was told something.
_SIGNAL_SECONDS = 0.1
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]
_RELOADING = getattr(signal, "SIGHUP", None)
# They would end or stop a supervisor, or mean something to workers alone.
_IGNORED = [getattr(signal, name) for name in ("SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)]


class Supervisor:
    """Has each of `count` workers run `serve`, replaces those that have ended, and tells them to read the configuration again at SIGHUP.

    A worker that is slow is left alone, also while it starts: its own watchdog ends one whose loop stands still. At the second signal to
    end the workers end their open requests, and those that are left three seconds later, or at a third, are killed.
    """

    def __init__(self, serve: Callable[[], None], count: int) -> None:
        self.could_not_start = False
        """Whether one of the first workers failed at its start, which ended all of them."""
        self.killed_by = 0
        """The signal at which workers that did not end were killed, 0 where none was."""
        self._serve = serve
        self._count = count
        self._workers: list[SpawnProcess] = []
        self._first: tuple[SpawnProcess, ...] = ()
        self._failed: dict[SpawnProcess, float] = {}
        self._wishes = StopSignals()
        self._last_signal = 0
        self._ends = self._reloads = False

    def run(self) -> None:
        """Run the workers until a signal ends them, or one of the first ones cannot start."""
        for number in _ENDING:
            signal.signal(number, self._told_to_end)
        if _RELOADING is not None:
            signal.signal(_RELOADING, self._told_to_reload)
        for number in _IGNORED:
            signal.signal(number, lambda *_: None)
        self._workers = [self._start_worker() for _ in range(self._count)]
        self._first = tuple(self._workers)
        while not self._ends:
            self._wait()
            if self._reloads:
                self._reloads = False
                self._tell(_RELOADING)
            self._replace_ended()
        # Windows has no SIGTERM: a worker takes Ctrl-Break for one.
        self._tell(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))
        self._join()

    def _told_to_end(self, number: int, _: FrameType | None) -> None:
        self._wishes.note()
        self._last_signal = number
        self._ends = True

    def _told_to_reload(self, *_: object) -> None:
        self._reloads = True

    def _start_worker(self) -> SpawnProcess:
        worker = multiprocessing.get_context("spawn").Process(target=self._serve)
        worker.start()
        return worker

    def _wait(self) -> list[SpawnProcess]:
        """Wait until a worker ends, but not long, and return those that run."""
        running = [worker for worker in self._workers if worker.is_alive()]
        if running:
            multiprocessing.connection.wait([worker.sentinel for worker in running], _SIGNAL_SECONDS)
        else:
            time.sleep(_SIGNAL_SECONDS)
        return running

    def _tell(self, number: signal.Signals | None) -> None:
        for worker in self._workers:
            if number is not None and worker.pid is not None and worker.is_alive():
                os.kill(worker.pid, number)

    def _replace_ended(self) -> None:
        """Replace the workers that have ended, and stop where one of the first ones could not start."""
        for index, worker in enumerate(self._workers):
            if not self._ends and not worker.is_alive() and self._may_replace(worker):
                self._failed.pop(worker, None)
                self._workers[index] = self._start_worker()

    def _may_replace(self, worker: SpawnProcess) -> bool:
        """Return whether another worker is to take the place of one that has ended.

        Where one that took the place of another cannot start, the next is started after a while: the configuration may be wrong by now, and
        the other workers go on with what it was.
        """
        if worker.exitcode != STARTUP_FAILURE:
            return True
        if worker in self._first:
            self.could_not_start = self._ends = True
            return False
        return time.monotonic() >= self._failed.setdefault(worker, time.monotonic()) + _RESTART_SECONDS

    def _join(self) -> None:
        """Wait until all workers have ended."""
        kill_at: float | None = None
        while running := self._wait():
            if self._wishes.count > 1 and kill_at is None:
                # A worker that has a loop in order ends by itself.
                kill_at = time.monotonic() + HURRIED_SECONDS + _SIGNAL_SECONDS if HURRY_SIGNAL is not None else 0.0
                self._tell(HURRY_SIGNAL)
            if kill_at is not None and (self._wishes.count > 2 or time.monotonic() >= kill_at):
                self.killed_by = self._last_signal
                for worker in running:
                    worker.kill()
