"""One request on a connection and its reply: uvicorn's, which knows when its client leaves, and sends a whole reply at once.

Requests out of the ordinary are answered here: before they have arrived, of an older HTTP, or with a wish for another protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import lru_cache
from operator import add
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from bardo.adapters.config.gateway import ServerLimits

Message = MutableMapping[str, Any]
FIRST_HEADERS = "bardo.headers"
"""Where a request's scope holds its headers by their names, the first of each."""
Pairs = list[tuple[bytes, bytes]]
# Copying more takes as long as a second system call.
_MOST_JOINED = 64 * 1024
_WITHOUT_BODY = (204, 304)
_OK = 200
_LAST_CHUNK = b"0\r\n\r\n"


class _NobodyWaits(asyncio.Event):
    """The event of all requests for whose next message nobody waits."""

    def set(self) -> None:
        """Wake nobody."""


NOBODY_WAITS = _NobodyWaits()


class RequestCycle(RequestResponseCycle):
    """The ASGI side of one request. `send` holds the head of a reply that announces its length until the next message is there.

    Whatever does not hold all of its body in that message, and whatever ends its connection, goes through uvicorn's own `send`.
    """

    _head: Message | None = None
    held: HeldWrites | None = None
    """What holds the beginning of a stream until the event loop's next turn."""
    _when_gone: Callable[[], object] | None = None
    _streams = False
    _body_taken = False

    def add_body(self, piece: bytes) -> None:
        """Take a piece of the request's body."""
        if not self.response_complete:
            self.body += piece
            if len(self.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            self.message_event.set()

    def end_body(self) -> None:
        """Note that the body has wholly arrived."""
        if not self.response_complete:
            self.more_body = False
            self.message_event.set()

    def take_body(self) -> bytes | None:
        """Return the whole body without ASGI's messages; None where not all of it is here, or part of it was taken already."""
        if self.more_body or self._body_taken or self.disconnected or self.response_complete:
            return None
        self._body_taken = True
        body, self.body = self.body, bytearray()
        return bytes(body)

    async def receive(self) -> Any:
        """Return the next ASGI message."""
        if self.message_event is NOBODY_WAITS:
            self.message_event = asyncio.Event()
            if self.body or not (self.more_body or self._body_taken):
                self.message_event.set()
        self._body_taken = True
        return await super().receive()

    @property
    def watched(self) -> bool:
        """Whether somebody is told when the client leaves."""
        return self._when_gone is not None

    def watch(self, when_gone: Callable[[], object] | None) -> None:
        """Have `when_gone` called, once, when the client leaves before its reply is complete; None for nobody any more."""
        self._when_gone = when_gone
        if when_gone is not None:
            # A connection that is not read does not tell that it has ended.
            if self.flow.read_paused:
                self.flow.resume_reading()
            if self.disconnected:
                self.lose()

    def lose(self) -> None:
        """Note that the client has left."""
        self.disconnected = True
        self.message_event.set()
        when_gone, self._when_gone = self._when_gone, None
        if when_gone is not None:
            when_gone()

    def release_body(self) -> None:
        """Count no longer what was read of the request's body: it is not in memory any more."""
        release = getattr(getattr(self.on_response, "__self__", None), "release_body", None)
        if release is not None:
            release()

    def count_body(self, size: int) -> None:
        """Count `size` more bytes of the request's body, to its reply's end: it was unpacked. Raises Overloaded where all are too many."""
        count = getattr(getattr(self.on_response, "__self__", None), "count_body", None)
        if count is not None:
            count(size)

    async def send(self, message: Message) -> None:  # type: ignore[override]
        """Take one ASGI message."""
        head = self._head
        if message["type"] == "http.response.start" and self._announces_length(message):
            # A second head takes the place of one that was held: uvicorn's own error, where the application failed between the two.
            self._head = message
            return
        self._head = None
        if head is None:
            if self.held is not None and not message.get("more_body"):
                self.held.ends = True
            await super().send(message)  # type: ignore[arg-type]
        elif not self._send_joined(head, message):
            await super().send(head)  # type: ignore[arg-type]
            await super().send(message)  # type: ignore[arg-type]

    def send_whole(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> bool:
        """Send a whole reply without ASGI's messages, and return whether that was possible.

        `headers` are those of the reply, the length of its body among them. What is sent is what `send` would send of the same.
        """
        if self.response_started or self._head is not None or not self._takes_whole(status):
            return False
        lines = _lines(headers)
        if lines is None:
            return False
        self._write(self._headed(status, lines), body)
        return True

    def begin_stream(self, headers: Sequence[tuple[str, str]]) -> bool:
        """Begin a reply of unknown length without ASGI's messages, and return whether that was possible.

        What is sent is what `send` would send of the same. It waits for the event loop's next turn, or for what comes until then: the event
        loop sends each write at once, and a short stream would take one system call for its head, one for its text and one for its end.
        """
        if self.response_started or self._head is not None or self.chunked_encoding is not None:
            return False
        lines = _lines(headers) if self._takes_whole(_OK) else None
        if lines is None:
            return False
        self.response_started = self.chunked_encoding = self._streams = True
        self.waiting_for_100_continue = False
        head = self._headed(_OK, (*lines, "transfer-encoding: chunked"))
        self.held = HeldWrites(self, head)
        self.transport = self.held  # type: ignore[assignment]
        return True

    def takes_piece(self) -> bool:
        """Whether a stream has begun, and `send_piece` sends of it without waiting."""
        return not (not self._streams or self.response_complete or self.disconnected or self.flow.write_paused)

    def send_piece(self, piece: bytes) -> None:
        """Send a piece of a stream, which must not be empty, without ASGI's messages, where `takes_piece` says so."""
        self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end_stream(self, piece: bytes) -> bool:
        """Send the last piece of a stream, which may be empty, without ASGI's messages, and return whether that was possible."""
        if not self.keep_alive or not self.takes_piece():
            return False
        if self.held is not None:
            self.held.ends = True
        self.transport.write(b"%x\r\n%b\r\n%b" % (len(piece), piece, _LAST_CHUNK) if piece else _LAST_CHUNK)
        self._end_response()
        return True

    def _headed(self, status: int, lines: Sequence[str]) -> bytes:
        own = _default_lines(tuple(self.default_headers))
        return b"%b%b%b\r\n\r\n" % (STATUS_LINE[status], own, "\r\n".join(lines).encode("ascii"))

    def _announces_length(self, head: Message) -> bool:
        return not self.response_started and any(name == b"content-length" for name, _ in head["headers"])

    def _takes_whole(self, status: int) -> bool:
        """Whether head and body may be one write, and the connection stays open behind them."""
        if self.disconnected or self.flow.write_paused or not self.keep_alive or self.access_log:
            return False
        return self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY

    def _send_joined(self, head: Message, message: Message) -> bool:
        """Send a whole reply, and return whether that was possible."""
        if message.get("more_body") or not self._takes_whole(head["status"]):
            return False
        body = message.get("body", b"")
        written = _written(head["status"], self.default_headers + head["headers"], len(body))
        if written is None:
            return False
        self._write(written, body)
        return True

    def _write(self, head: bytes, body: bytes) -> None:
        self.response_started = True
        self.waiting_for_100_continue = self.chunked_encoding = False
        if len(body) > _MOST_JOINED:
            self.transport.writelines((head, body))
        else:
            self.transport.write(head + body)
        self._end_response()

    def _end_response(self) -> None:
        self.response_complete = True
        self.message_event.set()
        self.on_response()


class HeldWrites:
    """Takes the place of a reply's transport until the event loop's next turn, and sends in one write what was written by then."""

    def __init__(self, cycle: RequestCycle, head: bytes) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._held = [head]
        self.ends = False
        """Whether what is written next is the reply's end, behind which the connection may be closed, or refuse what follows."""
        self.is_closing = cycle.transport.is_closing
        asyncio.get_running_loop().call_soon(self.flush)

    def write(self, data: bytes) -> None:
        """Hold what is written; more than is worth copying is sent at once, and so is the end."""
        self._held.append(data)
        if self.ends or len(data) > _MOST_JOINED:
            self.flush()

    def close(self) -> None:
        """Send what is held, and close the connection."""
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        """Send what is held. What is written from now on is not held."""
        held, self._held = self._held, []
        if self._cycle.held is self:
            self._cycle.held, self._cycle.transport = None, self._transport
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))


