"""What is kept of a reply, and the stores that keep it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from bardo.context.layer import KeptReply

_FORM = b"\x01"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(KeptReply)


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One reply with what it is found and removed by. `expires` is Unix time.

    `model` is the name that the client asked for, and `answered_by` the provider and model that answered, as `provider/model`: an entry
    is removed by either. `index` is what similar requests are found by, empty where it is found by its `identity` alone.
    """

    tenant: str
    identity: bytes
    value: bytes
    expires: float
    model: str = ""
    answered_by: str = ""
    tags: tuple[str, ...] = ()
    index: bytes = b""

    @property
    def size(self) -> int:
        """How many bytes it counts as."""
        return len(self.value) + len(self.index) + len(self.identity) + len(self.tenant) + sum(map(len, self.tags))


class IndexedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a store tells of an entry that has an index. `number` grows with each entry that is put into the store."""

    number: int
    tenant: str
    identity: bytes
    index: bytes
    expires: float


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are meant: those that fit all that is given; all of them where nothing is.

    `model` fits the name that was asked for and the one that answered, with or without its provider.
    """

    tenant: str | None = None
    model: str | None = None
    tag: str | None = None


class CacheBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a store holds, of all tenants and of each."""

    entries: int = 50_000
    bytes: int = 256 * 1024 * 1024
    tenant_entries: int = 10_000
    tenant_bytes: int = 64 * 1024 * 1024


class ReplyStore(Protocol):
    """Keeps entries within its bounds: where there are too many, the oldest go first. Safe to use from several threads.

    Whoever calls it catches `problems`: what is raised where the store cannot be reached or used.
    """

    waits: bool
    """Whether a call may wait for a disk or a network, so that it belongs off the event loop."""
    problems: tuple[type[Exception], ...]

    def find(self, tenant: str, identity: bytes, *, now: float) -> bytes | None:
        """Return the value of an entry that has not expired."""
        ...

    def put(self, entry: CacheEntry, *, now: float) -> bool:
        """Keep an entry in the place of an earlier one, and return whether it is kept: one larger than a tenant's share is not."""
        ...

    def indexed(self, after: int, most: int, *, now: float) -> Sequence[IndexedEntry]:
        """Return entries that have an index, a number over `after`, and have not expired, in the order of their numbers."""
        ...

    def purge(self, selection: Selection) -> int:
        """Remove entries, and return how many there were."""
        ...

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        """Return how many entries and bytes are kept, of one tenant or of all. Expired ones may count until they are removed."""
        ...

    def close(self) -> None:
        """Let go of what the store holds open."""
        ...


def encode_kept(reply: KeptReply) -> bytes:
    """Return a reply as stores keep it."""
    return _FORM + _encoder.encode(reply)


def decode_kept(value: bytes) -> KeptReply | None:
    """Return the reply that a value holds; None where another version of bardo wrote it in a form that this one cannot read."""
    if value[:1] != _FORM:
        return None
    try:
        return _decoder.decode(memoryview(value)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def names_of(entry: CacheEntry) -> tuple[str, ...]:
    """Return the names of models by which an entry is removed."""
    bare = entry.answered_by.partition("/")[2]
    return tuple(dict.fromkeys(name for name in (entry.model, entry.answered_by, bare) if name))
