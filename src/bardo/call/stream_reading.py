"""Read one streamed reply: each network read goes to the task that asks for it, or is handled directly where it arrives.

The beginning of a reply is held while another provider could still answer instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from bardo.adapters.net.calls import Reply
from bardo.replies.forwarding import Forwarding, ReplyUpdate
from bardo.replies.reply_reader import ReplyReader
from bardo.services.facts.health import AttemptWatch
from bardo.values.errors import BardoError, MalformedReply, ProviderError
from bardo.values.events import Finish

# How long a server that keeps the connection open may take to send what comes behind the end of an answer: its usage.
_BEHIND_THE_END_SECONDS = 5.0


class Meter(Protocol):
    """Counts what comes of a reply before it is read."""

    def allow(self, size: int) -> int:
        """Return how many of so many bytes may be read now. Where none may, `wait` says when."""

    async def wait(self) -> int:
        """Return once something may be read, or the reply was cut; and how many bytes may be."""


class StreamReading:
    """Reads the body of a streamed `reply` of `provider`, of at most `most_bytes`, to its end or until it is stopped.

    `meter` is asked of each piece before it is read.
    """

    def __init__(
        self,
        reply: Reply,
        reader: ReplyReader,
        forwarding: Forwarding,
        health: AttemptWatch,
        provider: str,
        most_bytes: int,
        meter: Meter | None = None,
    ) -> None:
        self._reply = reply
        self._chunks: AsyncIterator[bytes] | None = reply.chunks()
        self._reader = reader
        self._forwarding = forwarding
        self._health = health
        self._provider = provider
        self._most_bytes = most_bytes
        self._size = 0
        self._may_end = False
        self._cut: BardoError | None = None
        self._meter = meter
        # What came of the reply and may not be read yet.
        self._unread = b""
        # How long a piece was that was read when it came, and what it gave; then what came behind it.
        self._ahead: tuple[int, ReplyUpdate] | None = None
        self._behind: ReplyUpdate | None = None

    @property
    def held_end(self) -> bytes:
        """The frames of a forwarded reply that were held until its answer is judged."""
        return b"".join(self._forwarding.held_end)

    def cut(self, error: BardoError) -> None:
        """End the reply with an error, and hang up: nothing more of it is read."""
        if self._chunks is None or self._cut is not None:
            return
        self._cut = error
        # Replies over direct connections can be ended while another task waits for their next piece; others end with it.
        break_off: Callable[[BardoError], None] | None = getattr(self._reply, "break_off", None)
        if break_off is not None:
            break_off(error)

    def stop(self) -> None:
        """Read no more."""
        self._chunks = self._behind = None

    async def next(self) -> ReplyUpdate | None:
        """Return what the next network read gives; None at the end. A failure of the reply is an event of the last update.

        More bytes than are allowed are a failure too.
        """
        if self._behind is not None:
            update, self._behind = self._behind, None
            return update
        reader, forwarding = self._reader, self._forwarding
        chunk: bytes | None
        while self._chunks is not None:
            if not reader.repeats:
                if reader.over:
                    return self._rest()
                self._may_end = reader.complete
            try:
                if self._unread:
                    chunk, self._unread = self._unread, b""
                else:
                    chunk = await (self._next_chunk(self._chunks) if self._may_end else anext(self._chunks, None))
                    self._size += len(chunk or b"")
                if chunk is not None and self._meter is not None and self._ahead is None:
                    most = self._meter.allow(len(chunk)) or await self._meter.wait()
                    chunk, self._unread = chunk[:most], chunk[most:]
                if self._cut is not None:
                    return self._cut_off(self._cut)
                if chunk is None:
                    return self._rest()
                if self._size > self._most_bytes:
                    raise _too_long(self._provider, self._most_bytes)
            except BardoError as problem:
                if self._cut is not None:
                    return self._cut_off(self._cut)
                if not isinstance(problem, ProviderError):
                    raise
                self._chunks = None
                self._health.ended(problem)
                return forwarding.fail(problem)
            update = forwarding.update(chunk) if self._ahead is None else self._after(self._ahead, chunk)
            if reader.failure is not None:
                self._chunks = None
                self._health.ended(reader.failure)
            if update.events or update.raw:
                return update
        return None

    def give_directly(self, may_give: Callable[[], bool], give: Callable[[ReplyUpdate], None]) -> None:
        """Have `give` called, where `may_give`, with what comes while `next` waits, unless the reply may end with it.

        That saves waking a task for each event of a stream. All else is returned by `next`, in the order in which it came.
        """
        # Replies over direct connections have it: their pieces can be taken without waking the task that reads them.
        offer_pieces: Callable[[Callable[[bytes], bool]], None] | None = getattr(self._reply, "offer_pieces", None)
        if offer_pieces is None:
            return
        forwarding = self._forwarding

        def take(piece: bytes) -> bool:
            size = self._size + len(piece)
            if self._may_end or self._cut is not None or size > self._most_bytes or not may_give():
                return False
            if self._meter is not None and self._meter.allow(len(piece)) < len(piece):
                return False
            update = forwarding.repeated(piece)
            if update is None:
                update = forwarding.update(piece)
                if self._may_be_last(update):
                    self._ahead = len(piece), update
                    return False
            self._size = size
            give(update)
            return True

        offer_pieces(take)

    def _may_be_last(self, update: ReplyUpdate) -> bool:
        reader = self._reader
        if reader.failure is not None or reader.over or reader.complete:
            return True
        return any(type(event) is Finish for event in update.events)

    def _after(self, ahead: tuple[int, ReplyUpdate], chunk: bytes) -> ReplyUpdate:
        """Return what a network read gives whose first piece was read when it came."""
        (size, update), self._ahead = ahead, None
        if len(chunk) == size:
            return update
        behind = self._forwarding.update(chunk[size:])
        if not (update.events or update.raw):
            return behind
        self._behind = behind if behind.events or behind.raw else None
        return update

    def _cut_off(self, error: BardoError) -> ReplyUpdate:
        self._chunks = None
        self._health.left()
        return self._forwarding.fail(error)

    def _rest(self) -> ReplyUpdate:
        self._chunks = None
        update = self._forwarding.rest()
        self._health.ended(self._reader.failure)
        return update

    async def _next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Return the next piece of a reply that may end here; None at the end: also where the server keeps the connection open."""
        try:
            async with asyncio.timeout(_BEHIND_THE_END_SECONDS):
                return await anext(chunks, None)
        except TimeoutError:
            return None


