"""Calls of a store of state that may be slow or away: in bounded time, and never an error for who asks.

What could not be written meanwhile is held in this process, bounded, found here, and written once the store answers again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from bardo.adapters.stores.database.set_aside import RenewableFile
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.adapters.stores.state.store import KeyedStore
from bardo.adapters.stores.state.write_buffer import PendingWrite, WriteBuffer

T = TypeVar("T")


class StateCalls:
    """What asks one store. A call takes `seconds` at most; `name` is what is kept, in the log `area`, and `watch` measures time.

    With `holds_writes`, what cannot be written is held here until it can. `reopen` opens its file where that is `renewable`.
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
        """Return what these keys lead to; None where the store does not answer, and nothing is held here either."""
        found = await self._ask(lambda store: store.find(tenant, keys, now=now))
        if not self.unwritten:
            return found
        held = self.unwritten.find(tenant, keys)
        if found is not None:
            self._write_held()
        return {**(found or {}), **held} if found is not None or held else None

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
        """Keep a value, and return whether it is kept; None where the store does not answer.

        What takes the place of `before` is not held here.
        """
        kept = await self._ask(lambda store: store.put(tenant, keys, value, now=now, reply=reply, before=before))
        if kept is None and self._holds_writes and keys and before is None:
            self.unwritten.add(PendingWrite(tenant, tuple(keys), value, now, reply))
        elif self.unwritten:
            self._write_held()
        return kept

    async def remove(self, tenant: str, key: str) -> bool | None:
        """Forget the value that a key leads to, and return whether there was one; None where the store does not answer."""
        return await self._ask(lambda store: store.remove(tenant, key))

    async def write_held(self) -> None:
        """Write what is held, as far as the store takes it."""
        self._write_held()
        if self._write_task is not None:
            await self._write_task

    def close(self) -> None:
        """Wait for what is under way, and close the store."""
        self._calls.close()
        self.store.close()

    async def _ask(self, call: Callable[[KeyedStore], T]) -> T | None:
        return await self._calls.ask(call, self._seconds)

    def _write_held(self) -> None:
        if self._write_task is None or self._write_task.done():
            self._write_task = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        """Write what is held, in the order in which it came, until the store fails again."""
        while (write := self.unwritten.first()) is not None:
            if await self._ask(_put_call(write)) is None:
                return
            self.unwritten.remove(write)


def _put_call(write: PendingWrite) -> Callable[[KeyedStore], bool]:
    return lambda store: store.put(write.tenant, write.keys, write.value, now=write.now, reply=write.reply)
