"""bardo's one HTTP client: send a call to a provider and hand its reply over piece by piece.

Connections are kept warm and shared; a reply belongs to one task. Every failure arrives as a `ProviderError` that names
the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import msgspec

from bardo._version import __version__
from bardo.edge import http_problems as problems
from bardo.values.errors import InternalError

if TYPE_CHECKING:
    from bardo.edge.http_session import Session

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
    """Send calls through aiohttp. Construct it anywhere; it belongs to the event loop of its first call.

    Whoever cancels a call hangs up on the provider at once.
    """

    def __init__(self) -> None:
        self._session: Session | None = None
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        return await (self._session or self._open()).send(call, deadlines)

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> Session:
        from bardo.edge.http_session import Session

        if self._closed:
            raise InternalError("the HTTP client is closed")
        self._session = Session()
        return self._session


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


@lru_cache(maxsize=1024)
def is_loopback(url: str) -> bool:
    """Say whether `url` leads to this machine, where a proxy from the environment has no business."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
