"""One HTTP/1.1 connection to a provider: requests are written to it, and llhttp parses the replies that come back.

The parser is as lenient as aiohttp's towards servers that end lines without a carriage return, and no more: two lengths for one body, or a
length beside chunks, are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from bardo.edge.http_sockets import idle_limit
from bardo.values.errors import InternalError

# What may come without a byte of a body: heads, 1xx replies, trailers and chunk extensions together.
_OVERHEAD_BYTES = 64 * 1024
# Reading pauses above this much that nobody took yet, which slows the provider down.
_HIGH_WATER = 128 * 1024
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (204, 304)


class Disconnected(Exception):
    """The connection ended before the reply did; the cause, where there was one, is chained."""


class NotHttp(Exception):
    """What came is no HTTP/1.1 reply, in the parser's words."""


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
        "offer",
        "offered_at",
        "status",
        "until_close",
    )

    def __init__(self, connection: DirectConnection) -> None:
        self._connection = connection
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
        """Is asked whether it takes a piece that comes while a task waits for it: one that it takes is not held, and nobody is woken."""
        self.offered_at = 0.0
        """When it took the last one, by the loop's clock."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of its connection."""
        return self._connection.loop

    def wait(self) -> asyncio.Future[None]:
        """Return what is done once something new is known: the head, more of the body, its end, or a failure."""
        self._waiter = waiter = self._connection.loop.create_future()
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
        self.wake()

    def _offered(self, piece: bytes) -> bool:
        """Offer a piece, unless something is held before it or nobody waits. Return whether it was taken."""
        waiter, offer = self._waiter, self.offer
        if waiter is None or offer is None or self._held or waiter.done():
            return False
        try:
            taken = offer(piece)
        except Exception as problem:  # noqa: BLE001 - the parser calls this: whoever reads the reply is to get the problem
            self.fail(InternalError(f"a piece of a reply could not be passed on: {type(problem).__name__}"))
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


class DirectConnection(asyncio.Protocol):
    """One connection. `release` is called with it whenever it may serve again, `forget` once it is lost; `served`: it carried a request.

    `heard`: a byte came since the last request. `idle_limit` is how many seconds the server keeps it silent, where it said so.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        release: Callable[[DirectConnection], None],
        forget: Callable[[DirectConnection], object] = lambda _: None,
    ) -> None:
        self.loop = loop
        self.served = False
        self.heard = False
        self.last_heard = 0.0
        self.idle_limit: float | None = None
        self._release = release
        self._forget = forget
        self._transport: asyncio.Transport | None = None
        # A stream has a piece for each of its events: the parser puts them into a list without a function of Python's in between.
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._incoming: Incoming | None = None
        self._overhead = 0
        self._informational = False
        self._keeps = False
        self._surplus = False
        self._paused = False

    @property
    def transport(self) -> asyncio.Transport | None:
        """What carries the bytes; None once the connection is lost."""
        return self._transport

    @property
    def socket(self) -> Any:
        """The socket; None once the connection is lost or closing."""
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport.get_extra_info("socket")

    @property
    def expired(self) -> bool:
        """Whether the server has closed this connection, or is about to, by its own `Keep-Alive`."""
        return self.idle_limit is not None and self.loop.time() - self.last_heard >= self.idle_limit

    def send(self, head: bytes, body: bytes) -> Incoming:
        """Write a request and return its reply, of which nothing has come yet."""
        incoming = self._incoming = Incoming(self)
        self.heard = False
        self._overhead = 0
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
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused:
            self._paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.heard = True
        self.last_heard = self.loop.time()
        incoming = self._incoming
        if incoming is None:
            # Nobody asked for it.
            self.abort()
            return
        self._overhead += len(data)
        try:
            try:
                self._parser.feed_data(data)
            finally:
                self._take_pieces()
        except HttpParserUpgrade:
            incoming.fail(NotHttp("it switches protocols unasked"))
        except HttpParserError as problem:
            incoming.fail(NotHttp(str(problem)))
        else:
            if self._overhead > _OVERHEAD_BYTES and not incoming.complete:
                incoming.fail(NotHttp(f"got more than {_OVERHEAD_BYTES} bytes without a body"))
        if incoming.complete:
            self._end(incoming)

    def connection_lost(self, failure: Exception | None) -> None:
        self._transport = None
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
        # Trailers come after the head, and nobody reads them.
        if incoming is not None and not incoming.headed and not self._surplus:
            text = value.strip(b" \t").decode("utf-8", "surrogateescape")
            incoming.headers[name.decode("utf-8", "surrogateescape").lower()] = text

    def on_headers_complete(self) -> None:
        incoming, status = self._incoming, self._parser.get_status_code()
        if incoming is None or self._surplus:
            return
        self._informational = 100 <= status < 200
        if self._informational:
            if status == _SWITCHING_PROTOCOLS:
                incoming.fail(NotHttp("it switches protocols unasked"))
            return
        incoming.status, headers = status, incoming.headers
        connection = headers.get("connection", "").lower()
        self._keeps = (
            "keep-alive" in connection if self._parser.get_http_version() == "1.0" else "close" not in connection
        )
        framed = "content-length" in headers or "chunked" in headers.get("transfer-encoding", "").lower()
        incoming.until_close = not framed and status not in _WITHOUT_BODY
        limit = idle_limit(headers.get("keep-alive"))
        if limit is not None:
            self.idle_limit = limit
        incoming.headed = True
        incoming.wake()

    def on_message_complete(self) -> None:
        self._take_pieces()
        incoming = self._incoming
        if incoming is None or self._informational or self._surplus:
            return
        if incoming.failure is None:
            incoming.complete = True
            incoming.wake()

    def _take_pieces(self) -> None:
        """Give the reply what the parser found of its body."""
        pieces = self._pieces
        if not pieces:
            return
        self._overhead = 0
        if self._incoming is not None and not self._surplus:
            self._incoming.add(pieces)
        pieces.clear()

    def _end(self, incoming: Incoming) -> None:
        """Let a connection serve again whose reply is complete, unless it is to be closed or its request is still being sent."""
        self._incoming = None
        transport = self._transport
        if transport is None:
            return
        unsent = bool(transport.get_write_buffer_size())
        if not self._keeps or incoming.until_close or self._surplus or unsent or transport.is_closing():
            self.abort()
            return
        self.resume()
        self._release(self)
