"""The body of a reply while it is read: its deadlines, its end, and how much of it may be held."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from bardo.adapters.net import problems
from bardo.adapters.net.calls import Call, Reply
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


class TimedReply(ABC):
    """One reply and the iterator over its body, given up when a deadline passes. `open_replies` holds it as long as it is open.

    A client says how the next piece is read, whether more may come, and how to hang up.
    """

    __slots__ = (
        "_alarm",
        "_call",
        "_done",
        "_end",
        "_idle",
        "_loop",
        "_open_replies",
        "_patience_ends",
        "_problem",
        "_reading",
        "headers",
        "partial_body",
        "resent",
        "status",
    )

    def __init__(
        self,
        status: int,
        headers: dict[str, str],
        call: Call,
        idle: float,
        open_replies: set[TimedReply],
        loop: asyncio.AbstractEventLoop,
        *,
        resent: bool,
    ) -> None:
        self.status = status
        self.headers = headers
        self.resent = resent
        self._call = call
        self._idle = idle
        self._loop = loop
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

    @abstractmethod
    async def _next_chunk(self) -> bytes:
        """Return what has come, waiting for something to come; nothing at the end, or once `_problem` is set."""

    @abstractmethod
    def _has_ended(self) -> bool:
        """Whether nothing more comes."""

    @abstractmethod
    def _hang_up(self) -> None:
        """Close the connection, unless the body has come to its end: then it went back to the others."""

    def _connection_problem(self) -> BardoError | None:
        """Return why waiting is in vain, where the client knows before its reader is told."""
        return None

    def _last_piece_at(self) -> float:
        """Return when a piece came that the reader did not get, by the loop's clock."""
        return 0.0

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
        pieces: list[bytes] = []
        try:
            return await read_bounded(self, self._call, limit, pieces)
        except BaseException:
            self.partial_body = b"".join(pieces)
            raise

    async def close(self) -> None:
        if self._reading:
            raise InternalError("a reply was closed by one task while another was reading it")
        if not self._done:
            self._done = True
            self._let_go()

    async def finish(self) -> None:
        if self._done or self._has_ended():
            await self.close()
            return
        self._done = True
        self._cancel_timers()
        # The connection goes back to the others when the end comes, whether anybody reads or not.
        self._alarm = self._loop.call_later(_END_SECONDS, self._let_go)

    def end_by(self, when: float, total: float) -> None:
        """Give the reply up where it is not complete at `when`, by the loop's clock; `total` is how long it was given."""
        self._end = self._loop.call_at(when, self._time_out, total)

    def _time_out(self, total: float) -> None:
        self.break_off(problems.out_of_time(self._call, total))

    def break_off(self, problem: BardoError) -> None:
        """Hang up, and have whoever reads find `problem`."""
        self._problem = problem
        self._hang_up()

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
        problem = self._connection_problem()
        self._patience_ends = max(self._patience_ends, self._last_piece_at() + self._idle)
        if problem is not None:
            self.break_off(problem)
        elif self._loop.time() >= self._patience_ends:
            self.break_off(problems.stalled(self._call, self._idle))
        else:
            self._set_alarm()

    def _let_go(self) -> None:
        if self._alarm is not None or self._end is not None:
            self._cancel_timers()
        self._open_replies.discard(self)
        self._hang_up()

    def _cancel_timers(self) -> None:
        for timer in (self._alarm, self._end):
            if timer is not None:
                timer.cancel()
