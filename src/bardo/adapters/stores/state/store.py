"""The protocol of a store of state: bounded, expiring, and separate for each tenant.

A value is put in under several keys and found by any of them. A key under which different replies were put in leads to none of them, as
long as the latest is kept. The oldest value goes first: within a tenant that has had its share, then of all. Time is seconds, given by the
caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept: values and bytes (keys included) of all tenants and of each, and for how many seconds."""

    entries: int = 20_000
    bytes: int = 256 * 1024 * 1024
    tenant_entries: int = 10_000
    tenant_bytes: int = 128 * 1024 * 1024
    seconds: float = 6 * 3600.0


class KeyedStore(Protocol):
    """Safe to use from several threads. Its callers catch `problems`, the exceptions raised if the store cannot be reached or used."""

    @property
    def problems(self) -> tuple[type[Exception], ...]: ...

    @property
    def waits(self) -> bool:
        """Whether a call may wait for a disk or a network, so that it belongs off the event loop."""
        ...

    def put(
        self,
        tenant: str,
        keys: Sequence[str],
        value: bytes,
        *,
        now: float,
        reply: str = "",
        before: bytes | None = None,
    ) -> bool:
        """Keep a value, and return whether it is kept: one that is larger than a tenant's share is not.

        A later value of the same `reply` replaces the earlier. With `before`, the value is kept only where its one key leads to that, so
        that of two who change the same value at once one is told.
        """
        ...

    def find(self, tenant: str, keys: Sequence[str], *, now: float) -> dict[str, bytes]:
        """Return the values that these keys certainly mean and that have not expired."""
        ...

    def remove(self, tenant: str, key: str) -> bool:
        """Forget the value that a key leads to, with all its keys, and return whether there was one."""
        ...

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return how many values and bytes are kept, of one tenant or of all."""
        ...

    def close(self) -> None:
        """Let go of what the store holds open."""
        ...


def size_of(keys: Sequence[str], value: bytes) -> int:
    """Return how many bytes a value counts as."""
    return len(value) + sum(len(key.encode("utf-8", "surrogatepass")) for key in keys)
