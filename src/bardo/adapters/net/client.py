"""bardo's one HTTP client: send a call to a provider over HTTP/1.1 and hand its reply over piece by piece.

Connections are kept warm and shared, straight or through a proxy; a reply belongs to one task. Every failure arrives as a `ProviderError`
that names the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from typing import Any

import msgspec

from bardo._version import __version__
from bardo.adapters.net import problems
from bardo.adapters.net.addresses import Address, RequestRoute, allowed_addresses, way_of
from bardo.adapters.net.calls import Call, Deadlines, Reply, Transport, can_be_sent
from bardo.adapters.net.connection import (
    IDLE_SECONDS,
    NAME_SECONDS,
    Disconnected,
    FirstByteDeadlines,
    HttpConnection,
    Incoming,
    NotHttp,
    OutOfTime,
    ProxyRefused,
    ProxyUnreachable,
    TunnelReply,
    open_tunnel,
    watched_socket,
)
from bardo.adapters.net.reply import HttpReply
from bardo.values.errors import BardoError, ClientMisuse, InternalError

__all__ = ["Call", "Deadlines", "HttpTransport", "Reply", "Transport"]

_MOST_NAMES = 1024
# How long a first address may take before the next is tried beside it (RFC 8305, section 5).
_ATTEMPT_SECONDS = 0.25
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_DEFAULTS = {"user-agent": f"bardo/{__version__}", "accept-encoding": "identity"}


class HttpTransport:
    """Send calls over HTTP/1.1, straight or through a proxy of the environment.

    Construct it anywhere; it belongs to the event loop of its first call. Whoever cancels a call hangs up on the provider at once. A call
    that found its kept connection closed, without a byte of a reply, is sent once more on a fresh one.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: dict[Address, list[HttpConnection]] = {}
        self._addresses: dict[HttpConnection, Address] = {}
        self._way_of = lru_cache(maxsize=1024)(way_of)
        self._names: dict[tuple[str, int], tuple[float, Sequence[Any]]] = {}
        self._replies: set[HttpReply] = set()
        self._deadlines = FirstByteDeadlines()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(self, call: Call, deadlines: Deadlines) -> HttpReply:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._belong_to(loop)
        if self._closed:
            raise InternalError("the HTTP client is closed")
        way = self._way_of(call.url)
        if way is None or call.method not in _METHODS:
            raise problems.unsendable_address(call)
        head = request_head(call, way)
        begun = loop.time()
        total, first_byte = deadlines.total, deadlines.first_byte
        late = 0 < total < first_byte
        until = begun + (total if late else first_byte)
        # Hardly ever wanted, and it takes as long to write as the head.
        out_of_time: OutOfTime = (
            partial(problems.out_of_time, call, total) if late else partial(problems.no_first_byte, call, deadlines)
        )
        connection, resent = self._warm(way.address), False
        if connection is None:
            connection = await self._connect(way.address, call, deadlines, until, out_of_time)
        incoming = await self._answered(connection, head, call, until, out_of_time)
        if (
            incoming.failure is not None
            and connection.served
            and isinstance(incoming.failure, Disconnected)
            and not connection.heard
        ):
            # The server had closed it as idle: some do so after each streamed reply without saying it (llama-server).
            connection, resent = await self._connect(way.address, call, deadlines, until, out_of_time), True
            incoming = await self._answered(connection, head, call, until, out_of_time)
        connection.served = True
        if incoming.failure is not None and not incoming.headed:
            raise _failed_head(incoming.failure, call, closed=self._closed)
        try:
            # The body is not sent again, and a reply may take many minutes.
            asked = msgspec.structs.replace(call, body=b"")
            reply = HttpReply(incoming, asked, deadlines.idle, self._replies, resent=resent)
        except NotHttp as failure:
            incoming.fail(failure)
            raise problems.unreadable(call, str(failure)) from None
        if total:
            reply.end_by(begun + total, total)
        return reply

    async def close(self) -> None:
        """Hang up on every provider. Whoever reads a reply, or waits for one, gets an InternalError."""
        self._closed = True
        self._deadlines.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for reply in tuple(self._replies):
            reply.break_off(problems.closed())
        for connection in tuple(self._addresses):
            connection.abort()
        self._idle.clear()
        # The event loop closes the sockets in its next round.
        await asyncio.sleep(0)

    def _belong_to(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            raise another_loop("the HTTP client")
        self._loop = loop

    def _warm(self, address: Address) -> HttpConnection | None:
        """Return a kept connection on which nothing waits to be read: an end, or bytes nobody asked for.

        The event loop may not have seen them yet, after work that held it up.
        """
        kept = self._idle.get(address)
        while kept:
            connection = kept.pop()
            if not connection.has_something_to_read():
                return connection
            connection.abort()
        return None

    async def _connect(
        self, address: Address, call: Call, deadlines: Deadlines, until: float, out_of_time: OutOfTime
    ) -> HttpConnection:
        patience = asyncio.get_running_loop().time() + deadlines.connect
        problem: BardoError
        try:
            async with asyncio.timeout_at(min(patience, until)):
                connection = await self._connected(address)
            if not self._closed:
                return connection
            connection.abort()
            problem = problems.closed()
        except TimeoutError:
            problem = out_of_time() if until < patience else problems.no_connection_in_time(call, deadlines)
        except ProxyRefused as refusal:
            problem = problems.refused_by_proxy(call, refusal.status, refusal.word)
        except NotHttp as failure:
            problem = problems.unreadable(call, str(failure))
        except ProxyUnreachable as failure:
            problem = problems.no_proxy(call, failure.host, failure.port, failure.cause)
        except (Disconnected, OSError) as failure:
            problem = problems.unconnected(failure.__cause__ or failure, call)
        # Raised out here so that the cause, which may name more than the host, is not chained to it.
        raise problem

    async def _connected(self, address: Address) -> HttpConnection:
        loop = asyncio.get_running_loop()
        connection = HttpConnection(loop, self._release, self._forget)
        self._addresses[connection] = address
        try:
            if address.tunnelled:
                reply = TunnelReply(loop)
                carrier = await self._opened(address, reply)
                await open_tunnel(carrier, reply, address, connection, _tls())
            else:
                await self._opened(address, connection)
        except BaseException:
            self._forget(connection)
            raise
        return connection

    async def _opened(self, address: Address, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Connect a protocol with the host, or with the proxy before it. Raises ProxyUnreachable, and OSError where there is no proxy."""
        stop = address.first_stop
        try:
            carrier = await self._carrier(stop.host, stop.port)
            try:
                transport, _ = await asyncio.get_running_loop().create_connection(
                    lambda: protocol,
                    sock=carrier,
                    ssl=_tls() if stop.secure else None,
                    server_hostname=stop.host if stop.secure else None,
                )
            except BaseException:
                # uvloop has closed it where the deadline came while it was taking it over; the deadline is what is told of then.
                with suppress(OSError):
                    carrier.close()
                raise
        except OSError as failure:
            if address.proxy is None:
                raise
            raise ProxyUnreachable(stop.host, stop.port, failure) from failure
        return transport

    async def _carrier(self, host: str, port: int) -> socket.socket:
        from aiohappyeyeballs import start_connection

        return await start_connection(
            await self._resolved(host, port),
            happy_eyeballs_delay=_ATTEMPT_SECONDS,
            interleave=1,
            loop=asyncio.get_running_loop(),
            socket_factory=watched_socket,
        )

    async def _resolved(self, host: str, port: int) -> Sequence[Any]:
        loop = asyncio.get_running_loop()
        known = self._names.get((host, port))
        if known is not None and loop.time() < known[0]:
            return known[1]
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        infos = allowed_addresses(host, found)
        if len(self._names) >= _MOST_NAMES:
            self._names.clear()
        self._names[host, port] = (loop.time() + NAME_SECONDS, infos)
        return infos

    async def _answered(
        self, connection: HttpConnection, head: bytes, call: Call, until: float, out_of_time: OutOfTime
    ) -> Incoming:
        """Send a request and return its reply once the head, or a failure, is there."""
        incoming = connection.send(head, call.body)
        self._deadlines.add(incoming, until, out_of_time)
        try:
            while not incoming.headed and incoming.failure is None:
                await incoming.wait()
        except BaseException:
            connection.abort()
            raise
        finally:
            self._deadlines.remove(incoming)
        return incoming

    def _release(self, connection: HttpConnection) -> None:
        address = self._addresses.get(connection)
        if self._closed or address is None:
            connection.abort()
            return
        self._idle.setdefault(address, []).append(connection)
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(IDLE_SECONDS, self._sweep)

    def _forget(self, connection: HttpConnection) -> None:
        self._addresses.pop(connection, None)

    def _sweep(self) -> None:
        """Close the connections that were silent for long."""
        loop = asyncio.get_running_loop()
        now, self._sweeping = loop.time(), None
        for address, kept in list(self._idle.items()):
            stale = [one for one in kept if one.transport is None or now - one.last_heard >= IDLE_SECONDS]
            for connection in stale:
                connection.abort()
                kept.remove(connection)
            if not kept:
                del self._idle[address]
        if self._addresses:
            self._sweeping = loop.call_later(IDLE_SECONDS, self._sweep)


def _failed_head(failure: BaseException, call: Call, *, closed: bool) -> BardoError:
    if isinstance(failure, BardoError):
        return failure
    if closed:
        return problems.closed()
    if isinstance(failure, NotHttp):
        return problems.unreadable(call, str(failure))
    return problems.broken_off(call, f"no answer came, {problems.reason(failure.__cause__ or failure)}")


def request_head(call: Call, way: RequestRoute) -> bytes:
    """Return the head of a request. Raises ConfigError for a header that HTTP does not allow."""
    known = _head_before_length(call.method, way, tuple(call.headers.items()))
    if known is None:
        raise problems.unsendable_header(call)
    head, needs_length = known
    if needs_length and (call.body or call.method != "GET"):
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(call.body))
    return head + b"\r\n"


@lru_cache(maxsize=256)
def _head_before_length(
    method: str, way: RequestRoute, headers: tuple[tuple[str, str], ...]
) -> tuple[bytes, bool] | None:
    """Return the lines that calls with the same headers begin with, and whether the length is to follow; None where HTTP allows one not."""
    names = {name.lower() for name, _ in headers}
    lines: list[bytes | None] = [b"%b %b HTTP/1.1\r\n" % (method.encode(), way.target)]
    if "host" not in names:
        lines.append(b"host: %b\r\n" % way.host)
    defaults = (*_DEFAULTS.items(), *way.headers)
    lines += [_line(name, value) or b"" for name, value in defaults if name not in names]
    lines += [_line(name, value) for name, value in headers]
    allowed = [line for line in lines if line is not None]
    return (b"".join(allowed), "content-length" not in names) if len(allowed) == len(lines) else None


@lru_cache(maxsize=1024)
def _line(name: str, value: str) -> bytes | None:
    """Return one header line; None where HTTP does not allow it."""
    if not can_be_sent(name, value):
        return None
    return f"{name}: {value}\r\n".encode("utf-8", "surrogateescape")


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def another_loop(what: str) -> ClientMisuse:
    """Return the error of a client that is used in an event loop other than its own."""
    return ClientMisuse(
        f"{what} belongs to another event loop", hint="make one for each event loop, or use bardo.Client"
    )
