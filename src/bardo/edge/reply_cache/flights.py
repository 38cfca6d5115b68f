"""Of several equal calls at the same time one is sent, and the others wait for its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from bardo.context.layer import KeptReply

_ROUNDS = 2
Key = tuple[str, bytes]


class _Flight(NamedTuple):
    """A call that leads: what it will have, in which event loop, and when it is waited for no longer. `gone` ends it with its task."""

    reply: asyncio.Future[KeptReply | None]
    loop: asyncio.AbstractEventLoop
    until: float
    task: asyncio.Task[Any] | None
    gone: Callable[[asyncio.Task[Any]], None]


class Flights:
    """The calls that lead, by what they ask for. `watch` measures time, and nobody waits longer than `seconds`."""

    def __init__(self, seconds: float, watch: Callable[[], float]) -> None:
        self._seconds = seconds
        self._watch = watch
        self._flights: dict[Key, _Flight] = {}

    async def join(self, key: Key, within: float | None = None) -> KeptReply | bool:
        """Return the reply of the call that leads; True where this call leads from now on, False where it goes alone.

        It waits for at most `within` seconds, where that is less than `seconds`.

        Where the call that leads fails, one of those who waited leads; where that fails too, all go alone.
        """
        until = self._watch() + (self._seconds if within is None else min(within, self._seconds))
        for _ in range(_ROUNDS):
            loop, now = asyncio.get_running_loop(), self._watch()
            flight = self._flights.get(key)
            if flight is None or flight.until <= now:
                self._flights[key] = self._new_flight(key, loop, now + self._seconds)
                return True
            if flight.loop is not loop or now >= until:
                return False
            try:
                found = await asyncio.wait_for(asyncio.shield(flight.reply), min(until, flight.until) - now)
            except TimeoutError:
                return False
            if found is not None:
                return found
        return False

    def land(self, key: Key, reply: KeptReply | None) -> None:
        """Give those who wait the reply of the call that leads, or tell them that there is none."""
        flight = self._flights.pop(key, None)
        if flight is None or flight.reply.done():
            return
        if flight.task is not None:
            flight.task.remove_done_callback(flight.gone)
        if flight.loop is _running_loop():
            flight.reply.set_result(reply)
        elif not flight.loop.is_closed():
            flight.loop.call_soon_threadsafe(_settle, flight.reply, reply)

    def _new_flight(self, key: Key, loop: asyncio.AbstractEventLoop, until: float) -> _Flight:
        task = asyncio.current_task()
        flight = _Flight(loop.create_future(), loop, until, task, partial(self._note_gone, key))
        if task is not None:
            task.add_done_callback(flight.gone)
        return flight

    def _note_gone(self, key: Key, task: asyncio.Task[Any]) -> None:
        """Let others lead where the call that leads was cancelled, or failed, before it could say so."""
        flight = self._flights.get(key)
        if flight is not None and flight.task is task and (task.cancelled() or task.exception() is not None):
            self.land(key, None)


def _settle(future: asyncio.Future[KeptReply | None], reply: KeptReply | None) -> None:
    if not future.done():
        future.set_result(reply)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
