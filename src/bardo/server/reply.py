"""One request on a connection and its reply, which the application sees by ASGI, or without ASGI's messages where that is cheaper.

A whole reply is one write, and so is the beginning of a stream with what is sent of it within one turn of the event loop.
"""

from __future__ import annotations

import asyncio
import http
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from operator import add
from typing import Any

from bardo.adapters.config.gateway import ServerLimits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

FIRST_HEADERS = "bardo.headers"
"""Where a request's scope holds its headers by their names, the first of each."""
SERVER_LOG = "bardo.server"
"""The logger of what is wrong with an application or with a process that serves it."""
STATUS_LINE = {
    status: b"HTTP/1.1 %d %b\r\n" % (status, phrase.encode())
    for status in range(100, 600)
    for phrase in [http.HTTPStatus(status).phrase if status in http.HTTPStatus._value2member_map_ else ""]
}
# Copying more takes as long as a second system call.
_MOST_JOINED = 64 * 1024
# More of a body than this waits in the system until the application has taken what is here.
_MOST_UNREAD = 64 * 1024
_WITHOUT_BODY = (204, 304)
_OK = 200
_LAST_CHUNK = b"0\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_NAME = re.compile(rb'[\x00-\x1f\x7f()<>@,;:\\[\]={} \t"]')
_NO_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_log = logging.getLogger(SERVER_LOG)


class ServerState:
    """What the connections of a server share: the application, its limits, and the header that each reply begins with."""

    def __init__(self, app: Application, app_state: dict[str, Any]) -> None:
        self.app = app
        self.app_state = app_state
        self.limits: ServerLimits = getattr(app, "limits", None) or ServerLimits(app)
        self.connections: set[Channel] = set()
        self.idle: dict[Channel, None] = {}
        """Connections that had a reply, the one that has waited the longest first; the next request may be under way on some."""
        self.own_headers = b""
        self.renew_date()

    def close_an_idle_connection(self) -> bool:
        """Close the connection that has waited the longest for a request, and return whether there was one."""
        while self.idle:
            longest = next(iter(self.idle))
            del self.idle[longest]
            if longest.close_idle():
                self.connections.discard(longest)
                return True
        return False

    def renew_date(self) -> None:
        """Have replies say what time it is now."""
        self.own_headers = f"date: {formatdate(time.time(), usegmt=True)}\r\n".encode()


class Channel(asyncio.Protocol):
    """A connection as its requests see it: where they write, and whether more is read, or taken, at the moment."""

    transport: asyncio.Transport
    read_paused = write_paused = False
    _writable: asyncio.Event | None = None

    def __init__(self, server: ServerState) -> None:
        self.server = server

    def pause_reading(self) -> None:
        """Read no more of the client until `resume_reading`."""
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Note that the client takes what it is sent more slowly than that is written."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Note that the client has taken most of what it was sent, or has left."""
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    async def drain(self) -> None:
        """Wait until `resume_writing`."""
        if self.write_paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            await self._writable.wait()

    def complete(self, cycle: RequestCycle) -> None:
        """Go on behind a reply that is complete."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Close the connection, or let it close behind the replies that are due."""
        raise NotImplementedError

    def close_idle(self) -> bool:
        """Close the connection where it waits for a request of which nothing has come yet, and return whether it did."""
        raise NotImplementedError


