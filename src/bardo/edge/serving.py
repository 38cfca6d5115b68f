"""Serve an ASGI app: `serve` for the command line, `BackgroundServer` for demos and tests.

granian serves unless uvicorn is asked for. A client that leaves is told to the app by `receive()` returning
`http.disconnect`, under both; `send` never raises for it.
"""

from __future__ import annotations

import asyncio
import errno
import importlib
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from bardo.edge.lifecycle import Application, Attended
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from granian.server.embed import Server

LogLevel = Literal["debug", "info", "warning", "error", "critical"]

# granian counts idle keep-alive connections too, and its own default is 1024 shared by all workers.
_CONNECTIONS_PER_WORKER = 16_384
_BACKLOG = 2048
_OPEN_FILES = 65_536
_SECONDS_TO_SHUT_DOWN = 5


def serve(
    app_factory_path: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
    server: Literal["granian", "uvicorn"] = "granian",
    log_level: LogLevel = "warning",
    grace: float = 30.0,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve the app that `package.module:function` returns, in `workers` processes, until SIGINT or SIGTERM.

    Open requests then have `grace` seconds to end. `announce` gets the address just before serving; port 0 finds a free
    port. The module is imported here, the function is called in each worker: it must not open connections or start
    threads at import. Raises ConfigError where the app cannot be loaded or the port cannot be had, SystemExit(1) where
    its start-up fails in a worker.
    """
    load_factory(app_factory_path)
    ip, free = _available(host, port)
    _raise_file_limit()
    if announce is not None:
        announce(_address(host, free))
    run = {"granian": _serve_with_granian, "uvicorn": _serve_with_uvicorn}[server]
    run(app_factory_path, ip, free, workers, log_level, grace)


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
        self._app = Attended(app, grace=grace)
        self._host = host
        self._port = port
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bardo-background-server")
        self.address = ""

    def __enter__(self) -> Self:
        listener = _listening(self._host, self._port)
        self._strangers = _native_threads()
        self.address = _address(self._host, listener.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._serving = self._thread.submit(self._run, listener)
        self._serving.add_done_callback(lambda _: self._app.started.set())
        self._app.started.wait()
        if self._serving.done():
            self._thread.shutdown()
            self._serving.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._serving.done():
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.shutdown()
        _await_native_threads(self._strangers)
        self._serving.result()

    def _run(self, listener: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        from granian.errors import FatalError

        self._server = _embedded(self._app, listener)
        try:
            await self._server.serve()
        except FatalError as failure:
            listener.close()
            raise self._app.failure or failure from None
        listener.detach()  # The server closed it.

    def _stop(self) -> None:
        self._app.end()
        self._server.stop()  # type: ignore[no-untyped-call]


def _native_threads() -> int:
    """Return how many threads of this process Python does not know, where the system tells."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) - threading.active_count() if tasks.is_dir() else 0


def _await_native_threads(strangers: int) -> None:
    """Wait until granian's own threads have ended: one that outlives the interpreter aborts the process."""
    patience = 200
    while _native_threads() > strangers and patience > 0:
        patience -= 1
        time.sleep(0.005)


def _serve_with_granian(path: str, ip: str, port: int, workers: int, log_level: LogLevel, grace: float) -> None:
    from granian import Granian
    from granian.constants import HTTPModes, Interfaces
    from granian.log import LogLevels

    server = Granian(
        path,
        address=ip,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        websockets=False,
        http=HTTPModes.http1,
        backlog=_BACKLOG,
        backpressure=_CONNECTIONS_PER_WORKER,
        log_level=LogLevels(log_level),
        log_dictconfig=_log_to_stderr(),
        # The last resort: by then the worker has cancelled its requests itself.
        workers_kill_timeout=int(grace) + _SECONDS_TO_SHUT_DOWN,
    )
    server.serve(target_loader=partial(_attended, path, grace), wrap_loader=False)


def _serve_with_uvicorn(path: str, ip: str, port: int, workers: int, log_level: LogLevel, grace: float) -> None:
    try:
        import uvicorn
    except ImportError as failure:
        raise ConfigError("uvicorn is not installed", hint="pip install 'bardo[uvicorn]'") from failure

    uvicorn.run(
        path,
        factory=True,
        host=ip,
        port=port,
        workers=workers,
        backlog=_BACKLOG,
        log_level=log_level,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=int(grace),
    )


def _attended(path: str, grace: float) -> Application:
    return Attended(load_factory(path)(), grace=grace, heed_signals=True)


def _embedded(app: Application, listener: socket.socket) -> Server:
    """Return granian's embedded server on a socket that listens already."""
    from granian.constants import HTTPModes, Interfaces
    from granian.net import SocketHolder  # type: ignore[attr-defined]
    from granian.server.embed import Server

    class OnListener(Server):
        # Its own way to a socket knows no port 0, and leaves one socket open for each server.
        def _init_shared_socket(self) -> None:
            self._shd = SocketHolder(listener.fileno(), False, _BACKLOG)  # type: ignore[call-arg, assignment]

    return OnListener(
        app,
        interface=Interfaces.ASGI,
        websockets=False,
        http=HTTPModes.http1,
        backpressure=_CONNECTIONS_PER_WORKER,
        log_enabled=False,
    )


def _available(host: str, port: int) -> tuple[str, int]:
    """Return the address and port to bind, once they are known to be free: granian would share a taken port silently."""
    with _listening(host, port) as probe:
        name = probe.getsockname()
        return name[0], name[1]


def _listening(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # "localhost" has two addresses; clients try the older kind last, but all of them try it.
        family, _, _, _, where = min(found, key=lambda candidate: candidate[0] != socket.AF_INET)
        return socket.create_server(where[:2], family=family, backlog=_BACKLOG)
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


def _log_to_stderr() -> dict[str, Any]:
    handler = {"formatter": "generic", "class": "logging.StreamHandler", "stream": "ext://sys.stderr"}
    return {"handlers": {"console": handler, "access": {**handler, "formatter": "access"}}}
