"""Performs what the layer `cache` asks for: finds kept replies, keeps new ones, and has equal calls wait for one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from bardo.context.cache.entries import CacheEntry, ReplyStore, Selection, decode_kept, encode_kept
from bardo.context.cache.layer import FindReply, ReleaseWaitingCalls, StoreReply
from bardo.context.layer import Effect, KeptReply
from bardo.edge.database.store_calls import StoreCalls
from bardo.edge.reply_cache.flights import Flights

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

    async def find(self, effect: FindReply) -> KeptReply | bool:
        """Return a kept reply; else whether the call leads equal ones that come while it is under way."""
        tenant, identity = effect.tenant, effect.identity
        value = await self.calls.ask(lambda store: store.find(tenant, identity, now=self._clock()), self._seconds)
        kept = None if value is None else decode_kept(value)
        if kept is not None and kept.kept_at >= effect.since:
            return kept
        return await self._flights.join((tenant, identity), effect.within) if effect.lead else False

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

    async def leave(self, effect: ReleaseWaitingCalls) -> None:
        """Release the calls that wait for a reply which is not kept."""
        self._flights.land((effect.tenant, effect.identity), None)

    async def count(self, effect: CountReplies) -> tuple[int, int] | None:
        """Return how many entries and bytes of a tenant are kept."""
        return await self.calls.ask(lambda store: store.totals(effect.tenant), _SECONDS_TO_KEEP)

    async def remove(self, effect: RemoveReplies) -> int | None:
        """Remove entries, and return how many there were."""
        return await self.calls.ask(lambda store: store.purge(effect.selection), _SECONDS_TO_KEEP)

    async def close(self) -> None:
        """Keep what is on its way, and close the store."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=_SECONDS_TO_KEEP)
        await asyncio.to_thread(self.calls.close)

    async def _put(self, put: Callable[[ReplyStore], bool]) -> None:
        await self.calls.ask(put, _SECONDS_TO_KEEP)


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