class RequestCycle:
    """One request and its reply. A reply that announces its length is written once the first piece of its body is there, in one write."""

    disconnected = False
    more_body = True
    response_started = response_complete = False
    # The request: how much of its body nobody has taken, and how much counts among all that is in memory.
    _unread = _counted = 0
    _body_taken = False
    # Whether `receive` has something to return, and what wakes whoever waits for it.
    _news = False
    _waiting: asyncio.Event | None = None
    _when_gone: Callable[[], object] | None = None
    # The reply: a head whose body has not begun; how much of an announced body is to come, or None if nothing was announced.
    _head: Message | None = None
    _left: int | None = 0
    _chunked = _streams = False
    # What is written at the event loop's next turn, and whether what is written next is the reply's end.
    _held: list[bytes] | None = None
    _ends = False

    def __init__(self, channel: Channel, scope: Scope, *, keep_alive: bool, expects_100_continue: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = expects_100_continue
        self._channel = channel
        self._pieces: list[bytes] = []

    async def run(self, app: Application) -> None:
        """Have the application answer. What it leaves without an end closes the connection."""
        try:
            await app(self.scope, self.receive, self.send)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 - Whatever it is, the client is told that it failed.
            _log.error("the application failed", exc_info=failure)
            if not self.response_complete:
                await self._end_failed()
        else:
            if not (self.response_complete or self.disconnected):
                _log.error("the application has %s", "not ended its reply" if self.response_started else "not answered")
                await self._end_failed()
        finally:
            if self._counted:
                self.release_body()

    async def _end_failed(self) -> None:
        """Answer that the application failed, or close the connection of a reply that has begun."""
        if self.response_started:
            self.flush()
            self._channel.transport.close()
            return
        body = b"Internal Server Error"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    # The request

    def add_body(self, piece: bytes, *, ends: bool) -> None:
        """Take a piece of the request's body, which may be the last. Raises Overloaded where those of all requests are too many."""
        if piece and not self.response_complete:
            size = len(piece)
            self._pieces.append(piece)
            self._unread += size
            self._counted += size
            self._channel.server.limits.count_body(size)
            if self._unread > _MOST_UNREAD:
                self._channel.pause_reading()
        if ends:
            self.more_body = False
        self._news = True
        if self._waiting is not None:
            self._wake()

    def take_body(self) -> bytes | None:
        """Return the whole body without ASGI's messages, or None if not all of it is here, or part of it was taken already."""
        if self.more_body or self._body_taken or self.disconnected or self.response_complete:
            return None
        self._body_taken = True
        self._news = False
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def receive(self) -> Message:
        """Return the next ASGI message."""
        channel = self._channel
        if self.waiting_for_100_continue and not channel.transport.is_closing():
            channel.transport.write(_CONTINUE)
            self.waiting_for_100_continue = False
        self._body_taken = True
        if not (self.disconnected or self.response_complete):
            channel.resume_reading()
            while not self._news:
                if self._waiting is None:
                    self._waiting = asyncio.Event()
                await self._waiting.wait()
            self._news = False
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body = b"".join(self._pieces)
        self._pieces, self._unread = [], 0
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def _wake(self) -> None:
        """Have `receive` look what there is to return."""
        self._news = True
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    @property
    def watched(self) -> bool:
        """Whether somebody is told when the client leaves."""
        return self._when_gone is not None

    def watch(self, when_gone: Callable[[], object] | None) -> None:
        """Have `when_gone` called, once, when the client leaves before its reply is complete; None for nobody any more."""
        self._when_gone = when_gone
        if when_gone is not None:
            # A connection that is not read does not tell that it has ended.
            if self._channel.read_paused:
                self._channel.resume_reading()
            if self.disconnected:
                self.lose()

    def lose(self) -> None:
        """Note that the client has left."""
        self.disconnected = True
        self._wake()
        when_gone, self._when_gone = self._when_gone, None
        if when_gone is not None:
            when_gone()

    def count_body(self, size: int) -> None:
        """Count `size` more bytes of the request's body, to its reply's end. Raises Overloaded where those of all requests are too many."""
        self._counted += size
        self._channel.server.limits.count_body(size)

    def release(self, size: int) -> None:
        """Count `size` bytes no longer that `count_body` has counted."""
        self._counted -= size
        self._channel.server.limits.body_bytes -= size

    def release_body(self) -> None:
        """Count no longer what was read of the request's body: it is answered, or was put elsewhere."""
        self._channel.server.limits.body_bytes -= self._counted
        self._counted = 0

    # The reply

    async def send(self, message: Message) -> None:
        """Take one ASGI message."""
        if self._channel.write_paused and not self.disconnected:
            await self._channel.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if self.response_complete:
            raise RuntimeError(f"the application sent {kind} after its reply was complete")
        if kind == "http.response.start" and not self.response_started:
            # A second head takes the place of one that was held, where the application failed between the two.
            self._head = message
            if not any(name.lower() == b"content-length" for name, _ in message.get("headers", ())):
                self._write(self._take_head())
            return
        if kind != "http.response.body" or not (self.response_started or self._head):
            raise RuntimeError(f"the application sent {kind} in place of another message")
        head = b"" if self._head is None else self._take_head()
        self._send_body(head, message.get("body", b""), ends=not message.get("more_body", False))

    def _send_body(self, head: bytes, body: bytes, *, ends: bool) -> None:
        """Write a piece of the body, and the head where it is held. Raises RuntimeError where the length is not the announced one."""
        problem = ""
        if self.scope["method"] == "HEAD":
            body, self._left = b"", 0
        elif self._chunked:
            piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = piece + _LAST_CHUNK if ends else piece
        elif self._left is not None:
            if len(body) > self._left:
                body, problem = b"", "longer"
            else:
                self._left -= len(body)
                problem = "shorter" if ends and self._left else ""
        self._ends = ends
        if head and len(body) > _MOST_JOINED and self._held is None:
            self._channel.transport.writelines((head, body))
        elif head or body:
            self._write(head + body)
        if problem:
            raise RuntimeError(f"the reply is {problem} than its content-length")
        if ends:
            self.flush()
            self._end()

    def _take_head(self) -> bytes:
        """Return the bytes of the head that is held, and note what they say of the body and the connection. Raises RuntimeError."""
        message, self._head = self._head, None
        assert message is not None
        self.response_started = True
        self.waiting_for_100_continue = False
        if self.more_body:
            # The rest of the request would have to be read before the next one.
            self.keep_alive = False
        status, closes, length, chunked = message["status"], False, None, False
        lines = [STATUS_LINE[status], self._channel.server.own_headers]
        for name, value in message.get("headers", ()):
            if _NO_NAME.search(name) or _NO_VALUE.search(value):
                raise RuntimeError("the name or the value of a header is not valid")
            name = name.lower()
            if name == b"content-length" and length is None and not chunked:
                length = int(value)
            elif name == b"transfer-encoding" and value.lower() == b"chunked":
                length, chunked = 0, True
            elif name == b"connection" and b"close" in [token.strip() for token in value.lower().split(b",")]:
                self.keep_alive, closes = False, True
            lines += (name, b": ", value, b"\r\n")
        if not self.keep_alive and not closes:
            lines.append(b"connection: close\r\n")
        if length is None and self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY:
            # HTTP/1.0 has no chunks: the end of the connection is that of the reply.
            if self.scope.get("http_version") != "1.0":
                chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
        elif length is None:
            length = 0
        self._left, self._chunked = length, chunked
        lines.append(b"\r\n")
        return b"".join(lines)

    def send_whole(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> bool:
        """Send a whole reply without ASGI's messages, and return whether that was possible.

        `headers` are those of the reply, the length of its body among them. What is sent is what `send` would send of the same.
        """
        if self.response_started or not self._takes_whole(status):
            return False
        lines = _lines(headers)
        if lines is None:
            return False
        self.response_started = True
        self.waiting_for_100_continue = False
        head = self._headed(status, lines)
        if len(body) > _MOST_JOINED:
            self._channel.transport.writelines((head, body))
        else:
            self._channel.transport.write(head + body)
        self._end()
        return True

    def begin_stream(self, headers: Sequence[tuple[str, str]]) -> bool:
        """Begin a reply of unknown length without ASGI's messages, and return whether that was possible.

        What is sent is what `send` would send of the same. It waits for the event loop's next turn, or for what comes until then: the event
        loop sends each write at once, and a short stream would take one system call for its head, one for its text and one for its end.
        """
        if self.response_started or not self._takes_whole(_OK):
            return False
        lines = _lines(headers)
        if lines is None:
            return False
        self.response_started = self._chunked = self._streams = True
        self.waiting_for_100_continue = False
        self._held = [self._headed(_OK, (*lines, "transfer-encoding: chunked"))]
        asyncio.get_running_loop().call_soon(self.flush)
        return True

    def takes_piece(self) -> bool:
        """Whether a stream has begun, and `send_piece` sends of it without waiting."""
        return self._streams and not (self.response_complete or self.disconnected or self._channel.write_paused)

    def send_piece(self, piece: bytes) -> None:
        """Send a piece of a stream, which must not be empty, without ASGI's messages, where `takes_piece` says so."""
        self._write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end_stream(self, piece: bytes) -> bool:
        """Send the last piece of a stream, which may be empty, without ASGI's messages, and return whether that was possible."""
        if not self.keep_alive or not self.takes_piece():
            return False
        self._ends = True
        self._write(b"%x\r\n%b\r\n%b" % (len(piece), piece, _LAST_CHUNK) if piece else _LAST_CHUNK)
        self._end()
        return True

    def flush(self) -> None:
        """Send what waits for the event loop's next turn. What is written from now on does not wait."""
        held, self._held = self._held, None
        if held and not self._channel.transport.is_closing():
            self._channel.transport.write(b"".join(held))

    def _headed(self, status: int, lines: Sequence[str]) -> bytes:
        own = self._channel.server.own_headers
        return b"%b%b%b\r\n\r\n" % (STATUS_LINE[status], own, "\r\n".join(lines).encode("ascii"))

    def _takes_whole(self, status: int) -> bool:
        """Whether nothing was sent of this reply, its body is of its status and method, and the connection stays open behind it."""
        if self.disconnected or self.more_body or not self.keep_alive or self._channel.write_paused or self._head:
            return False
        return self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY

    def _write(self, data: bytes) -> None:
        if self._held is None:
            self._channel.transport.write(data)
            return
        self._held.append(data)
        if self._ends or len(data) > _MOST_JOINED:
            self.flush()

    def _end(self) -> None:
        self.response_complete = True
        if self._waiting is not None:
            self._wake()
        self._channel.server.limits.body_bytes -= self._counted
        self._counted = 0
        self._channel.complete(self)


def cycle_of(call: object) -> RequestCycle | None:
    """Return the request whose ASGI `send` or `receive` this is, or None if another server gave it, or another function wraps it."""
    owner = getattr(call, "__self__", None)
    return owner if type(owner) is RequestCycle else None


def _lines(headers: Sequence[tuple[str, str]]) -> list[str] | None:
    """Return the lines of headers of bardo's own, or None if a value is not printable ASCII."""
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
    length: bytes = cycle.scope[FIRST_HEADERS].get(b"content-length", b"")
    longest = min(_AWAITED_BYTES, limits.max_body_bytes())
    return length.isdigit() and int(length) <= longest and not cycle.waiting_for_100_continue
