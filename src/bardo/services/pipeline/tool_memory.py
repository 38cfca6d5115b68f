"""The memory of the choice of tools in this process: vectors of tools, and their uses, both bounded.

Turns that clients do not see are kept where the reasoning of earlier replies is, which several workers share.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from bardo.adapters.stores.state import MemoryStore
from bardo.adapters.stores.state.calls import StateCalls
from bardo.context.own_functions import StoreTurns
from bardo.context.tool_choice.ranking import CENTROID_LENGTH, ToolUses, ToolVectors, UseCentroid, dot
from bardo.context.tool_choice.session import (
    BuildWordIndex,
    FindToolTurns,
    FindToolUses,
    FindToolVectors,
    RecordToolUse,
    StoreToolVectors,
)
from bardo.context.tool_choice.word_index import word_index
from bardo.services.pipeline.effects import Effects
from bardo.values.request import Message

_TURNS = "tool turns/"
"""The prefix of the keys of turns, in a store that holds the reasoning of replies too."""
_MOST_COUNTED = 200
"""Uses after which a mean follows the newest ones: older ones fade."""
_MOST_PURPOSES, _MOST_OF_PURPOSE = 8, 20
"""Purposes that are kept of one tool, and the uses after which one follows the newest."""
_SAME_PURPOSE = 0.5
"""The cosine of two texts from which on they are taken to have one purpose."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class ToolMemoryBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept: vectors of so many tools, and uses by so many tenants of so many tools."""

    tools: int = 4_000
    tenants: int = 100
    tools_of_tenant: int = 500


class ToolMemory:
    """Performs the effects of the layer `tools`. Turns are kept in `store`, and `clock` gives the Unix time by which they expire there."""

    def __init__(
        self, bounds: ToolMemoryBounds | None = None, *, store: StateCalls | None = None, clock: Callable[[], float]
    ) -> None:
        self._bounds = bounds or ToolMemoryBounds()
        self._store = store or StateCalls(MemoryStore(), name="turns of tools", area="replay")
        self._clock = clock
        self._vectors: _RecentMapping[bytes, ToolVectors] = _RecentMapping(self._bounds.tools)
        self._uses: _RecentMapping[str, _RecentMapping[str, _Uses]] = _RecentMapping(self._bounds.tenants)

    def register(self, effects: Effects) -> None:
        """Register the performers of the layer's effects."""
        effects.register(FindToolVectors, self.vectors)
        effects.register(StoreToolVectors, self.keep_vectors)
        effects.register(FindToolUses, self.uses)
        effects.register(RecordToolUse, self.note_use, writes=True)
        effects.register(FindToolTurns, self.turns)
        effects.register(BuildWordIndex, build_word_index)
        effects.register(StoreTurns, self.keep_turns, writes=True)

    async def vectors(self, effect: FindToolVectors) -> Mapping[bytes, ToolVectors]:
        """Return the vectors that are there."""
        vectors = {digest: self._vectors.get(digest) for digest in effect.digests}
        return {digest: vector for digest, vector in vectors.items() if vector is not None}

    async def keep_vectors(self, effect: StoreToolVectors) -> None:
        """Keep vectors. Those that were not asked for for longest go first where there are too many."""
        for digest, vector in effect.vectors.items():
            self._vectors.put(digest, vector)

    async def uses(self, effect: FindToolUses) -> Mapping[str, ToolUses]:
        """Return the uses of tools that are known, measured with this embedding."""
        tools = self._uses.get(effect.tenant)
        if tools is None:
            return {}
        uses = {name: tools.get(name) for name in effect.names}
        return {
            name: use.uses for name, use in uses.items() if use is not None and use.fingerprint == effect.fingerprint
        }

    async def note_use(self, effect: RecordToolUse) -> None:
        """Add a text to the uses of tools."""
        uses = self._uses.get(effect.tenant)
        if uses is None:
            uses = _RecentMapping(self._bounds.tools_of_tenant)
            self._uses.put(effect.tenant, uses)
        for name in effect.names:
            before = uses.get(name)
            if before is None or before.fingerprint != effect.fingerprint:
                uses.put(name, _Uses(effect.fingerprint, first_use(effect.vector)))
            else:
                uses.put(name, _Uses(effect.fingerprint, with_use(before.uses, effect.vector)))

    async def turns(self, effect: FindToolTurns) -> Mapping[str, tuple[Message, ...]]:
        """Return the turns behind calls that are still kept."""
        names = {f"{_TURNS}{call}": call for call in effect.ids}
        values = await self._store.find(effect.tenant, list(names), now=self._clock()) or {}
        return {names[key]: msgspec.msgpack.decode(value, type=tuple[Message, ...]) for key, value in values.items()}

    async def keep_turns(self, effect: StoreTurns) -> None:
        """Keep the turns behind calls. The oldest go first where there is too much."""
        keys = [f"{_TURNS}{call}" for call in effect.ids]
        await self._store.put(effect.tenant, keys, msgspec.msgpack.encode(effect.turns), now=self._clock())


class _Uses(msgspec.Struct, frozen=True):
    fingerprint: str
    uses: ToolUses


class _RecentMapping(Generic[Key, Value]):
    """A mapping of bounded size: what was not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        value = self._held.get(key)
        if value is not None:
            self._held.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        self._held[key] = value
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)


async def build_word_index(effect: BuildWordIndex) -> None:
    """Build an index in another thread: that of 200 tools takes 30 ms or more."""
    await asyncio.to_thread(word_index, effect.tools)


def first_use(vector: Sequence[float]) -> ToolUses:
    """Return the uses of a tool that was called once."""
    return ToolUses(array("f", vector), 1, (_centroid(vector, 1),))


def with_use(uses: ToolUses, vector: Sequence[float]) -> ToolUses:
    """Return the uses with one more vector; from a number of uses on, the newest count most."""
    count = min(uses.count + 1, _MOST_COUNTED)
    mean = array("f", [old + (new - old) / count for old, new in zip(uses.mean, vector, strict=True)])
    return ToolUses(mean, count, _with_purpose(uses.centroids, vector))


def _with_purpose(centroids: tuple[UseCentroid, ...], vector: Sequence[float]) -> tuple[UseCentroid, ...]:
    """Return the purposes with one more vector: it moves the nearest one, or is one of its own where none is near and there is room."""
    near = [dot(vector, centroid.vector) / CENTROID_LENGTH for centroid in centroids]
    best = max(near, default=-1.0)
    if best < _SAME_PURPOSE and len(centroids) < _MOST_PURPOSES:
        return (*centroids, _centroid(vector, 1))
    place = near.index(best)
    count = min(centroids[place].count + 1, _MOST_OF_PURPOSE)
    moved = [
        old * (count - 1) + CENTROID_LENGTH * new for old, new in zip(centroids[place].vector, vector, strict=True)
    ]
    return (*centroids[:place], _centroid(moved, count), *centroids[place + 1 :])


def _centroid(vector: Sequence[float], count: int) -> UseCentroid:
    length = math.sqrt(dot(vector, vector)) or 1.0
    return UseCentroid(array("b", [round(CENTROID_LENGTH * value / length) for value in vector]), count)
