"""A call to a provider and its reply, as values and protocols that name no HTTP library."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Protocol

import msgspec

_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """How long each part of a call may take, in seconds.

    `first_byte` runs from sending to the head of the reply, connecting included; `idle` is the wait for each next piece; `total` runs from
    sending to the end of the reply, and 0 is no bound.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 120.0
    total: float = 0.0


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

    @property
    def resent(self) -> bool:
        """Whether the call was sent twice: the first time, on a connection that the provider had closed as idle."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, never reading ahead of the caller by more than a buffer.

        Raises BrokenStream where the body breaks off and UpstreamTimeout where it stalls.
        """
        ...

    async def read(self, limit: int) -> bytes:
        """Return the rest of the body; raises MalformedReply where it is longer than `limit` bytes."""
        ...

    async def finish(self) -> None:
        """Let go of a reply that said all: the end of its body may still come, and the connection serves again then."""
        ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """The sender of calls: `HttpTransport`, and `FakeTransport` in tests."""

    async def send(self, call: Call, deadlines: Deadlines) -> Reply:
        """Send `call` and return once the head of its reply is there, whatever its status.

        Redirects are replies too: following one would carry a key elsewhere. Raises Unreachable, UpstreamTimeout,
        BrokenStream, MalformedReply, or ConfigError for an address or header that cannot be sent.
        """
        ...

    async def close(self) -> None:
        """Let go of every connection; nothing can be sent afterwards."""
        ...


def can_be_sent(name: str, value: str) -> bool:
    """Whether HTTP allows a header: its name is a token (RFC 9110, section 5.6.2), its value has no control characters."""
    return value.isprintable() and _is_token(name)


@lru_cache(maxsize=1024)
def _is_token(name: str) -> bool:
    return _TOKEN.fullmatch(name) is not None
