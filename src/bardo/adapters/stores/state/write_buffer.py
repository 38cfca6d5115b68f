"""Values that a store could not take, held in this process until it can: found meanwhile, and bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from bardo.adapters.stores.state.store import size_of

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
        """Return what is certainly meant by these keys."""
        found = {key: self._by_key.get((tenant, key)) for key in keys if (tenant, key) not in self._ambiguous}
        return {key: write.value for key, write in found.items() if write is not None}
