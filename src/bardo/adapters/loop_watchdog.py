"""Notice an event loop that stands still, say where, and end the process where it does not go on.

A thread looks whether the loop still answers. Where something holds the interpreter itself, as a search in C does, no thread can run: then
the system writes the stack to the error output, and ends the process after so many seconds of processor time. A stopped or sleeping machine
uses none, so that it ends nothing. The stack has files, lines and functions, and nothing that a request said.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

NOTICE_SECONDS = 2.0
END_SECONDS = 20.0
END_AFTER_SIGNAL_SECONDS = 5.0
"""Once it was told to end, a process whose loop stands has so long to go on."""
STANDSTILL = 70
"""The exit code of a process whose loop stood too long: EX_SOFTWARE of sysexits.h."""
_BEAT_SECONDS = 0.5
_THREAD_FIRST_SECONDS = 3.0
"""So much later than the thread the system ends the process: the thread says more, where it can run."""
_MOST_FRAMES = 40
_ERRORS = 2

_log = logging.getLogger("bardo.gateway")


def name_task(request_id: str) -> None:
    """Give the running task the id of the request that it works for, which is said where it stands still."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return
    if task is not None:
        task.set_name(request_id)


class LoopWatchdog:
    """Watches the loop that `start` is called in, from then on. `end` ends the process, with an exit code."""

    def __init__(
        self,
        *,
        notice_seconds: float = NOTICE_SECONDS,
        end_seconds: float = END_SECONDS,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._notice = notice_seconds
        self._limit = end_seconds
        self._end = end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0
        self._beats = 0
        self._is_told_to_end = False
        self._stopped = threading.Event()
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        if hasattr(signal, "setitimer"):
            # The handler is C's, and ends the process as the signal does by itself.
            faulthandler.register(signal.SIGPROF, file=_ERRORS, chain=True)
        self._beat()
        threading.Thread(target=self._watch, name="bardo-watchdog", daemon=True).start()

    def told_to_end(self) -> None:
        """Note that the process was told to end: a loop that stands is waited for no longer. May be called by a signal's handler."""
        self._is_told_to_end = True

    def stop(self) -> None:
        """Watch no more. Called in the loop."""
        self._stopped.set()
        if self._handle is not None:
            self._handle.cancel()
        faulthandler.cancel_dump_traceback_later()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _beat(self) -> None:
        """Say that the loop goes on, and have the system wait for the next time."""
        self._beats += 1
        assert self._loop is not None
        faulthandler.dump_traceback_later(self._notice + 1, file=_ERRORS)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, self._limit + _THREAD_FIRST_SECONDS)
        self._handle = self._loop.call_later(_BEAT_SECONDS, self._beat)

    def _watch(self) -> None:
        """Look at the loop until it has stood too long. Only time in which this thread could look counts."""
        seen, stood, told, last = self._beats, 0.0, False, time.monotonic()
        while not self._stopped.wait(_BEAT_SECONDS / 2):
            now = time.monotonic()
            # After a sleep of the machine a look is late, and says nothing about the loop.
            stood, last = stood + min(now - last, _BEAT_SECONDS), now
            if self._beats != seen:
                if told:
                    _log.warning("the event loop goes on after it stood for about %.0f s", stood)
                seen, stood, told = self._beats, 0.0, False
                continue
            if stood >= self._notice + _BEAT_SECONDS and not told:
                told = True
                self._tell(stood)
            if stood >= (END_AFTER_SIGNAL_SECONDS if self._is_told_to_end else self._limit):
                _log.critical("the event loop stood for %.0f s: the process ends, and open requests with it", stood)
                logging.shutdown()
                self._end(STANDSTILL)
                return

    def _tell(self, stood: float) -> None:
        faulthandler.cancel_dump_traceback_later()
        task = asyncio.current_task(self._loop)
        name = "" if task is None else task.get_name()
        where = "\n".join(_frames(sys._current_frames().get(self._thread_id)))
        what = f"in {name}" if name else "in no task"
        extra = {"request_id": name}
        _log.error(
            "the event loop stands for %.0f s %s, and nobody else is answered:\n%s", stood, what, where, extra=extra
        )


def _frames(frame: FrameType | None) -> list[str]:
    """Return where a thread is, the innermost first."""
    lines: list[str] = []
    while frame is not None and len(lines) < _MOST_FRAMES:
        lines.append(f"  {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return lines