def cycle_of(call: object) -> RequestCycle | None:
    """Return the request whose ASGI `send` or `receive` this is; None where another server gave it, or another function wraps it."""
    owner = getattr(call, "__self__", None)
    return owner if type(owner) is RequestCycle else None


def _written(status: int, headers: Pairs, length: int) -> bytes | None:
    """Return the head of a reply with a body of `length` bytes; None where a header speaks of something else, or is not allowed."""
    announced = b"%d" % length
    parts = [STATUS_LINE[status]]
    for name, value in headers:
        label = _label(name)
        if label is None or (label == b"content-length: " and value != announced):
            return None
        parts += (label, value, b"\r\n")
    parts.append(b"\r\n")
    return None if HEADER_VALUE_RE.search(b"".join([value for _, value in headers])) else b"".join(parts)


@lru_cache(maxsize=512)
def _label(name: bytes) -> bytes | None:
    """Return what stands before the value of a header; None for one that says how the connection goes on, or that HTTP does not allow."""
    lowered = name.lower()
    if lowered in (b"connection", b"transfer-encoding") or HEADER_RE.search(name):
        return None
    return lowered + b": "


@lru_cache(maxsize=16)
def _default_lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Return the lines that the server adds to each reply; the date among them is a new one each second."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


def _lines(headers: Sequence[tuple[str, str]]) -> list[str] | None:
    """Return the lines of headers of bardo's own; None where a value is not printable ASCII."""
    names, values = zip(*headers, strict=True)
    written = "".join(values)
    return list(map(add, map(_name, names), values)) if written.isascii() and written.isprintable() else None


@lru_cache(maxsize=512)
def _name(name: str) -> str:
    """Return what stands before the value of a header of bardo's own."""
    return f"{name.lower()}: "


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
