"""Performs what the layer `cache` asks for: finds kept replies, keeps new ones, and has equal calls wait for one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.entries import CacheEntry, ReplyStore, Selection, decode_kept, encode_kept
from bardo.context.cache.layer import FindReply, ReleaseWaitingCalls, StoreReply
from bardo.context.layer import Effect, KeptReply
from bardo.services.pipeline.reply_cache.flights import Flights

_SECONDS_TO_KEEP = 5.0


class CountReplies(Effect, frozen=True):
    """Ask how many entries and bytes are kept of a tenant, None for all: a pair, or None where the store does not answer."""

    tenant: str | None


class RemoveReplies(Effect, frozen=True):
    """Remove entries, and ask how many there were; None where the store does not answer."""

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
        found = self._kept_or_lead(effect, await self.calls.ask(find, self._seconds))
        return await found if isinstance(found, Coroutine) else found

    def _kept_or_lead(
        self, effect: FindReply, value: bytes | None
    ) -> KeptReply | bool | Coroutine[Any, Any, KeptReply | bool]:
        kept = None if value is None else decode_kept(value)
        if kept is not None and kept.kept_at >= effect.since:
            return kept
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
        """Keep what is on its way, and close the store."""
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
