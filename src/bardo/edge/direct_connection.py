"""One HTTP/1.1 connection to a provider: requests are written to it, and llhttp parses the replies that come back.

The parser is as lenient as aiohttp's towards servers that end lines without a carriage return, and no more: two lengths for one body, or a
length beside chunks, are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from bardo.edge.direct_incoming import Disconnected, Incoming, NotHttp
from bardo.edge.http_sockets import idle_limit, reading_watch

# What may come without a byte of a body: heads, 1xx replies, trailers and chunk extensions together.
_OVERHEAD_BYTES = 64 * 1024
BYTES_A_TURN = 16 * 1024
"""Bytes of one connection that are read in one turn of the loop: a provider that sends as fast as it can keeps nobody else waiting."""
_STATUSES = range(100, 600)
_VERSIONS = ("1.0", "1.1")
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (204, 304)


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
        self._something_waits: Callable[[], bool] | None = None
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
        self._unread = b""
        self._turn: asyncio.Handle | None = None

    @property
    def transport(self) -> asyncio.Transport | None:
        """What carries the bytes; None once the connection is lost."""
        return self._transport

    def has_something_to_read(self) -> bool:
        """Whether bytes, or an end, wait to be read; also where the connection is lost or closing."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._unread:
            return True
        if self._something_waits is None:
            self._something_waits = reading_watch(transport.get_extra_info("socket"))
        return self._something_waits()

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
            # Nobody asked for it.
            self.abort()
            return
        self._overhead += len(data)
        try:
            try:
                self._parser.feed_data(data)
            finally:
                if self._pieces:
                    self._take_pieces()
        except HttpParserUpgrade:
            incoming.fail(NotHttp("it switches protocols unasked"))
        except HttpParserError as problem:
            incoming.fail(NotHttp(str(problem)))
        else:
            if self._overhead > _OVERHEAD_BYTES and not incoming.complete:
                incoming.fail(NotHttp(f"got more than {_OVERHEAD_BYTES} bytes without a body"))
        if incoming.complete:
            incoming.wake()
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
        # Trailers come after the head, and nobody reads them.
        if incoming is not None and not incoming.headed and not self._surplus:
            text = value.strip(b" \t").decode("utf-8", "surrogateescape")
            key = name.decode("utf-8", "surrogateescape").lower()
            if key == "connection" and key in incoming.headers:
                # One list, in however many lines it comes: a `close` in any of them holds.
                text = f"{incoming.headers[key]}, {text}"
            incoming.headers[key] = text

    def on_headers_complete(self) -> None:
        incoming, status = self._incoming, self._parser.get_status_code()
        if incoming is None or self._surplus:
            return
        version = self._parser.get_http_version()
        if status not in _STATUSES or version not in _VERSIONS:
            what = f"its status is {status:03}" if status not in _STATUSES else f"it names HTTP/{version}"
            incoming.fail(NotHttp(what))
            return
        self._informational = 100 <= status < 200
        if self._informational:
            if status == _SWITCHING_PROTOCOLS:
                incoming.fail(NotHttp("it switches protocols unasked"))
            return
        incoming.status, headers = status, incoming.headers
        connection = headers.get("connection", "").lower()
        self._keeps = "keep-alive" in connection if version == "1.0" else "close" not in connection
        framed = "content-length" in headers or "chunked" in headers.get("transfer-encoding", "").lower()
        incoming.until_close = not framed and status not in _WITHOUT_BODY
        if "keep-alive" in headers and (limit := idle_limit(headers["keep-alive"])) is not None:
            self.idle_limit = limit
        incoming.headed = True
        incoming.wake()

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
        pieces = self._pieces
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
        if not self._keeps or incoming.until_close or self._surplus or unsent or self._unread or transport.is_closing():
            self.abort()
            return
        self.resume()
        self._release(self)
