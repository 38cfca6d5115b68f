"""Perform the effects of the layer `cache`: find kept replies, keep new ones, and have equal calls wait for one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.entries import CacheEntry, ReplyStore, Selection, decode_kept, encode_kept
from bardo.context.cache.layer import FindReply, ReleaseWaitingCalls, StoreReply
from bardo.context.layer import Effect, KeptReply

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
    """The calls that lead, by what they ask for. `watch` measures time, and no call waits longer than `seconds`."""

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
                async with asyncio.timeout(min(until, flight.until) - now):
                    reply = await asyncio.shield(self._reply(key, flight))
            except TimeoutError:
                return False
            if reply is not None:
                return reply
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
        """Forget the oldest calls without waiting callers."""
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


_SECONDS_TO_KEEP = 5.0


class CountReplies(Effect, frozen=True):
    """Ask how many entries and bytes are kept of a tenant, None for all: a pair, or None if the store does not answer."""

    tenant: str | None


class RemoveReplies(Effect, frozen=True):
    """Remove entries, and ask how many there were, or None if the store does not answer."""

    selection: Selection


class ReplyCache:
    """Kept replies in one store. `clock` gives Unix time.

    A store that is slow or away costs a call at most `seconds`, and its reply then is that of a provider.
    """

    def __init__(
        self, calls: StoreCalls[ReplyStore], flights: Flights, *, seconds: float, clock: Callable[[], float]
    ) -> None:
        self.calls = calls
        self._flights = flights
        self._seconds = seconds
        self._clock = clock
        self._keeping: set[asyncio.Task[None]] = set()
        self.forgets: list[Callable[[], None]] = []
        """What forgets all that it knows of entries, to read again those that are left: called where some were removed."""

    def find(self, effect: FindReply) -> KeptReply | bool | Coroutine[Any, Any, KeptReply | bool]:
        """Return a kept reply, else whether the call leads equal ones while it is under way; a coroutine where that takes time."""
        store = self.calls.at_hand
        if store is None:
            return self._find_elsewhere(effect)
        value = store.find(effect.tenant, effect.identity, now=self._clock())
        return self._kept_or_lead(effect, value)

    async def _find_elsewhere(self, effect: FindReply) -> KeptReply | bool:
        find = partial(_find, effect.tenant, effect.identity, self._clock)
        reply = self._kept_or_lead(effect, await self.calls.ask(find, self._seconds))
        return await reply if isinstance(reply, Coroutine) else reply

    def _kept_or_lead(
        self, effect: FindReply, value: bytes | None
    ) -> KeptReply | bool | Coroutine[Any, Any, KeptReply | bool]:
        reply = None if value is None else decode_kept(value)
        if reply is not None and reply.kept_at >= effect.since:
            return reply
        key = effect.tenant, effect.identity
        if not effect.lead or self._flights.lead(key):
            return effect.lead
        return self._flights.join(key, effect.within)

    async def keep(self, effect: StoreReply) -> None:
        """Give a reply to those who wait for it, and keep it: not before the caller goes on where that may take long."""
        self._flights.land((effect.tenant, effect.identity), effect.reply)
        put = partial(_put, effect, self._clock())
        if self.calls.in_memory:
            await self._put(put)
            return
        task = asyncio.create_task(self._put(put))
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)

    def leave(self, effect: ReleaseWaitingCalls) -> None:
        """Release the calls that wait for a reply which is not kept."""
        self._flights.land((effect.tenant, effect.identity), None)

    async def count(self, effect: CountReplies) -> tuple[int, int] | None:
        """Return how many entries and bytes of a tenant are kept."""
        return await self.calls.ask(lambda store: store.totals(effect.tenant), _SECONDS_TO_KEEP)

    async def remove(self, effect: RemoveReplies) -> int | None:
        """Remove entries, and return how many there were."""
        removed = await self.calls.ask(lambda store: store.purge(effect.selection), _SECONDS_TO_KEEP)
        for forget in self.forgets if removed != 0 else ():
            forget()
        return removed

    async def close(self) -> None:
        """Store the replies under way, and close the store."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=_SECONDS_TO_KEEP)
        await asyncio.to_thread(self.calls.close)

    async def _put(self, put: Callable[[ReplyStore], bool]) -> None:
        await self.calls.ask(put, _SECONDS_TO_KEEP)


def _find(tenant: str, identity: bytes, clock: Callable[[], float], store: ReplyStore) -> bytes | None:
    return store.find(tenant, identity, now=clock())


def _put(effect: StoreReply, now: float, store: ReplyStore) -> bool:
    reply = effect.reply
    entry = CacheEntry(
        tenant=effect.tenant,
        identity=effect.identity,
        value=encode_kept(reply),
        expires=effect.expires,
        model=effect.model,
        answered_by=f"{reply.provider}/{reply.model}",
        tags=effect.tags,
        index=effect.index,
    )
    return store.put(entry, now=now)
