"""One HTTP/1.1 connection to a provider: requests are written to it, and llhttp parses the replies that come back.

Its deadlines are one timer for all connections, since one for each costs more than the rest of a call. A tunnel through a proxy (CONNECT)
is a connection with TLS inside.
"""

from __future__ import annotations

import asyncio
import math
import re
import select
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, cast

from bardo.adapters.net.addresses import Address
from bardo.values.error_cleaning import printable
from bardo.values.errors import BardoError, InternalError
from bardo.values.secrets import secrets_of

# Shorter than servers and networks usually keep a silent connection.
IDLE_SECONDS = 50.0
NAME_SECONDS = 60.0
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 4))
_TIMEOUT = re.compile(r"(?i)(?:^|[\s,;])timeout\s*=\s*\"?(\d{1,9})")


def watched_socket(info: tuple[Any, ...]) -> socket.socket:
    """Return a socket that keeps a silent connection alive: a model may think for longer than a firewall remembers it.

    `info` is a line of `getaddrinfo`.
    """
    family, kind, protocol, *_ = info
    carrier = socket.socket(family, kind, protocol)
    carrier.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        if hasattr(socket, option):
            carrier.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return carrier


def reading_watch(carrier: Any) -> Callable[[], bool]:
    """Return what tells whether bytes, or an end, wait on a socket, as long as it is open."""
    if not hasattr(select, "poll"):
        return lambda: bool(select.select([carrier], [], [], 0)[0])
    poll = select.poll()
    poll.register(carrier, select.POLLIN)
    return lambda: bool(poll.poll(0))


def idle_limit(header: str | None) -> float | None:
    """Return for how many seconds a `Keep-Alive` header says a connection is kept; a second, or half, is left for the way there."""
    match = _TIMEOUT.search(header) if header else None
    if match is None:
        return None
    seconds = float(match[1])
    return max(seconds - 1, seconds / 2)


# Reading pauses above this many waiting bytes, which slows the provider down.
_HIGH_WATER = 128 * 1024


@cache
def _llhttp() -> Any:
    """Return the parser's module, which is loaded with the first connection: a client that is made and makes no call does without."""
    import httptools

    return httptools


class Disconnected(Exception):
    """The connection ended before the reply did; the cause, where there was one, is chained."""


class NotHttp(Exception):
    """The bytes are no HTTP/1.1 reply, in the parser's words."""


