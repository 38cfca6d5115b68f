"""Read on the reply of a client that has left, so that what it cost is known exactly, within a bound of time and of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from bardo.surfaces.gateway.answer import Answer

if TYPE_CHECKING:
    from bardo.call.reply import LiveReply

_LOOK_SECONDS = 1.0
"""How often it is looked how much of a reply has come."""


class Draining:
    """What becomes of one request when its client leaves: it is cancelled, or its reply is read to the end and sent to nobody.

    `drains`: whether replies are read on where their provider has no setting of its own. A reply that takes longer than `seconds`, or
    brings more than `tokens` behind its client, is let go of.
    """

    live: LiveReply | None = None
    """The reply that is being read; None until one has begun."""

    def __init__(self, answer: Answer, *, drains: bool, seconds: float, tokens: int) -> None:
        self._answer = answer
        self._drains = drains
        self._seconds = seconds
        self._tokens = tokens
        self._timer: asyncio.TimerHandle | None = None
        self._left = False

    @property
    def left(self) -> bool:
        """Whether the client has left, so that nothing more is to be asked for it."""
        return self._left

    def take(self, live: LiveReply) -> None:
        """Take a reply that has begun; its client may have left before."""
        self.live = live
        if self._left:
            live.note_client_left()

    def leave(self, cancel: Callable[[], object]) -> None:
        """Go on without the client, or `cancel` what it asked for."""
        live = self.live
        own = None if live is None else live.attempt.target.provider.drain_cancelled
        if not (self._drains if own is None else own):
            cancel()
            return
        self._left = self._answer.gone = True
        if live is not None:
            live.note_client_left()
        loop = asyncio.get_running_loop()
        until, most = loop.time() + self._seconds, self._tokens + self._written()

        def look() -> None:
            if loop.time() >= until or self._written() > most:
                cancel()
            else:
                self._timer = loop.call_later(min(_LOOK_SECONDS, self._seconds), look)

        self._timer = loop.call_later(min(_LOOK_SECONDS, self._seconds), look)

    def end(self) -> None:
        """Look no more: the request has ended."""
        if self._timer is not None:
            self._timer.cancel()

    def _written(self) -> int:
        return 0 if self.live is None else self.live.written_tokens
