"""bardo's one HTTP client: send a call to a provider and hand its reply over piece by piece.

Connections are kept warm and shared; a reply belongs to one task. Every failure arrives as a `ProviderError` that names
the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import msgspec

from bardo._version import __version__
from bardo.edge import http_problems as problems
from bardo.values.errors import BardoError, InternalError

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.request import StreamRequest
    from pyreqwest.response import Response

USER_AGENT = f"bardo/{__version__}"


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """How long each part of a call may take, in seconds.

    `first_byte` runs from sending to the head of the reply, connecting included; `idle` is the wait for each next piece.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 120.0


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request to a provider, complete: `provider` is its id in the configuration."""

    method: str = "POST"
    url: str
    headers: dict[str, str] = {}
    body: bytes = b""
    provider: str = ""


class Reply(Protocol):
    """The head of a provider's reply, and its body still to be read: by one task, once.

    Whoever holds a reply closes it. Closing before the end closes the connection, closing twice does nothing.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> dict[str, str]:
        """The reply's headers, names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, never reading ahead of the caller by more than a buffer.

        Raises BrokenStream where the body breaks off and UpstreamTimeout where it stalls.
        """
        ...

    async def read(self, limit: int) -> bytes:
        """Return the rest of the body; raises MalformedReply where it is longer than `limit` bytes."""
        ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """What sends calls: `HttpTransport`, and `FakeTransport` in tests."""

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        """Send `call` and return once the head of its reply is there, whatever its status.

        Redirects are replies too: following one would carry a key elsewhere. Raises Unreachable, UpstreamTimeout,
        BrokenStream, MalformedReply, or ConfigError for an address or header that cannot be sent.
        """
        ...

    async def close(self) -> None:
        """Let go of every connection; nothing can be sent afterwards."""
        ...


class HttpTransport:
    """Send calls through pyreqwest. Construct it anywhere, but send only after the last fork.

    A call that is cancelled before its head arrived ends here at once, but at the provider only when the head arrives or
    its deadline has passed: pyreqwest cannot abort it.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[float, float, bool], Client] = {}
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        from pyreqwest.exceptions import DetailedPyreqwestError

        request = self._request(call, deadlines)
        problem: BardoError
        try:
            async with asyncio.timeout(deadlines.first_byte):
                response = await request.__aenter__()
            return _PieceByPiece(request, response, call, deadlines.idle)
        except DetailedPyreqwestError as failure:
            problem = problems.unanswered(failure, call, deadlines)
        except TimeoutError:
            problem = problems.no_first_byte(call, deadlines)
        # Raised out here so that the library's message, which holds the whole URL, is not chained to ours.
        raise problem

    async def close(self) -> None:
        self._closed = True
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()

    def _request(self, call: Call, deadlines: Deadlines) -> StreamRequest:
        builder = None
        try:
            builder = self._client(call, deadlines).request(call.method, call.url)
            # Without buffering: the library would otherwise hold the head back until 64 KiB of body are there.
            return builder.headers(call.headers).body_bytes(call.body).streamed_read_buffer_limit(0).build_streamed()
        except ValueError:
            # The library's message quotes what it refuses, and that may be the key.
            problem = problems.unsendable_header(call) if builder else problems.unsendable_address(call)
        raise problem

    def _client(self, call: Call, deadlines: Deadlines) -> Client:
        if self._closed:
            raise InternalError("the HTTP client is closed")
        key = (deadlines.connect, max(deadlines.first_byte, deadlines.idle), is_loopback(call.url))
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _new_client(*key)
        return client


class _PieceByPiece:
    """One reply over pyreqwest, and the iterator over its body."""

    __slots__ = ("_call", "_done", "_idle", "_reading", "_request", "_response", "headers", "status")

    def __init__(self, request: StreamRequest, response: Response, call: Call, idle: float) -> None:
        self.status = response.status
        self.headers: dict[str, str] = dict(response.headers)
        self._request = request
        self._response = response
        self._call = call
        self._idle = idle
        self._done = False
        self._reading = False

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._done:
            raise StopAsyncIteration
        chunk = await self._next_chunk()
        if chunk is None:
            await self.close()
            raise StopAsyncIteration
        return chunk

    async def read(self, limit: int) -> bytes:
        return await read_bounded(self, self._call, limit)

    async def close(self) -> None:
        if self._reading:
            # Closing would wait for the read, which waits for the provider.
            raise InternalError("a reply was closed by one task while another was reading it")
        if not self._done:
            self._done = True
            await self._request.__aexit__(None, None, None)

    async def _next_chunk(self) -> bytes | None:
        from pyreqwest.exceptions import DetailedPyreqwestError

        problem: BardoError
        self._reading = True
        try:
            async with asyncio.timeout(self._idle):
                chunk = await self._response.body_reader.read_chunk()
            return None if chunk is None else bytes(chunk)
        except DetailedPyreqwestError as failure:
            problem = problems.broken_off(self._call, problems.reason(failure))
        except TimeoutError:
            problem = problems.stalled(self._call, self._idle)
        finally:
            self._reading = False
        await self.close()
        raise problem


async def read_bounded(reply: Reply, call: Call, limit: int) -> bytes:
    """Return the whole body of `reply` and close it; raises MalformedReply once it is longer than `limit` bytes."""
    try:
        pieces, size = [], 0
        async for piece in reply.chunks():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise problems.oversized(call, limit)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        await reply.close()


def _new_client(connect: float, silence: float, loopback: bool) -> Client:
    from pyreqwest.client import ClientBuilder

    builder = (
        ClientBuilder()
        .user_agent(USER_AGENT)
        .follow_redirects(False)
        .referer(False)
        .connect_timeout(timedelta(seconds=connect))
        # A cancelled call lives on inside the library until its head arrives; this is where that ends.
        .read_timeout(timedelta(seconds=silence + 1))
        # Replies are small and often streamed: compressing them costs latency and saves nothing.
        .gzip(False)
        .brotli(False)
        .zstd(False)
        .deflate(False)
        .default_headers({"accept-encoding": "identity"})
    )
    return (builder.no_proxy() if loopback else builder).build()


@lru_cache(maxsize=1024)
def is_loopback(url: str) -> bool:
    """Say whether `url` leads to this machine, where a proxy from the environment has no business."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
