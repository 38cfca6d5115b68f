"""Notice a client that leaves while its answer is made: thinking is billed, and nobody reads it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from bardo.surfaces.gateway.http import ClientGone, Receive

CLIENT_GONE = "the client has gone"
# Shorter than any model thinks.
_UNWATCHED_SECONDS = 0.03


async def until_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` in this task, and cancel it when the client leaves. Raises ClientGone then, or what `work` raises.

    A watcher of its own costs less than waiting for two tasks, and work that is done at once needs none.
    """
    task = asyncio.current_task()
    assert task is not None
    watcher = _Watcher(receive, task)
    beginning = asyncio.get_running_loop().call_later(_UNWATCHED_SECONDS, watcher.begin)
    try:
        await work
    except asyncio.CancelledError:
        if not watcher.gone:
            raise  # The server is stopping: the client still waits.
        task.uncancel()
        raise ClientGone from None
    else:
        if watcher.gone:
            await _absorb_cancellation(task)
    finally:
        beginning.cancel()
        watcher.end()


async def _absorb_cancellation(task: asyncio.Task[Any]) -> None:
    """Take in a cancellation that came as the work ended: servers report the end of a reply as the client's leave."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    task.uncancel()


class _Watcher:
    """Cancels a task when the client leaves."""

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self.gone = False
        self._receive = receive
        self._task = task
        self._watching: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Watch from now on."""
        self._watching = asyncio.ensure_future(self.watch())

    def end(self) -> None:
        """Watch no longer."""
        if self._watching is not None:
            self._watching.cancel()

    async def watch(self) -> None:
        """Wait for the client's leave."""
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.gone = True
        self._task.cancel(CLIENT_GONE)
