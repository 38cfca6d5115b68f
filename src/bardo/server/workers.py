"""The process that starts several workers, replaces those that have ended, and ends them."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from types import FrameType

from bardo.server.shutdown import HURRIED_SECONDS, HURRY_SIGNAL, StopSignals

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