class Incoming:
    """The reply that a connection receives: its head, and what of its body came and was not read yet. One task waits for it."""

    __slots__ = (
        "_connection",
        "_held",
        "_size",
        "_waiter",
        "begun",
        "complete",
        "failure",
        "headed",
        "headers",
        "loop",
        "offer",
        "offered_at",
        "status",
        "until_close",
    )

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection
        self.loop = connection.loop
        self._held: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.headed = False
        self.begun = False
        self.complete = False
        self.until_close = False
        self.failure: BaseException | None = None
        self.offer: Callable[[bytes], bool] | None = None
        """Returns whether it takes a piece that comes while a task waits for it: such a piece is not held, and no task is woken."""
        self.offered_at = 0.0
        """When it took the last one, by the loop's clock."""

    def wait(self) -> asyncio.Future[None]:
        """Return a future that is done once something new is known: the head, more of the body, its end, or a failure."""
        self._waiter = waiter = self.loop.create_future()
        return waiter

    def take(self) -> bytes:
        """Return all that is held of the body, which may be nothing."""
        held = self._held
        if not held:
            return b""
        self._held, self._size = [], 0
        if not self.complete:
            self._connection.resume()
        return held[0] if len(held) == 1 else b"".join(held)

    @property
    def at_end(self) -> bool:
        """Whether nothing is held, and nothing more comes."""
        return not self._held and (self.complete or self.failure is not None)

    def add(self, pieces: list[bytes]) -> None:
        """Hold pieces of the body that came in one read, and pause the connection when too much is held."""
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.begun = True
        if self.offer is not None and self._offered(piece):
            return
        self._held.append(piece)
        self._size += len(piece)
        if self._size > _HIGH_WATER:
            self._connection.pause()
        if self._waiter is not None:
            self.wake()

    def _offered(self, piece: bytes) -> bool:
        """Offer a piece, unless something is held before it or no reader waits. Return whether it was taken."""
        waiter, offer = self._waiter, self.offer
        if waiter is None or offer is None or self._held or waiter.done():
            return False
        try:
            taken = offer(piece)
        except Exception as problem:  # noqa: BLE001 - the parser calls this: whoever reads the reply is to get the problem
            failure = InternalError(f"a piece of a reply could not be passed on: {type(problem).__name__}")
            # Whoever logs it tells the mistake itself, with its place.
            failure.__cause__ = problem
            self.fail(failure)
            return True
        if taken:
            self.offered_at = self._connection.last_heard
        return taken

    def fail(self, failure: BaseException) -> None:
        """End the reply with a failure and hang up on its connection. The first failure counts; a complete reply has none."""
        if self.complete:
            return
        if self.failure is None:
            self.failure = failure
            self.wake()
        self._connection.abort()

    def wake(self) -> None:
        """Let the waiting task look again."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


# What may come without a byte of a body: heads, 1xx replies, trailers and chunk extensions together.
_OVERHEAD_BYTES = 64 * 1024
BYTES_A_TURN = 16 * 1024
"""Bytes of one connection that are read in one turn of the loop: a provider that sends as fast as it can keeps no other waiting."""
_STATUSES = range(100, 600)
_VERSIONS = ("1.0", "1.1")
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (204, 304)
# Headers that are one list, in however many lines they come: a `close`, or a coding, in any of them holds.
_LISTS = frozenset({"connection", "transfer-encoding", "content-encoding"})
_FRAMINGS = ("", "identity", "chunked")
_STATUS_LINE = re.compile(rb"[\r\n]*HTTP/")
_HEAD_END = re.compile(rb"\n\r?\n")


def _names_http(heads: bytes, before: int) -> bool:
    """Whether each of the heads, of which so many come `before` the last, names HTTP: the parser takes RTSP and ICE for it."""
    place = 0
    for number in range(before + 1):
        status_line = _STATUS_LINE.match(heads, place)
        if status_line is None:
            return False
        end = _HEAD_END.search(heads, status_line.end()) if number < before else None
        place = 0 if end is None else end.end()
    return True


class HttpConnection(asyncio.Protocol):
    """One connection. `release` is called with it whenever it may serve again, `forget` once it is lost; `served`: it carried a request.

    `heard`: a byte came since the last request. `idle_limit` is how many seconds the server keeps it silent, where it said so.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        release: Callable[[HttpConnection], None],
        forget: Callable[[HttpConnection], object] = lambda _: None,
    ) -> None:
        self.loop = loop
        self.served = False
        self.heard = False
        self.last_heard = 0.0
        self.idle_limit: float | None = None
        self._release = release
        self._forget = forget
        self._transport: asyncio.Transport | None = None
        self._something_waits: Callable[[], bool] | None = None
        # A stream has a piece for each of its events: the parser puts them into a list without a function of Python's in between.
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        self._parser = _llhttp().HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._incoming: Incoming | None = None
        self._overhead = 0
        self._heads = b""
        self._interim_heads = 0
        self._informational = False
        self._keeps = False
        self._surplus = False
        self._paused = False
        self._unread = b""
        self._turn: asyncio.Handle | None = None

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the bytes; None once the connection is lost."""
        return self._transport

    def has_something_to_read(self) -> bool:
        """Whether bytes, or an end, wait to be read, or are about to by the server's `Keep-Alive`; also where it is lost or closing."""
        transport = self._transport
        if self.idle_limit is not None and self.loop.time() - self.last_heard >= self.idle_limit:
            return True
        if transport is None or transport.is_closing() or self._unread:
            return True
        if self._something_waits is None:
            self._something_waits = reading_watch(transport.get_extra_info("socket"))
        return self._something_waits()

    def send(self, head: bytes, body: bytes) -> Incoming:
        """Write a request and return its reply, of which nothing has come yet."""
        incoming = self._incoming = Incoming(self)
        self.heard = False
        self._overhead = self._interim_heads = 0
        self._heads = b""
        if self._transport is None:
            incoming.fail(Disconnected())
        else:
            self._transport.writelines((head, body) if body else (head,))
        return incoming

    def abort(self) -> None:
        """Hang up at once: what was not sent stays unsent, and TLS says no farewell."""
        self._keeps = False
        if self._transport is not None:
            # A loop that was closed meanwhile takes no more callbacks.
            with suppress(RuntimeError):
                self._transport.abort()

    def pause(self) -> None:
        """Read no more for now."""
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            if not self._unread:
                self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused:
            self._paused = False
            if self._unread:
                self._read_on_later()
            elif self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if len(data) <= BYTES_A_TURN and not self._unread:
            self._read(data)
            return
        if not self._unread and not self._paused and self._transport is not None:
            self._transport.pause_reading()
        self._unread += data
        if self._turn is None:
            self._read_turn()

    def _read_turn(self) -> None:
        """Read what one turn may read of the bytes that came, and the rest in the next turns; then more may come."""
        self._turn = None
        if self._incoming is not None and self._incoming.failure is not None:
            self._unread = b""
        if self._paused or not self._unread:
            return
        data, self._unread = self._unread[:BYTES_A_TURN], self._unread[BYTES_A_TURN:]
        self._read(data)
        if self._unread:
            self._read_on_later()
        elif not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _read_on_later(self) -> None:
        if self._turn is None:
            self._turn = self.loop.call_soon(self._read_turn)

    def _read(self, data: bytes) -> None:
        self.heard = True
        self.last_heard = self.loop.time()
        incoming = self._incoming
        if incoming is None:
            # There is no request for it.
            self.abort()
            return
        self._overhead += len(data)
        was_headed = incoming.headed
        if not was_headed:
            self._heads += data
        try:
            try:
                self._parser.feed_data(data)
            finally:
                if self._pieces:
                    self._take_pieces()
        except _llhttp().HttpParserUpgrade:
            incoming.fail(NotHttp("it switches protocols unasked"))
        except _llhttp().HttpParserError as problem:
            incoming.fail(NotHttp(str(problem)))
        else:
            if self._overhead > _OVERHEAD_BYTES and not incoming.complete:
                incoming.fail(NotHttp(f"got more than {_OVERHEAD_BYTES} bytes without a body"))
        if incoming.complete or incoming.headed is not was_headed:
            incoming.wake()
        if incoming.complete:
            self._end(incoming)

    def connection_lost(self, failure: Exception | None) -> None:
        if self._incoming is not None and self._incoming.failure is None and self._unread:
            # What came before the end is part of the reply.
            rest, self._unread = self._unread, b""
            self._read(rest)
        self._transport = self._something_waits = None
        self._forget(self)
        incoming, self._incoming = self._incoming, None
        if incoming is None or incoming.complete:
            return
        if incoming.headed and incoming.until_close and failure is None and incoming.failure is None:
            incoming.complete = True
            incoming.wake()
            return
        lost = Disconnected()
        lost.__cause__ = failure
        incoming.fail(lost)

    # What the parser calls.

    def on_message_begin(self) -> None:
        incoming = self._incoming
        if incoming is None or incoming.complete:
            self._surplus = True
        elif incoming.headers:
            incoming.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._incoming
        # Trailers come after the head, and are not read.
        if incoming is not None and not incoming.headed and not self._surplus:
            headers = incoming.headers
            text = value.strip(b" \t").decode("utf-8", "surrogateescape")
            # The parser takes a space behind some names, and leaves it there.
            key = name.rstrip(b" ").decode("utf-8", "surrogateescape").lower()
            if key in headers and key in _LISTS:
                text = f"{headers[key]}, {text}"
            headers[key] = text

    def on_headers_complete(self) -> None:
        incoming, status = self._incoming, self._parser.get_status_code()
        if incoming is None or self._surplus or incoming.failure is not None:
            return
        version, headers, heads = self._parser.get_http_version(), incoming.headers, self._heads
        framing = headers.get("transfer-encoding")
        self._informational = 100 <= status < 200
        wrong = ""
        if status not in _STATUSES:
            wrong = f"its status is {status:03}"
        elif version not in _VERSIONS:
            wrong = f"it names HTTP/{version}"
        elif framing is not None and framing.lower() not in _FRAMINGS:
            wrong = "its transfer-encoding is not chunked"
        elif b"\0" in heads and any("\0" in value for value in headers.values()):
            wrong = "a header holds a zero byte"
        elif (
            not self._informational
            and (self._interim_heads or not heads.startswith(b"HTTP/"))
            and not _names_http(heads, self._interim_heads)
        ):
            wrong = "it names another protocol than HTTP"
        if wrong:
            incoming.fail(NotHttp(wrong))
            return
        if self._informational:
            self._interim_heads += 1
            if status == _SWITCHING_PROTOCOLS:
                incoming.fail(NotHttp("it switches protocols unasked"))
            return
        incoming.status = status
        connection = headers.get("connection", "").lower()
        self._keeps = "keep-alive" in connection if version == "1.0" else "close" not in connection
        framed = "content-length" in headers or (framing is not None and framing.lower() == "chunked")
        incoming.until_close = not framed and status not in _WITHOUT_BODY
        if "keep-alive" in headers and (limit := idle_limit(headers["keep-alive"])) is not None:
            self.idle_limit = limit
        incoming.headed = True
        self._heads = b""

    def on_message_complete(self) -> None:
        if self._pieces:
            self._take_pieces()
        incoming = self._incoming
        if incoming is None or self._informational or self._surplus:
            return
        if incoming.failure is None:
            incoming.complete = True

    def _take_pieces(self) -> None:
        """Give the reply what the parser found of its body."""
        pieces, incoming = self._pieces, self._incoming
        self._overhead = 0
        if incoming is not None and incoming.failure is None and not self._surplus:
            incoming.add(pieces)
        pieces.clear()

    def _end(self, incoming: Incoming) -> None:
        """Let a connection serve again whose reply is complete, unless it is to be closed or its request is still being sent."""
        self._incoming = None
        transport = self._transport
        if transport is None:
            return
        unsent = bool(transport.get_write_buffer_size())
        if not self._keeps or incoming.until_close or self._surplus or unsent or self._unread or transport.is_closing():
            self.abort()
            return
        if self._paused:
            self.resume()
        self._release(self)


