"""uvicorn as bardo runs it: in this process, in several workers, or in a thread.

Its own loop looks only every tenth of a second whether it shall end, and it ends by the signal that told it to. This one ends at once, and
returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing.connection
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from uvicorn.config import STARTUP_FAILURE as STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from bardo.edge.graceful_shutdown import HURRIED_SECONDS, HURRY_SIGNAL, Application, StopSignals
from bardo.edge.server_protocol import BoundedProtocol

Create = Callable[[], Application]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The header that gives the date is renewed this often.
_TICK_SECONDS = 1.0
# Connections tell nobody that they have closed.
_LOOK_SECONDS = 0.005
# How long after a worker that could not start the next one is started.
_RESTART_SECONDS = 5.0
# How long a client may take to read the rest of its reply once the server stops.
_UNREAD_SECONDS = 2.0
# How often a supervisor looks whether it was told again to end.
_SIGNAL_SECONDS = 0.1


class Server(uvicorn.Server):
    """One server. `leave` ends it from another thread; as the main thread's it ends at SIGINT or SIGTERM."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._leaving = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def leave(self, first: Callable[[], None]) -> None:
        """Begin to stop, after `first` was called in the server's loop. Does nothing once it has stopped."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: it has stopped by itself.
                self._loop.call_soon_threadsafe(self._leave, first)

    def _leave(self, first: Callable[[], None]) -> None:
        first()
        self._leaving.set()

    async def main_loop(self) -> None:
        """Serve until told to end."""
        while not self._leaving.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), _TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and wait for those that are open: whoever serves bounds how long a request may last.

        A client that does not read what was sent to it is waited for only a short time.
        """
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        state = self.server_state
        loop = asyncio.get_running_loop()
        unread_until = loop.time() + _UNREAD_SECONDS
        while state.connections or state.tasks:
            if state.tasks:
                unread_until = loop.time() + _UNREAD_SECONDS
            elif loop.time() > unread_until:
                for connection in list(state.connections):
                    connection.transport.abort()
            await asyncio.sleep(_LOOK_SECONDS)
        await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Heed signals where this is the main thread. They are not raised once more at the end: the caller goes on."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError):  # Another thread gets no signals.
            for number in _SIGNALS:
                signal.signal(number, lambda *_: self.leave(lambda: None))
        yield


def config(
    app: Application | Create,
    *,
    factory: bool = False,
    workers: int = 1,
    log_level: str = "warning",
    stop_seconds: int | None = None,
) -> uvicorn.Config:
    """Return how `app` is served. `stop_seconds` bounds how long uvicorn's own server waits for requests when it stops."""
    return uvicorn.Config(
        app,
        factory=factory,
        workers=workers,
        log_level=log_level,
        http=BoundedProtocol,
        timeout_graceful_shutdown=stop_seconds,
        access_log=False,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
    )


def serve_here(create: Create, listener: socket.socket, *, log_level: str) -> None:
    """Serve in this process until a signal ends it. Raises SystemExit(1) where the app's start-up fails."""
    try:
        Server(config(create, factory=True, log_level=log_level)).run([listener])
    except SystemExit:
        raise SystemExit(1) from None


class Supervisor(Multiprocess):
    """Starts the workers, replaces those that have ended, and tells each of them to read the configuration again at SIGHUP.

    uvicorn's own also kills a worker that does not answer within five seconds: on a busy machine one that is still starting, so that none
    ever serves, with all its streams. It replaces all workers at SIGHUP, which ends their streams. And it waits for its workers, whoever
    tells it again to end: this one has them end their open requests at the second signal, and kills those that are left three seconds
    later, or at a third.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self.could_not_start = False
        """Whether one of the first workers failed at its start, which ended all of them."""
        self._first: tuple[Process, ...] = ()
        self.killed_by = 0
        """The signal at which workers that did not end were killed, 0 where none was."""
        self._failed: dict[Process, float] = {}
        self._wishes = StopSignals()
        self._last_signal = 0
        for number in _SIGNALS:
            signal.signal(number, self._told_to_end)

    def _told_to_end(self, number: int, _: FrameType | None) -> None:
        self._wishes.note()
        self._last_signal = number
        self.signal_queue.append(number)

    def join_all(self) -> None:
        """Wait until all workers have ended."""
        kill_at: float | None = None
        while left := [worker for worker in self.processes if worker.process.is_alive()]:
            multiprocessing.connection.wait([worker.process.sentinel for worker in left], _SIGNAL_SECONDS)
            if self._wishes.count > 1 and kill_at is None:
                # A worker that has a loop in order ends by itself.
                kill_at = time.monotonic() + HURRIED_SECONDS + _SIGNAL_SECONDS if HURRY_SIGNAL is not None else 0.0
                for worker in left:
                    if worker.pid is not None and HURRY_SIGNAL is not None:
                        os.kill(worker.pid, HURRY_SIGNAL)
            if kill_at is not None and (self._wishes.count > 2 or time.monotonic() >= kill_at):
                self.killed_by = self._last_signal
                for worker in left:
                    worker.process.kill()
        super().join_all()

    def init_processes(self) -> None:
        """Start the first workers."""
        super().init_processes()
        self._first = tuple(self.processes)

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that have ended, and stop where one of the first ones could not start."""
        for index, worker in enumerate(self.processes):
            if self.should_exit.is_set() or worker.process.is_alive() or not self._may_replace(worker):
                continue
            self._failed.pop(worker, None)
            self.processes[index] = Process(self.config, self.sockets)
            self.processes[index].start()

    def _may_replace(self, worker: Process) -> bool:
        """Return whether another worker is to take the place of one that has ended.

        Where one that took the place of another cannot start, the next is started after a while: the configuration may be wrong by now, and
        the other workers go on with what it was.
        """
        worker.kill()
        worker.join()
        if worker.exitcode != STARTUP_FAILURE:
            return True
        if worker in self._first:
            self.could_not_start = True
            self.should_exit.set()
            return False
        return time.monotonic() >= self._failed.setdefault(worker, time.monotonic()) + _RESTART_SECONDS

    def handle_hup(self) -> None:
        """Tell each worker to read the configuration again."""
        for worker in self.processes:
            if worker.pid is not None and worker.process.is_alive():
                os.kill(worker.pid, signal.SIGHUP)


def serve_with_workers(
    create: Create, listener: socket.socket, *, workers: int, log_level: str, stop_seconds: int
) -> None:
    """Serve in several processes, and replace those that die. Raises SystemExit(1) where the app's start-up fails."""
    served = config(create, factory=True, workers=workers, log_level=log_level, stop_seconds=stop_seconds)
    supervisor = Supervisor(served, [listener])
    supervisor.run()
    if supervisor.could_not_start:
        raise SystemExit(1)
    if supervisor.killed_by:
        raise SystemExit(128 + supervisor.killed_by)
