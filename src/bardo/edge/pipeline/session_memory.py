"""What layers keep for the sessions of this process: bounded in number and size, and forgotten when a session is over."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from bardo.context.session_memory import KeepForSession, RecallForSession
from bardo.edge.pipeline.effects import Effects


class SessionBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept: so many values, of so many bytes together and each, for so many seconds after the last call."""

    values: int = 20_000
    bytes: int = 64_000_000
    value_bytes: int = 1_000_000
    seconds: float = 14_400.0


def remember_sessions(effects: Effects, watch: Callable[[], float]) -> None:
    """Have the effects of layers that keep something for a session performed, by one memory for all of them."""
    if not effects.performs(RecallForSession):
        memory = SessionMemory(watch=watch)
        effects.register(RecallForSession, memory.recall)
        effects.register(KeepForSession, memory.keep, writes=True)


class SessionMemory:
    """The values of layers by session. What was not used for longest goes first where there is too much."""

    def __init__(self, bounds: SessionBounds | None = None, *, watch: Callable[[], float]) -> None:
        self._bounds = bounds or SessionBounds()
        self._watch = watch
        self._held: OrderedDict[tuple[str, str], tuple[float, bytes]] = OrderedDict()
        self._bytes = 0

    async def recall(self, effect: RecallForSession) -> bytes | None:
        """Return what a layer kept for a session, None where nothing is kept."""
        key = (effect.layer, effect.session)
        held = self._held.get(key)
        if held is None:
            return None
        kept_at, value = held
        if self._watch() - kept_at > self._bounds.seconds:
            self._forget(key)
            return None
        return value

    async def keep(self, effect: KeepForSession) -> None:
        """Keep a value in place of the one before. One that is too large is not kept, and the one before it is gone."""
        key = (effect.layer, effect.session)
        self._forget(key)
        if len(effect.value) > self._bounds.value_bytes:
            return
        self._held[key] = (self._watch(), effect.value)
        self._bytes += len(effect.value)
        while len(self._held) > self._bounds.values or self._bytes > self._bounds.bytes:
            self._forget(next(iter(self._held)))

    def _forget(self, key: tuple[str, str]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= len(held[1])
