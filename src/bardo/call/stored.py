"""Replies that came before: recorded while they are read, and given again as if they came now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from bardo.adapters.net.calls import Reply
from bardo.planning.attempt import Attempt
from bardo.services.facts.failover import StaleReplies, StaleReply
from bardo.values.events import Event, UsageUpdate


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
        """Return the reply to an earlier equal request, or None if none is young enough, or none is allowed."""
        return None if most_age is None else self._replies.find(self._identity, most_age, self._clock())


class RecordedReply:
    """A provider's reply whose body is kept while it is read, up to a bound. `body` is None if it was too long."""

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


class StoredReply:
    """A reply whose body is at hand. It was bounded when it was stored."""

    resent = False

    def __init__(self, status: int, body: bytes, content_type: str = "application/json") -> None:
        self.status = status
        self.headers = {"content-type": content_type}
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        body, self._body = self._body, b""
        if body:
            yield body

    async def read(self, limit: int) -> bytes:
        """Return the body."""
        body, self._body = self._body, b""
        return body

    async def finish(self) -> None:
        """Do nothing: no connection is held."""

    async def close(self) -> None:
        """Do nothing: no connection is held."""
