"""A gate holds replies until a test opens it: a provider that is slow, without a clock.

Tests wait for the moment a reply stands at the gate, do what they have to do, and open it. It works from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class Gate:
    """A gate that is closed until `release()` and open from then on.

    It stands behind the first `after` events of a stream; a whole reply, and with 0 every reply, waits before anything is sent.
    """

    def __init__(self, after: int = 0) -> None:
        self.after = after
        self._lock = threading.Lock()
        self._open = False
        self._reached = threading.Event()
        self._wakers: set[Callable[[], object]] = set()

    @property
    def reached(self) -> bool:
        """Whether a reply has reached the gate."""
        return self._reached.is_set()

    def wait(self, timeout: float = 10.0) -> None:
        """Wait until a reply has reached the gate. Raises TimeoutError after `timeout` seconds."""
        if not self._reached.wait(timeout):
            raise TimeoutError(f"no reply came to the gate in {timeout:g} seconds: was the provider asked?")

    async def wait_async(self, timeout: float = 10.0) -> None:
        """Do the same without blocking the event loop."""
        await asyncio.to_thread(self.wait, timeout)

    def release(self) -> None:
        """Open the gate for all replies, waiting and future."""
        with self._lock:
            self._open = True
            for wake in self._wakers:
                wake()
            self._wakers.clear()

    async def passed(self) -> None:
        """Wait, as a reply, until the gate is open."""
        loop, opened = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> object:
            return loop.call_soon_threadsafe(opened.set)

        with self._lock:
            if self._open:
                self._reached.set()
                return
            self._wakers.add(wake)
        self._reached.set()
        try:
            await opened.wait()
        finally:
            # A client that left waits no more, and its loop may be closed when the gate opens.
            with self._lock:
                self._wakers.discard(wake)
