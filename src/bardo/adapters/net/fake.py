"""A transport for tests: what it answers is a value, and what it was asked is kept.

A peer of `HttpTransport`: the same deadlines, the same errors, the same manners of a reply (one contract suite holds both).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec

from bardo.adapters.net import problems
from bardo.adapters.net.calls import Call, Deadlines, Reply
from bardo.adapters.net.client import read_bounded
from bardo.values.errors import BardoError, InternalError


class FakeReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply to give: each chunk is bytes to yield, an error to raise there, or an event to wait for."""

    status: int = 200
    headers: dict[str, str] = {}
    chunks: Sequence[bytes | BardoError | asyncio.Event] = ()


Handler = Callable[[Call], FakeReply | Awaitable[FakeReply]]
"""Answers a call, at once or later, or raises what `Transport.send` may raise."""


class FakeTransport:
    """Answer every call with what `handler` returns.

    `calls` are those that were sent; `open_calls` those that still wait for a reply or hold one open; `abandoned` those
    that were cancelled, or whose reply was closed, before the end.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._closed = False
        self.calls: list[Call] = []
        self.open_calls: list[Call] = []
        self.abandoned: list[Call] = []

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        if self._closed:
            raise InternalError("the HTTP client is closed")
        self.calls.append(call)
        self.open_calls.append(call)
        try:
            reply = await self._answer(call, deadlines)
        except BaseException as failure:
            self.finished(call, whole=isinstance(failure, BardoError))
            raise
        return _FakeOpenReply(self, call, reply, deadlines.idle)

    async def close(self) -> None:
        self._closed = True

    def finished(self, call: Call, *, whole: bool) -> None:
        """Note that a call ended, by itself or because its caller let go of it."""
        self.open_calls.remove(call)
        if not whole:
            self.abandoned.append(call)

    async def _answer(self, call: Call, deadlines: Deadlines) -> FakeReply:
        reply = self._handler(call)
        if not inspect.isawaitable(reply):
            return reply
        try:
            async with asyncio.timeout(deadlines.first_byte):
                return await reply
        except TimeoutError:
            raise problems.no_first_byte(call, deadlines) from None


class _FakeOpenReply:
    def __init__(self, transport: FakeTransport, call: Call, reply: FakeReply, idle: float) -> None:
        self.status = reply.status
        self.resent = False
        self.headers = {name.lower(): value for name, value in reply.headers.items()}
        self._transport = transport
        self._call = call
        self._coming = list(reversed(reply.chunks))
        self._idle = idle
        self._done = False

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while self._coming and not self._done:
            step = self._coming.pop()
            if isinstance(step, bytes):
                return step
            if isinstance(step, BardoError):
                await self._end(whole=True)
                raise step
            await self._wait(step)
        await self._end(whole=True)
        raise StopAsyncIteration

    async def read(self, limit: int) -> bytes:
        return await read_bounded(self, self._call, limit)

    async def close(self) -> None:
        await self._end(whole=False)

    async def finish(self) -> None:
        await self._end(whole=True)

    async def _wait(self, event: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(self._idle):
                await event.wait()
        except TimeoutError:
            await self.close()
            raise problems.stalled(self._call, self._idle) from None

    async def _end(self, *, whole: bool) -> None:
        if not self._done:
            self._done = True
            self._transport.finished(self._call, whole=whole)