def _too_long(provider: str, limit: int) -> MalformedReply:
    hint = "limit the tokens of the reply, or raise gateway.max_stream_bytes in bardo.toml"
    return MalformedReply(f"the streamed reply is larger than {limit} bytes", hint=hint, provider=provider)


# Comments before the first event that are forwarded with it; a server that waits long may send any number of them.
_MOST_COMMENT_BYTES = 4096
# The head of a reply in Responses repeats the request twice, with all its instructions and tools.
_MOST_HELD_BYTES = 8 * 1024 * 1024
_MOST_HELD_UPDATES = 10_000


class UpdateBuffer:
    """The updates of a reply of which nothing is to be shown yet."""

    __slots__ = ("_comments", "_size", "updates")

    def __init__(self) -> None:
        self.updates: list[ReplyUpdate] = []
        self._size = self._comments = 0

    @property
    def is_full(self) -> bool:
        """Whether more is held than heads have: the reply is given to its client then."""
        return self._size > _MOST_HELD_BYTES or len(self.updates) > _MOST_HELD_UPDATES

    def add(self, update: ReplyUpdate, *, begun: bool) -> None:
        """Hold an update. `begun`: an event has come. Comments before that are held up to a bound."""
        size = len(update.raw)
        if not begun and not update.events:
            self._comments += size
            if self._comments > _MOST_COMMENT_BYTES:
                return
        if size or update.events:
            self._size += size
            self.updates.append(update)
