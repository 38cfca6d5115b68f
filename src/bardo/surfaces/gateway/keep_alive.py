"""Keep a streamed answer from looking dead while a model thinks in silence.

Proxies and clients hang up on a connection that says nothing for a minute or so; a model may think for longer.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from bardo.dialects.base import ReplyEncoder


class Stream(Protocol):
    """The answer that is kept alive."""

    @property
    def silent_since(self) -> float | None:
        """When the last piece was sent, by the loop's clock; None while one is being sent."""
        ...

    async def say_alive(self, encoder: ReplyEncoder) -> None:
        """Begin the stream where it has not begun, and send what readers skip."""
        ...


class KeepAlive:
    """Speaks whenever `stream` was silent for `seconds`, between `begin` and `end`; 0 seconds is never."""

    def __init__(self, stream: Stream, encoder: ReplyEncoder, seconds: float) -> None:
        self._stream = stream
        self._encoder = encoder
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None
        self._saying: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen for silence from now on."""
        if self._seconds and self._encoder.keep_alive:
            self._alarm = self._loop.call_later(self._seconds, self._look)

    def end(self) -> None:
        """Say no more."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._saying is not None:
            self._saying.cancel()

    def _look(self) -> None:
        """One timer that looks now and then is cheaper than one for each piece."""
        since = self._stream.silent_since
        now = self._loop.time()
        # A client that does not take what it was sent needs no more of it.
        due = now + self._seconds if since is None else since + self._seconds
        if due <= now:
            self._saying = self._loop.create_task(self._stream.say_alive(self._encoder))
            due = now + self._seconds
        self._alarm = self._loop.call_at(due, self._look)
