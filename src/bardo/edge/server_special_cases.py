"""Requests out of the ordinary: answered before they have arrived, of an older HTTP, or with a wish for another protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from bardo.edge.server_limits import ServerLimits
from bardo.edge.server_reply import FIRST_HEADERS, RequestCycle

# The application gets longer bodies while they arrive.
_AWAITED_BYTES = 64 * 1024


def is_awaited(cycle: RequestCycle, limits: ServerLimits) -> bool:
    """Whether a request whose body has begun to arrive is handed to the application only once it is complete.

    Many clients send head and body apart. A body that is long may be refused by its head, and one that is asked for is not sent before.
    """
    scope: Any = cycle.scope
    length: bytes = scope[FIRST_HEADERS].get(b"content-length", b"")
    longest = min(_AWAITED_BYTES, limits.max_body_bytes())
    return length.isdigit() and int(length) <= longest and not cycle.waiting_for_100_continue


class EarlyReply:
    """Makes a reply close its connection if it is sent before its request has wholly arrived. `revoke` once it has.

    The rest of the request would otherwise have to be read before the next one. `close` is called instead of the transport's own.
    """

    def __init__(self, cycle: RequestResponseCycle, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._cycle = cycle
        self._transport = transport
        self._keep_alive = cycle.keep_alive
        self.close = close
        self.write = transport.write
        self.is_closing = transport.is_closing
        cycle.keep_alive = False
        cycle.transport = self  # type: ignore[assignment]

    def revoke(self) -> None:
        """Restore the reply's transport and whether its connection is kept alive."""
        self._cycle.keep_alive = self._keep_alive
        self._cycle.transport = self._transport

    def stay_closed(self) -> None:
        """Close the connection after the reply in any case."""
        self._keep_alive = False


def without_chunks(cycle: RequestResponseCycle) -> None:
    """Send a reply of unknown length as it is: its end is the end of the connection."""
    send = cycle.send
    unknown_length = False

    async def send_plain(message: Any) -> None:
        nonlocal unknown_length
        if message["type"] == "http.response.start":
            unknown_length = not any(name == b"content-length" for name, _ in message.get("headers", ()))
            if unknown_length:
                cycle.chunked_encoding = False
        elif unknown_length:
            # uvicorn compares what is sent with what was announced.
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    cycle.send = send_plain  # type: ignore[method-assign]


def without_upgrade(method: bytes, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of an HTTP/1.1 request without the wish that another protocol follows it."""
    lines = [b"%s %s HTTP/1.1\r\n" % (method, url)]
    for name, value in headers:
        if name != b"connection":
            lines.append(b"%s: %s\r\n" % (name, value))
        elif b"close" in value.lower():
            lines.append(b"connection: close\r\n")
    return b"".join([*lines, b"\r\n"])
