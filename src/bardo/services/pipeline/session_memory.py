"""The state of layers for sessions: bounded in number and size, and forgotten when a session is over.

It is kept in this process, and where the reasoning of earlier replies is kept if that outlives a process: the next call of a conversation
may come to another worker, or to this gateway after a restart. Then the stored state goes before the one in this process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.state.calls import StateCalls
from bardo.context.effects import LoadForSession, StoreForSession
from bardo.services.pipeline.effects import Effects

if TYPE_CHECKING:
    from bardo.services.pipeline.effects import LayerHost


_OWN_SHARE = "sessions of layers"
"""Stands in the place of a tenant in the store, where sessions have a share of their own; a session's name says whose it is."""


class SessionBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept: so many values, of so many bytes together and each, for so many seconds after the last call."""

    values: int = 20_000
    bytes: int = 64_000_000
    value_bytes: int = 1_000_000
    seconds: float = 14_400.0


def remember_sessions(effects: Effects, host: LayerHost) -> None:
    """Register the performers of effects that load and store what layers keep for a session: one memory for all layers."""
    if not effects.performs(LoadForSession):
        memory = SessionMemory(watch=host.watch, shared=shared_sessions(host))
        effects.register(LoadForSession, memory.recall)
        effects.register(StoreForSession, memory.keep, writes=True)


class SharedSessions:
    """The state of several processes for sessions, in one store: the latest value of each layer."""

    def __init__(self, store: StateCalls, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def find(self, layer: str, session: str) -> bytes | None:
        """Return what a layer kept for a session, or None if nothing is kept, or the store does not answer."""
        key = _key(layer, session)
        states = await self._store.find(_OWN_SHARE, [key], now=self._clock())
        return None if states is None else states.get(key)

    async def put(self, layer: str, session: str, value: bytes) -> None:
        """Keep a value in place of the one before."""
        key = _key(layer, session)
        await self._store.put(_OWN_SHARE, [key], value, now=self._clock(), reply=key)

    async def remove(self, layer: str, session: str) -> None:
        """Forget a value."""
        await self._store.remove(_OWN_SHARE, _key(layer, session))


def shared_sessions(host: LayerHost) -> SharedSessions | None:
    """Return what calls share with those of other processes, or None if nothing outlives this one."""
    calls = None if host.replay is None else host.replay.calls
    return None if calls is None or not calls.store.waits else SharedSessions(calls, host.clock)


def _key(layer: str, session: str) -> str:
    return f"sessions/{layer}/{session}"


class SessionMemory:
    """The values of layers by session. What was not used for longest goes first where there is too much."""

    def __init__(
        self, bounds: SessionBounds | None = None, *, watch: Callable[[], float], shared: SharedSessions | None = None
    ) -> None:
        self._bounds = bounds or SessionBounds()
        self._shared = shared
        self._watch = watch
        self._held: OrderedDict[tuple[str, str], tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    async def recall(self, effect: LoadForSession) -> bytes | None:
        """Return what a layer kept for a session, or None if nothing is kept."""
        if self._shared is not None and (state := await self._shared.find(effect.layer, effect.session)) is not None:
            return state
        key = (effect.layer, effect.session)
        held = self._held.get(key)
        if held is None:
            return None
        kept_at, value = held
        if self._watch() - kept_at > self._bounds.seconds:
            self._forget(key)
            return None
        return value

    async def keep(self, effect: StoreForSession) -> None:
        """Keep a value in place of the one before. One that is too large is not kept, and the one before it is gone."""
        key = (effect.layer, effect.session)
        self._forget(key)
        if len(effect.value) > self._bounds.value_bytes:
            if self._shared is not None:
                await self._shared.remove(effect.layer, effect.session)
            return
        if self._shared is not None:
            await self._shared.put(effect.layer, effect.session, effect.value)
            self._forget(key)  # Another call of the session may have kept its value meanwhile.
        self._held[key] = (self._watch(), effect.value)
        self._bytes += len(effect.value)
        while len(self._held) > self._bounds.values or self._bytes > self._bounds.bytes:
            self._forget(next(iter(self._held)))

    def _forget(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held[1])
