"""An ASGI app that reports a failed start-up and cancels open requests at shutdown, which servers do not do themselves.

A server goes on without an app whose start-up raised, or reports it in its own log only, and waits without a bound for a request that does
not end.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from bardo.adapters.config.gateway import ServerLimits
from bardo.adapters.loop_watchdog import LoopWatchdog
from bardo.server.reply import Application, Message, Receive, Scope, Send
from bardo.values.errors import STOPPING

_log = logging.getLogger("bardo.gateway")

# A request that was cancelled has this long to end its reply.
CANCELLED_SECONDS = 2.0
_SECONDS_WITHOUT_A_WORD = 1.0
HURRIED_SECONDS = 3.0
"""A process that was told twice to end has so long to end by itself."""
# `timeout` of coreutils and terminals signal a process and then its whole group.
_SAME_WISH_SECONDS = 0.1
HURRY_SIGNAL: signal.Signals | None = getattr(signal, "SIGUSR1", None)
"""By this a supervisor tells its workers that it was told twice to end: they may get each other signal from others, too."""


class StopSignals:
    """Counts how often somebody has told a process to end; signals that come together are one wish."""

    def __init__(self) -> None:
        self.count = 0
        self._last = -_SAME_WISH_SECONDS

    def note(self) -> int:
        """Count a signal that came now, and return the number of wishes. May be called by a signal's handler."""
        now = time.monotonic()
        if now - self._last >= _SAME_WISH_SECONDS:
            self.count += 1
            self._last = now
        return self.count


class GracefulShutdown:
    """Runs `app` on bardo's own server, which keeps the tasks that answer requests in `limits`.

    `started` is set once its start-up has ended, `failure` is what start-up raised. With `handles_signals`, the first SIGTERM or SIGINT
    gives open requests `grace` seconds to end and then cancels them. A second one cancels them at once, and ends the process where
    something still holds it up after three seconds; a third one ends it as it is. A worker hears of the second from its supervisor.
    `on_start` is called once, when start-up has ended. Such a process is also watched: it ends where its loop stands still.
    """

    def __init__(
        self,
        app: Application,
        *,
        grace: float,
        handles_signals: bool = False,
        on_start: Callable[[], None] | None = None,
    ) -> None:
        self.started = threading.Event()
        self.limits = ServerLimits(app)
        self.failure: Exception | None = None
        self._app = app
        self._grace = grace
        self._handles_signals = handles_signals
        self._on_start = on_start
        self._watchdog = LoopWatchdog() if handles_signals else None
        self._wishes = StopSignals()
        self._ending: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            # Cancelled by `end_now`: the server closes the connection, and has nothing to report.
            if self._ending is None:
                raise

    def end(self) -> None:
        """Cancel the open requests after `grace` seconds. Call inside the loop; a second call changes nothing.

        An app that has `end_streams` ends at once what would go on without an end.
        """
        if self._ending is None:
            end_streams = getattr(self._app, "end_streams", None)
            if end_streams is not None:
                end_streams()
            self._ending = asyncio.get_running_loop().call_later(self._grace, self.end_now)

    def end_now(self) -> None:
        """Cancel the requests that are still open: each sees CancelledError, and may end its reply within a short time."""
        asyncio.get_running_loop().call_later(CANCELLED_SECONDS, self._cancel_open)
        self._cancel_open()

    def _cancel_open(self) -> None:
        for task in tuple(self.limits.tasks):
            # One that has not begun could not answer: it is cancelled the second time.
            if inspect.getcoroutinestate(task.get_coro()) != inspect.CORO_CREATED:  # type: ignore[arg-type]
                task.cancel(STOPPING)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = False
        if self._handles_signals and threading.current_thread() is threading.main_thread():
            self._handle_signals()

        async def receive_noting() -> Message:
            nonlocal asked
            asked = True
            return await receive()

        async def send_noting(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._begin()
            elif message["type"].startswith("lifespan.shutdown.") and self._watchdog is not None:
                self._watchdog.stop()
            await send(message)

        try:
            await self._app(scope, receive_noting, send_noting)
        except Exception as failure:
            if not asked:
                await self._lifespan_without_app(receive, send_noting)
                return
            if not self.started.is_set():
                self.failure = failure
                await send({"type": "lifespan.startup.failed", "message": f"start-up failed: {failure}"})
            raise

    async def _lifespan_without_app(self, receive: Receive, send: Send) -> None:
        """Answer lifespan messages for an app that does not support them, as the ASGI specification allows."""
        while True:
            asked = (await receive())["type"]
            await send({"type": f"{asked}.complete"})
            if asked == "lifespan.shutdown":
                return

    def _begin(self) -> None:
        if self._handles_signals and threading.current_thread() is threading.main_thread():
            assert self._watchdog is not None
            self._watchdog.start()
        if self._on_start is not None:
            self._on_start()
        self.started.set()

    def _handle_signals(self) -> None:
        """Handle the signals that end a process, in addition to their present handlers."""
        loop, is_worker = asyncio.get_running_loop(), multiprocessing.parent_process() is not None
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def handle(number: int, frame: FrameType | None) -> None:
            if self._watchdog is not None:
                self._watchdog.told_to_end()
            wishes = min(self._wishes.note(), 1) if is_worker else self._wishes.note()
            if wishes > 2 or (wishes > 1 and loop.is_closed()):
                os._exit(128 + number)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._signalled, number, wishes > 1)
            inner = before[signal.Signals(number)]
            if callable(inner):
                inner(number, frame)

        for number in before:
            signal.signal(number, handle)
        if is_worker and HURRY_SIGNAL is not None:
            signal.signal(HURRY_SIGNAL, lambda number, _: loop.call_soon_threadsafe(self._signalled, number, True))

    def _signalled(self, number: int, hurries: bool) -> None:
        if self._ending is None:
            asyncio.get_running_loop().call_later(_SECONDS_WITHOUT_A_WORD, self._tell_who_is_waited_for)
        self.end()
        if hurries:
            self.end_now()
            # A thread of a store, or one that waits for a process, may hold up the end of the loop itself.
            forced = threading.Timer(HURRIED_SECONDS, os._exit, (128 + number,))
            forced.daemon = True
            forced.start()

    def _tell_who_is_waited_for(self) -> None:
        if waiting := len(self.limits.tasks):
            text = (
                "the gateway stops: open requests, %d, have %g s to end; a second Ctrl-C or SIGTERM ends them at once"
            )
            _log.warning(text, waiting, self._grace)
