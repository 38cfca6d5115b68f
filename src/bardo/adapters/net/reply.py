"""A reply while its body is read: its deadlines, its end, what of it is compressed, and how much of it may be held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from bardo.adapters.net import problems
from bardo.adapters.net.calls import Call, Reply
from bardo.adapters.net.connection import Incoming, NotHttp
from bardo.streams.unpacking import OF_SEVERAL_STREAMS, UNPACKERS, Unpacker
from bardo.values.errors import BardoError, InternalError

# How long the end of a body may take that said all: its connection serves again when it comes, and is closed when it does not.
_END_SECONDS = 2.0
# How often a reader that waits makes sure that there is something to wait for.
_LOOK_SECONDS = 1.0


async def read_bounded(reply: Reply, call: Call, limit: int, pieces: list[bytes] | None = None) -> bytes:
    """Return the whole body of `reply`, and close it; `pieces` get what comes of it.

    Raises MalformedReply once it is longer than `limit` bytes.
    """
    pieces = [] if pieces is None else pieces
    try:
        size = 0
        async for piece in reply.chunks():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise problems.oversized(call, limit)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        await reply.close()


class HttpReply:
    """One reply and the iterator over its body, given up when a deadline passes. `open_replies` holds it as long as it is open.

    Raises NotHttp for one that is compressed in a way that cannot be unpacked.
    """

    __slots__ = (
        "_alarm",
        "_call",
        "_done",
        "_end",
        "_idle",
        "_incoming",
        "_loop",
        "_open_replies",
        "_patience_ends",
        "_problem",
        "_reading",
        "_unpacker",
        "headers",
        "partial_body",
        "resent",
        "status",
    )

    def __init__(
        self, incoming: Incoming, call: Call, idle: float, open_replies: set[HttpReply], *, resent: bool
    ) -> None:
        encoding = incoming.headers.get("content-encoding")
        self._unpacker = None if encoding is None else BodyUnpacker.of(encoding)
        self._incoming = incoming
        self.status = incoming.status
        self.headers = incoming.headers
        self.resent = resent
        self._call = call
        self._idle = idle
        self._loop = incoming.loop
        self._patience_ends = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None
        self._problem: BardoError | None = None
        self._reading = False
        self._done = False
        self.partial_body = b""
        """What had come of a body that was to be read to its end, and broke off."""
        self._open_replies = open_replies
        open_replies.add(self)

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._done:
            raise StopAsyncIteration
        chunk = await self._next_chunk()
        if chunk:
            return chunk
        await self.close()
        if self._problem is not None:
            raise self._problem
        raise StopAsyncIteration

    async def read(self, limit: int) -> bytes:
        incoming = self._incoming
        if not self._done and self._unpacker is None and self._problem is None and incoming.complete:
            # Most whole replies have come with their heads.
            body, self._done = incoming.take(), True
            self._let_go()
            if len(body) > limit:
                raise problems.oversized(self._call, limit)
            return body
        pieces: list[bytes] = []
        try:
            return await read_bounded(self, self._call, limit, pieces)
        except BaseException:
            self.partial_body = b"".join(pieces)
            raise

    def offer_pieces(self, take: Callable[[bytes], bool]) -> None:
        """Ask `take` whether it takes a piece, as each comes while the reader waits for it; the reader gets those that it does not take."""
        if self._unpacker is None:
            self._incoming.offer = take

    async def close(self) -> None:
        if self._reading:
            raise InternalError("a reply was closed by one task while another was reading it")
        if not self._done:
            self._done = True
            self._let_go()

    async def finish(self) -> None:
        if self._done or self._incoming.complete or self._incoming.failure is not None:
            await self.close()
            return
        self._done = True
        self._cancel_timers()
        # The connection goes back to the others when the end comes, whether anybody reads or not.
        self._alarm = self._loop.call_later(_END_SECONDS, self._let_go)

    def end_by(self, when: float, total: float) -> None:
        """Give the reply up where it is not complete at `when`, by the loop's clock; `total` is how long it was given."""
        self._end = self._loop.call_at(when, lambda: self.break_off(problems.out_of_time(self._call, total)))

    def break_off(self, problem: BardoError) -> None:
        """Hang up, and have whoever reads find `problem`."""
        self._problem = problem
        self._hang_up()

    async def _next_chunk(self) -> bytes:
        """Return what has come, waiting for something to come; nothing at the end, or once `_problem` is set."""
        incoming, unpacker = self._incoming, self._unpacker
        while True:
            try:
                chunk = incoming.take() if unpacker is None else unpacker.more() or unpacker.unpack(incoming.take())
            except NotHttp as failure:
                self._problem = self._problem or problems.unreadable(self._call, str(failure))
                return b""
            if chunk:
                return chunk
            if incoming.at_end:
                self._problem = self._problem or self._ending()
                return b""
            self._begin_waiting()
            try:
                await incoming.wait()
            finally:
                self._reading = False

    def _ending(self) -> BardoError | None:
        """Return what was wrong with a body of which nothing more comes."""
        failure = self._incoming.failure
        if isinstance(failure, BardoError):
            return failure
        if isinstance(failure, NotHttp) and not self._incoming.begun:
            return problems.unreadable(self._call, str(failure))
        cut = failure is not None or (self._unpacker is not None and not self._unpacker.complete)
        return problems.cut_off(self._call) if cut else None

    def _begin_waiting(self) -> None:
        """Start the patience for the next piece. One timer that looks now and then is cheaper than one for each piece."""
        self._patience_ends = self._loop.time() + self._idle
        if self._alarm is None:
            self._set_alarm()
        self._reading = True

    def _set_alarm(self) -> None:
        self._alarm = self._loop.call_at(min(self._loop.time() + _LOOK_SECONDS, self._patience_ends), self._look)

    def _look(self) -> None:
        self._alarm = None
        if not self._reading:
            return
        self._patience_ends = max(self._patience_ends, self._incoming.offered_at + self._idle)
        if self._loop.time() >= self._patience_ends:
            self.break_off(problems.stalled(self._call, self._idle))
        else:
            self._set_alarm()

    def _let_go(self) -> None:
        if self._alarm is not None or self._end is not None:
            self._cancel_timers()
        self._open_replies.discard(self)
        self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection, unless the body has come to its end: then it went back to the others."""
        self._incoming.offer = None
        if not self._incoming.complete:
            self._incoming.fail(self._problem or InternalError("the reply was closed"))

    def _cancel_timers(self) -> None:
        for timer in (self._alarm, self._end):
            if timer is not None:
                timer.cancel()


# The codings that are registered for HTTP (RFC 9110, section 16.6.1), as far as nobody here unpacks them. Other words, as in
# `Content-Encoding: utf-8`, say nothing about compression.
_UNREADABLE = frozenset({"compress", "x-compress", "exi", "pack200-gzip", "aes128gcm", "dcb", "dcz"})
# What is given to an unpacker in one step: what stands behind the end of a stream is copied.
_STEP_BYTES = 16 * 1024


class BodyUnpacker:
    """Unpacks a compressed body within bounded memory. Raises NotHttp for what cannot be unpacked."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._stream: Unpacker | None = None
        self._given = b""
        self._place = 0
        self._goes_on = False

    @classmethod
    def of(cls, header: str) -> BodyUnpacker | None:
        """Return what unpacks a body with this `Content-Encoding`; None where it is read as it is."""
        named = [
            name for word in header.lower().split(",") if (name := word.strip()) in UNPACKERS or name in _UNREADABLE
        ]
        if len(named) > 1 or not _UNREADABLE.isdisjoint(named):
            raise NotHttp("content-encoding")
        return cls(named[0]) if named else None

    @property
    def complete(self) -> bool:
        """Whether the compressed stream came to its end, or nothing of one came."""
        return self._stream is None or self._stream.ended

    def more(self) -> bytes:
        """Return what follows of the data that was given before."""
        return self.unpack(b"") if self._goes_on else b""

    def unpack(self, data: bytes) -> bytes:
        """Return the next piece of the body; at most `PIECE_BYTES` of it."""
        self._given, self._place = self._given[self._place :] + data, 0
        try:
            piece = self._next_piece()
        except NotHttp:
            raise
        except Exception as problem:
            # Each library has an error of its own.
            raise NotHttp("content-encoding") from problem
        self._goes_on = bool(piece)
        return piece

    def _next_piece(self) -> bytes:
        while True:
            step = self._given[self._place : self._place + _STEP_BYTES]
            if self._stream is None or self._stream.ended:
                if not step:
                    return b""
                if self._stream is not None and self._encoding not in OF_SEVERAL_STREAMS:
                    raise NotHttp("content-encoding")
                self._stream = UNPACKERS[self._encoding](step)
            piece = self._stream.unpack(step)
            self._place += len(step) - (len(self._stream.unused) if self._stream.ended else 0)
            if piece:
                return piece
            if not step and not self._stream.ended:
                return b""