OutOfTime = Callable[[], BardoError]
"""Makes the error of a call whose time is over."""
# Timers of event loops count milliseconds.
_TICK_SECONDS = 0.001


class FirstByteDeadlines:
    """The replies of one transport whose head has not come."""

    def __init__(self) -> None:
        self._waiting: dict[Incoming, tuple[float, OutOfTime]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    def add(self, incoming: Incoming, until: float, out_of_time: OutOfTime) -> None:
        """Fail a reply with the error that `out_of_time` makes where it is still here at `until`, by the loop's clock."""
        self._waiting[incoming] = until, out_of_time
        if until < self._alarm_at:
            self._set_alarm(until)

    def remove(self, incoming: Incoming) -> None:
        """Wait no longer for a reply."""
        self._waiting.pop(incoming, None)

    def close(self) -> None:
        """Look no more."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _set_alarm(self, when: float) -> None:
        self.close()
        self._alarm_at = when
        self._alarm = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        self._alarm, self._alarm_at = None, math.inf
        now = asyncio.get_running_loop().time() + _TICK_SECONDS
        for incoming, (until, out_of_time) in list(self._waiting.items()):
            if until <= now:
                del self._waiting[incoming]
                incoming.fail(out_of_time())
        if self._waiting:
            self._set_alarm(min(until for until, _ in self._waiting.values()))


_HEAD_BYTES = 64 * 1024
_WORD_CHARACTERS = 200


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
    """A proxy's answer to CONNECT. `status` is done with the head of the reply; the body of a refusal is not read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.status: asyncio.Future[tuple[int, str]] = loop.create_future()
        self._parser = _llhttp().HttpResponseParser(self)
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
        except _llhttp().HttpParserUpgrade:
            self._fail(NotHttp("it switches protocols unasked"))
        except _llhttp().HttpParserError as problem:
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
        if status not in _STATUSES or self._parser.get_http_version() not in _VERSIONS:
            self._fail(NotHttp("its status or version is none"))
        elif status >= 200 and not self.status.done():
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
            # Some proxies quote what they were asked.
            secrets = secrets_of(() if address.proxy is None else address.proxy.secrets)
            raise ProxyRefused(status, printable(secrets.in_text(word))[:_WORD_CHARACTERS])
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
