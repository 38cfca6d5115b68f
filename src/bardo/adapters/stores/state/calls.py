"""Calls of a store of state that may be slow or away: in bounded time, and never an error for who asks.

What could not be written meanwhile is held in this process, bounded, found here, and written once the store answers again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.adapters.stores.state.store import KeyedStore, size_of

_MOST_BYTES = 32 * 1024 * 1024
_MOST_VALUES = 2_000


class PendingWrite(msgspec.Struct, frozen=True, gc=False):
    """One value, as it was put in."""

    tenant: str
    keys: tuple[str, ...]
    value: bytes
    now: float
    reply: str


class WriteBuffer:
    """Values in the order in which they came. Where they are too many or too large the oldest are given up."""

    def __init__(self, *, most: int = _MOST_VALUES, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._values: deque[PendingWrite] = deque()
        self._by_key: dict[tuple[str, str], PendingWrite] = {}
        self._ambiguous: set[tuple[str, str]] = set()
        self._bytes = 0
        self.given_up = 0
        """How many values were given up."""

    def __len__(self) -> int:
        return len(self._values)

    def add(self, write: PendingWrite) -> None:
        """Hold a value."""
        for key in write.keys:
            before = self._by_key.get((write.tenant, key))
            if before is not None and before.value != write.value and not (write.reply and before.reply == write.reply):
                self._ambiguous.add((write.tenant, key))
            self._by_key[write.tenant, key] = write
        self._values.append(write)
        self._bytes += size_of(write.keys, write.value)
        while len(self._values) > self._most or self._bytes > self._most_bytes:
            self.remove(self._values[0])
            self.given_up += 1

    def first(self) -> PendingWrite | None:
        """Return the oldest."""
        return self._values[0] if self._values else None

    def remove(self, write: PendingWrite) -> None:
        """Let the oldest go, where it is this one."""
        if not self._values or self._values[0] is not write:
            return
        self._values.popleft()
        self._bytes -= size_of(write.keys, write.value)
        for key in write.keys:
            if self._by_key.get((write.tenant, key)) is write:
                del self._by_key[write.tenant, key]
                self._ambiguous.discard((write.tenant, key))

    def find(self, tenant: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values that these keys certainly mean."""
        writes = {key: self._by_key.get((tenant, key)) for key in keys if (tenant, key) not in self._ambiguous}
        return {key: write.value for key, write in writes.items() if write is not None}


T = TypeVar("T")


class StateCalls:
    """The calls to one store. A call takes `seconds` at most; `name` is that of the data, in the log `area`, and `watch` measures time.

    With `holds_writes`, failed writes are held here until they succeed. `reopen` opens its file where that is `renewable`.
    """

    def __init__(
        self,
        store: KeyedStore,
        *,
        name: str,
        area: str,
        seconds: float = 5.0,
        holds_writes: bool = False,
        reopen: Callable[[], KeyedStore] | None = None,
        renewable: RenewableFile | None = None,
        watch: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.unwritten = WriteBuffer()
        self._seconds = seconds
        self._holds_writes = holds_writes
        first = [store]
        self._calls: StoreCalls[KeyedStore] = StoreCalls(
            lambda: first.pop() if first or reopen is None else reopen(),
            in_memory=not store.waits,
            watch=watch,
            name=name,
            area=area,
            renewable=renewable,
        )
        self._write_task: asyncio.Task[None] | None = None

    async def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes] | None:
        """Return what these keys lead to, or None if the store does not answer, and nothing is held here either."""
        values = await self._ask(lambda store: store.find(tenant, keys, now=now))
        if not self.unwritten:
            return values
        held = self.unwritten.find(tenant, keys)
        if values is not None:
            self._write_held()
        return {**(values or {}), **held} if values is not None or held else None

    async def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> bool | None:
        """Keep a value, and return whether it is kept, or None if the store does not answer.

        What takes the place of `before` is not held here.
        """
        outcome = await self._ask(lambda store: store.put(tenant, keys, value, now=now, reply=reply, before=before))
        if outcome is None and self._holds_writes and keys and before is None:
            self.unwritten.add(PendingWrite(tenant, tuple(keys), value, now, reply))
        elif self.unwritten:
            self._write_held()
        return outcome

    async def remove(self, tenant: str, key: str) -> bool | None:
        """Forget the value that a key leads to, and return whether there was one, or None if the store does not answer."""
        return await self._ask(lambda store: store.remove(tenant, key))

    async def write_held(self) -> None:
        """Write the held values, as far as the store takes them."""
        self._write_held()
        if self._write_task is not None:
            await self._write_task

    def close(self) -> None:
        """Wait for the calls under way, and close the store."""
        self._calls.close()
        self.store.close()

    async def _ask(self, call: Callable[[KeyedStore], T]) -> T | None:
        return await self._calls.ask(call, self._seconds)

    def _write_held(self) -> None:
        if self._write_task is None or self._write_task.done():
            self._write_task = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        """Write the held values, in the order in which they came, until the store fails again."""
        while (write := self.unwritten.first()) is not None:
            if await self._ask(_put_call(write)) is None:
                return
            self.unwritten.remove(write)


def _put_call(write: PendingWrite) -> Callable[[KeyedStore], bool]:
    return lambda store: store.put(write.tenant, write.keys, write.value, now=write.now, reply=write.reply)
