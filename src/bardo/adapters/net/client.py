"""bardo's one HTTP client: send a call to a provider over HTTP/1.1 and hand its reply over piece by piece.

Connections are kept warm and shared, straight or through a proxy; a reply belongs to one task. Every failure arrives as a `ProviderError`
that names the host and what to check, and never a header, a key or a query string.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
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
from bardo.streams.unpacking import OF_SEVERAL_STREAMS, UNPACKERS, Unpacker
from bardo.values.errors import BardoError, ClientMisuse, InternalError

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


# The codings that are registered for HTTP (RFC 9110, section 16.6.1), as far as bardo does not unpack them. Other words, as in
# `Content-Encoding: utf-8`, say nothing about compression.
_UNREADABLE = frozenset({"compress", "x-compress", "exi", "pack200-gzip", "aes128gcm", "dcb", "dcz"})
# The bytes given to an unpacker in one step: those behind the end of a stream are copied.
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
        """Return what unpacks a body with this `Content-Encoding`, or None if it is read as it is."""
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
        """Return a kept connection on which nothing waits to be read: an end, or unexpected bytes.

        The event loop may not have seen them yet, after work that held it up.
        """
        idle = self._idle.get(address)
        while idle:
            connection = idle.pop()
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
                # uvloop has closed it where the deadline came while it was taking it over; the deadline is reported then.
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
        entry = self._names.get((host, port))
        if entry is not None and loop.time() < entry[0]:
            return entry[1]
        infos_found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        infos = allowed_addresses(host, infos_found)
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
        for address, idle in list(self._idle.items()):
            stale = [link for link in idle if link.transport is None or now - link.last_heard >= IDLE_SECONDS]
            for connection in stale:
                connection.abort()
                idle.remove(connection)
            if not idle:
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
    stored = _head_before_length(call.method, way, tuple(call.headers.items()))
    if stored is None:
        raise problems.unsendable_header(call)
    head, needs_length = stored
    if needs_length and (call.body or call.method != "GET"):
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(call.body))
    return head + b"\r\n"


@lru_cache(maxsize=256)
def _head_before_length(
    method: str, way: RequestRoute, headers: tuple[tuple[str, str], ...]
) -> tuple[bytes, bool] | None:
    """Return the lines that calls with the same headers begin with, and whether the length is to follow, or None if HTTP allows one not."""
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
    """Return one header line, or None if HTTP does not allow it."""
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
