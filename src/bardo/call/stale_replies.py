"""The last whole replies, for callers that would rather have an old one than none.

A reply answers only a request that is equal to its own in everything that may change the answer, of the same tenant. It is kept as its
provider sent it, and read anew for whoever gets it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from bardo.adapters.net.calls import Reply
from bardo.planning.attempt import Attempt
from bardo.values.events import Event, UsageUpdate

_LARGEST_SHARE = 8
"""One reply may have this part of all bytes."""


@dataclass(frozen=True, slots=True)
class StaleReply:
    """A reply as its provider sent it, to an attempt, and when: Unix time."""

    attempt: Attempt
    content_type: str
    body: bytes
    kept_at: float


class StaleReplies:
    """Keeps the newest replies, at most so many and so many bytes."""

    def __init__(self, entries: int, most_bytes: int) -> None:
        self._entries = entries
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: OrderedDict[bytes, StaleReply] = OrderedDict()

    @property
    def most_of_one(self) -> int:
        """How many bytes one reply may have."""
        return self._most_bytes // _LARGEST_SHARE

    def keep(self, identity: bytes, reply: StaleReply) -> None:
        """Keep a reply in the place of an earlier one, and forget the oldest where there are too many."""
        self._forget(identity)
        if len(reply.body) > self.most_of_one:
            return
        self._kept[identity] = reply
        self._size += len(reply.body)
        while len(self._kept) > self._entries or self._size > self._most_bytes:
            self._forget(next(iter(self._kept)))

    def find(self, identity: bytes, most_age: float, now: float) -> StaleReply | None:
        """Return the reply to an equal request, if it is not older than so many seconds."""
        found = self._kept.get(identity)
        return found if found is not None and now - found.kept_at <= most_age else None

    def _forget(self, identity: bytes) -> None:
        found = self._kept.pop(identity, None)
        if found is not None:
            self._size -= len(found.body)


class StalePlace:
    """Where the reply to one request is kept, and looked for. `clock` gives Unix time."""

    def __init__(self, replies: StaleReplies, identity: bytes, clock: Callable[[], float]) -> None:
        self.most_bytes = replies.most_of_one
        self._replies = replies
        self._identity = identity
        self._clock = clock

    def keep(self, attempt: Attempt, recorded: RecordedReply | None) -> None:
        """Keep a reply that came to its end."""
        body = None if recorded is None else recorded.body
        if recorded is not None and body:
            kind = recorded.headers.get("content-type", "")
            self._replies.keep(self._identity, StaleReply(attempt, kind, body, self._clock()))

    def find(self, most_age: float | None) -> StaleReply | None:
        """Return the reply to an earlier equal request; None where none is young enough, or none is allowed."""
        return None if most_age is None else self._replies.find(self._identity, most_age, self._clock())


class RecordedReply:
    """A provider's reply whose body is kept while it is read, up to a bound. `body` is None where it was too long."""

    def __init__(self, reply: Reply, most_bytes: int) -> None:
        self._reply = reply
        self._most_bytes = most_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self.status, self.headers, self.resent = reply.status, reply.headers, reply.resent

    @property
    def body(self) -> bytes | None:
        """What was read of the body."""
        return None if self._size > self._most_bytes else b"".join(self._pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._reply.chunks():
            self._record(chunk)
            yield chunk

    async def read(self, limit: int) -> bytes:
        body = await self._reply.read(limit)
        self._record(body)
        return body

    @property
    def partial_body(self) -> bytes:
        """What had come of a body that broke off."""
        partial: bytes = getattr(self._reply, "partial_body", b"")
        return partial

    async def finish(self) -> None:
        await self._reply.finish()

    async def close(self) -> None:
        await self._reply.close()

    def _record(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most_bytes:
            self._pieces.append(piece)
        else:
            self._pieces.clear()


class WithoutUsage:
    """Leaves out what a reply used: an old one used nothing again."""

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is no usage."""
        return () if type(item) is UsageUpdate else (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()
