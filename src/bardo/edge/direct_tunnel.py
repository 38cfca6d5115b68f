"""Ask a proxy for a way to a host (CONNECT), and speak TLS with the host through it."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from bardo.edge.direct_addresses import Address
from bardo.edge.direct_incoming import Disconnected, NotHttp

_HEAD_BYTES = 64 * 1024


class ProxyRefused(Exception):
    """A proxy opened no way to a host; its status and its own word for it."""

    def __init__(self, status: int, word: str) -> None:
        super().__init__(status, word)
        self.status = status
        self.word = word


class ProxyUnreachable(Exception):
    """There is no connection to a proxy, and why."""

    def __init__(self, host: str, port: int, cause: OSError) -> None:
        super().__init__(host, port)
        self.host = host
        self.port = port
        self.cause = cause


class TunnelReply(asyncio.Protocol):
    """What a proxy answers to CONNECT. `status` is done with the head of the reply; what follows a refusal is not read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.status: asyncio.Future[tuple[int, str]] = loop.create_future()
        self._parser = HttpResponseParser(self)
        self._word = b""
        self._taken = 0

    def data_received(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > _HEAD_BYTES:
            self._fail(NotHttp(f"got more than {_HEAD_BYTES} bytes without a body"))
        if self.status.done():
            return
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._fail(NotHttp("it switches protocols unasked"))
        except HttpParserError as problem:
            self._fail(NotHttp(str(problem)))

    def connection_lost(self, failure: Exception | None) -> None:
        lost = Disconnected()
        lost.__cause__ = failure
        self._fail(lost)

    # What the parser calls.

    def on_status(self, word: bytes) -> None:
        self._word += word

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and not self.status.done():
            self.status.set_result((status, self._word.decode("ascii", "replace")))
        self._word = b""

    def _fail(self, failure: Exception) -> None:
        if not self.status.done():
            self.status.set_exception(failure)


async def open_tunnel(
    transport: asyncio.Transport, reply: TunnelReply, address: Address, protocol: asyncio.Protocol, tls: ssl.SSLContext
) -> None:
    """Ask the proxy at the other end of `transport` for a way to `address`, and connect `protocol` with the host through it.

    Raises ProxyRefused, NotHttp and Disconnected for what the proxy answers, and OSError where there is no TLS with the host.
    """
    try:
        transport.write(connect_head(address))
        status, word = await reply.status
        if not 200 <= status < 300:
            raise ProxyRefused(status, word)
        loop = asyncio.get_running_loop()
        upgraded = await loop.start_tls(transport, protocol, tls, server_hostname=address.host)
        protocol.connection_made(cast(asyncio.Transport, upgraded))
    except BaseException:
        transport.abort()
        raise


def connect_head(address: Address) -> bytes:
    """Return the request for a way to an address."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    place = f"{host}:{address.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"host: {place}"]
    if address.proxy is not None and address.proxy.authorization:
        lines.append(f"proxy-authorization: {address.proxy.authorization}")
    return "\r\n".join([*lines, "", ""]).encode()
