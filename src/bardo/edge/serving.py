"""Serve an ASGI app: `serve` for the command line, `BackgroundServer` for demos and tests.

uvicorn serves, with httptools and, where it is installed, uvloop. When a client disconnects, the app's `receive()` returns
`http.disconnect`; `send` does not raise.
"""

from __future__ import annotations

import errno
import gc
import importlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Literal, Protocol, Self

from bardo.edge.freed_memory import give_back_when_idle, keep_freed_memory
from bardo.edge.graceful_shutdown import CANCELLED_SECONDS, HURRIED_SECONDS, Application, GracefulShutdown
from bardo.edge.server_limits import ServerLimits
from bardo.values.errors import BardoError, ConfigError, InternalError

LogLevel = Literal["debug", "info", "warning", "error", "critical"]

_log = logging.getLogger("bardo.gateway")
BACKLOG = 2048
_OPEN_FILES = 65_536
# A request makes hundreds of objects and hardly a cycle. With Python's own 700, nearly every request waits for a collection.
_COLLECTION_THRESHOLDS = (10_000, 10, 10)


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
        from bardo.edge.server import serve_here, serve_with_workers

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
            serve_here(create, listener, log_level=log_level)
        else:
            stop_seconds = int(grace + 2 * CANCELLED_SECONDS) + 1
            created = partial(_create_in_worker, create, stop_seconds)
            serve_with_workers(created, listener, workers=workers, log_level=log_level, stop_seconds=stop_seconds)


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
        from bardo.edge.server import Server, config

        listener = _listening(self._host, self._port)
        self.address = _address(self._host, listener.getsockname()[1])
        self._server = Server(config(self._app, log_level="critical"))
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
                self._server.run([listener])
            except SystemExit:
                raise self._app.failure or InternalError("the server did not start") from None


class _Started(Protocol):
    """Counts the processes that serve, over the boundaries of processes."""

    def release(self) -> None: ...


def _create_app(path: str, grace: float, started: _Started) -> Application:
    def begin() -> None:
        _settle(app.limits)
        started.release()

    app = GracefulShutdown(load_factory(path)(), grace=grace, handles_signals=True, on_start=begin)
    return app


def _create_in_worker(create: Callable[[], Application], stop_seconds: float) -> Application:
    """Return the app of a worker. Where it cannot be made, the worker ends with one line and the exit code of a start-up that failed."""
    from bardo.edge.server import STARTUP_FAILURE

    threading.Thread(target=_end_with_parent, args=(stop_seconds,), name="bardo-parent", daemon=True).start()
    try:
        return create()
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


def _settle(limits: ServerLimits) -> None:
    """Prepare this process, which only serves, for many requests: collect garbage less often, and exclude all objects that exist now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
    if keep_freed_memory():
        give_back_when_idle(lambda: not limits.tasks)


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
