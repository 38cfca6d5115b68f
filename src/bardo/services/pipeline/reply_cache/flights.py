"""Of several equal calls at the same time one is sent, and the others wait for its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from bardo.context.layer import KeptReply

_ROUNDS = 2
_MOST_KEPT = 1024
"""Calls that lead, of which those are forgotten that ended without a word."""
Key = tuple[str, bytes]


class _Flight:
    """A call that leads: its event loop, when it is waited for no longer, and its task.

    `reply` is what it will have, and `gone` ends it with its task: both are made when somebody waits.
    """

    __slots__ = ("gone", "loop", "reply", "task", "until")

    def __init__(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        self.loop = loop
        self.until = until
        self.task: asyncio.Task[Any] | None = asyncio.current_task(loop)
        self.reply: asyncio.Future[KeptReply | None] | None = None
        self.gone: Callable[[asyncio.Task[Any]], None] | None = None


class Flights:
    """The calls that lead, by what they ask for. `watch` measures time, and nobody waits longer than `seconds`."""

    def __init__(self, seconds: float, watch: Callable[[], float]) -> None:
        self._seconds = seconds
        self._watch = watch
        self._flights: dict[Key, _Flight] = {}

    def __len__(self) -> int:
        """How many calls are known to lead."""
        return len(self._flights)

    async def join(self, key: Key, within: float | None = None) -> KeptReply | bool:
        """Return the reply of the call that leads; True where this call leads from now on, False where it goes alone.

        It waits for at most `within` seconds, where that is less than `seconds`.

        Where the call that leads fails, one of those who waited leads; where that fails too, all go alone.
        """
        until = self._watch() + (self._seconds if within is None else min(within, self._seconds))
        for _ in range(_ROUNDS):
            if self.lead(key):
                return True
            flight, now = self._flights[key], self._watch()
            if flight.loop is not asyncio.get_running_loop() or now >= until:
                return False
            try:
                found = await asyncio.wait_for(asyncio.shield(self._reply(key, flight)), min(until, flight.until) - now)
            except TimeoutError:
                return False
            if found is not None:
                return found
        return False

    def lead(self, key: Key) -> bool:
        """Return whether this call leads from now on, because no other does."""
        loop, now = asyncio.get_running_loop(), self._watch()
        flight = self._flights.get(key)
        if flight is not None:
            if flight.until > now and not _failed(flight.task):
                return False
            # Calls stand in the order in which they are waited for no longer.
            del self._flights[key]
        self._flights[key] = _Flight(loop, now + self._seconds)
        if len(self._flights) > _MOST_KEPT:
            self._forget(now)
        return True

    def land(self, key: Key, reply: KeptReply | None) -> None:
        """Give those who wait the reply of the call that leads, or tell them that there is none."""
        flight = self._flights.pop(key, None)
        if flight is None or flight.reply is None or flight.reply.done():
            return
        if flight.task is not None and flight.gone is not None:
            flight.task.remove_done_callback(flight.gone)
        if flight.loop is _running_loop():
            flight.reply.set_result(reply)
        elif not flight.loop.is_closed():
            flight.loop.call_soon_threadsafe(_settle, flight.reply, reply)

    def _reply(self, key: Key, flight: _Flight) -> asyncio.Future[KeptReply | None]:
        """Return what a call that leads will have."""
        if flight.reply is None:
            flight.reply = flight.loop.create_future()
            if flight.task is not None:
                flight.gone = partial(self._note_gone, key)
                flight.task.add_done_callback(flight.gone)
        return flight.reply

    def _note_gone(self, key: Key, task: asyncio.Task[Any]) -> None:
        """Let others lead where the call that leads was cancelled, or failed, before it could say so."""
        flight = self._flights.get(key)
        if flight is not None and flight.task is task and _failed(task):
            self.land(key, None)

    def _forget(self, now: float) -> None:
        """Forget the oldest calls for which nobody waits any longer."""
        while self._flights:
            oldest = next(iter(self._flights))
            if self._flights[oldest].until > now:
                return
            self.land(oldest, None)


def _failed(task: asyncio.Task[Any] | None) -> bool:
    return task is not None and task.done() and (task.cancelled() or task.exception() is not None)


def _settle(future: asyncio.Future[KeptReply | None], reply: KeptReply | None) -> None:
    if not future.done():
        future.set_result(reply)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
