"""The HTTP/1.1 protocol of one connection: its requests, within bounds, one after the other, and refusals in the client's dialect.

httptools parses heads; where a head and a body end is known before it is asked (`framing.py`). Each head has a parser of its own, so that
nothing of a request is left for the next one.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools

from bardo.adapters.chance import CHANCE
from bardo.adapters.config.gateway import (
    SURPLUS_CONNECTIONS,
    Headers,
    too_large_headers,
    too_many_connections,
    too_many_headers,
    too_many_pipelined,
)
from bardo.server.framing import REQUEST_LINE, ChunkedBody, coding_problem, head_problem, invalid_request
from bardo.server.reply import FIRST_HEADERS, STATUS_LINE, Channel, RequestCycle, ServerState, is_awaited
from bardo.values.errors import BardoError, InvalidRequest, RequestTimeout

if TYPE_CHECKING:
    from bardo.server.websocket import WebSocketCycle

# After an error the client may go on sending this much, or twice as much as a body may have, as long as something comes; then the
# connection is closed. Many clients read nothing before they have sent all, and see a broken pipe where they are cut off.
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 4 * 1024 * 1024
_END_OF_HEAD = b"\r\n\r\n"

# Which part of a request has begun to arrive and is not complete.
NOTHING, HEAD, BODY = range(3)


class Connection(Channel):
    """One connection of a server. Its requests are answered one after the other, in their order."""

    # What most connections never change is of the class: an object of more than thirty attributes has a dictionary of its own.
    _surplus = False
    # The address that was parsed last: its path, the path as it came, and its query.
    _parsed_target = b""
    _paths = "", b"", b""
    _arriving = NOTHING
    # Ends a request that does not arrive in time, or a connection that was refused.
    _deadline: asyncio.TimerHandle | None = None
    # Closes the connection where no request follows a reply.
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    # The parser of the head that arrives, the target of one that is complete, and whether the parser has seen its end.
    _parser: httptools.HttpRequestParser | None = None
    _target = b""
    _head_parsed = _keep_alive = False
    # The body that arrives: how much of it is to come, or its chunks; and the bytes of reads that brought nothing of it.
    _left = 0
    _chunks: ChunkedBody | None = None
    # The request that came last, the one whose reply is being made, and the one that the application gets once it has arrived.
    _last: RequestCycle | None = None
    _active: RequestCycle | None = None
    _unstarted: RequestCycle | None = None
    # The request for a WebSocket that came last: all that the client sends is given to it.
    _websocket: WebSocketCycle | None = None
    # An error that waits for the replies before it, and how much was read since.
    _refusal: bytes | None = None
    _refused = False
    _discarded = 0
    _discards_until = _discarded_at = 0.0

    def __init__(self, server: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server)
        self.loop = loop
        self._limits = server.limits
        self._bounds = server.limits.bounds
        self._scope_of_connection: dict[str, Any] = {}
        # The head that arrives: its bytes where it comes in pieces, and its headers.
        self._head = bytearray()
        self._headers: Headers = []
        # The requests that wait for the reply that is being made.
        self._waiting: list[RequestCycle] = []

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self.transport = transport  # type: ignore[assignment]
        connections = self.server.connections
        connections.add(self)
        self._scope_of_connection = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "server": _address(transport, "sockname"),
            "client": _address(transport, "peername"),
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "root_path": "",
        }
        surplus = len(connections) - self._limits.max_connections
        if surplus > 0 and self.server.close_an_idle_connection():
            surplus -= 1
        self._surplus = surplus > 0
        if surplus > SURPLUS_CONNECTIONS:
            self.transport.abort()
        else:
            self._set_deadline(self._bounds.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered that its client has left, and forget the others."""
        self.server.connections.discard(self)
        self.server.idle.pop(self, None)
        self._refused = True
        self._clear_deadline()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for cycle in {self._active, self._unstarted, *self._waiting} - {None}:
            assert cycle is not None
            cycle.release_body()
        self._waiting.clear()
        self._unstarted = self._last = self._parser = None
        active, self._active = self._active, None
        if active is not None and not active.response_complete:
            active.lose()
        if self._websocket is not None:
            self._websocket.stop()
        self.resume_writing()

    def shutdown(self) -> None:
        """Close the connection, or let it close behind the replies that are due."""
        if self._unstarted is not None:
            self._start(self._unstarted)
        last = self._waiting[-1] if self._waiting else self._active
        if last is None or last.response_complete:
            self.transport.close()
        else:
            last.keep_alive = False

    def complete(self, cycle: RequestCycle) -> None:
        """Go on behind a reply that is complete."""
        if cycle is self._websocket:
            self.loop.call_soon(self._go_on_without_websocket)
        if not cycle.keep_alive:
            if cycle.more_body:
                self._linger()
            else:
                self._close()
        elif self.transport.is_closing():
            return
        elif self._waiting:
            self.resume_reading()
            self._start(self._waiting.pop(0))
        elif self._refusal is not None:
            self._write_refusal(self._refusal)
        elif not self._refused:
            if self.read_paused:
                self.resume_reading()
            self._idle_since = self.loop.time()
            idle = self.server.idle
            idle.pop(self, None)
            idle[self] = None
            if self._idle_timer is None:
                self._idle_timer = self.loop.call_later(self._bounds.connection_idle_seconds, self._check_idle)

    def _go_on_without_websocket(self) -> None:
        """Read what the client has sent behind a request for a WebSocket that was refused."""
        cycle, self._websocket = self._websocket, None
        if cycle is not None and cycle.early:
            self.data_received(bytes(cycle.early))

    def close_idle(self) -> bool:
        """Close the connection where it waits for a request of which nothing has come yet, and return whether it did."""
        is_busy = self._arriving or self._is_busy() or self._websocket is not None or self._refused
        if is_busy or self.transport.get_write_buffer_size():
            return False
        self.transport.close()
        return True

    def _check_idle(self) -> None:
        """Close a connection on which nothing has happened since a reply: one timer that looks now and then, not one for each reply."""
        self._idle_timer = None
        if self._arriving or self._is_busy():
            return
        rest = self._idle_since + self._bounds.connection_idle_seconds - self.loop.time()
        if rest > 0:
            self._idle_timer = self.loop.call_later(rest, self._check_idle)
        elif not self._refused:
            self._close()

    def eof_received(self) -> None:
        """Close the connection of a client that sends nothing more."""
        if self._deadline is None:
            self._close()

    def _close(self, unsent: int = sys.maxsize) -> None:
        """Close the connection once all is sent, or where its client has taken nothing of that for as long as one may be idle."""
        left = self.transport.get_write_buffer_size()
        if left >= unsent:
            self.transport.abort()
            return
        self.transport.close()
        if left:
            self._deadline = self.loop.call_later(self._bounds.connection_idle_seconds, self._close, left)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends: heads and bodies, of several requests where they come together."""
        if self._refused:
            self._discard(len(data))
            return
        start, size = 0, len(data)
        try:
            while start < size:
                if self._websocket is not None:
                    self._websocket.feed(data[start:])
                    return
                if self._arriving == BODY:
                    start = self._read_body(data, start)
                elif self._last is None or self._last.keep_alive:
                    start = self._read_head(data, start)
                else:
                    # The client, or the reply, has ended the connection.
                    self._discard(size - start)
                    return
        except BardoError as problem:
            self._refuse(problem)
        except httptools.HttpParserError:
            self._refuse(head_problem(self._head, self._headers))
        else:
            if self._arriving:
                self._check_arrival()

    # The head

    def _read_head(self, data: bytes, start: int) -> int:
        """Read a head from `start` on, or as much of it as is here, and return where it was read to. Raises BardoError, HttpParserError."""
        if not self._head:
            end = data.find(_END_OF_HEAD, start) + 4
            if end > 3:
                head = data if end == len(data) and not start else data[start:end]
                self._headers = []
                self._parser = httptools.HttpRequestParser(self)
                self._parse(head)
                self._begin_request(head)
                return end
            if data[start:] == b"\r\n":
                return len(data)  # Some clients end a body with an empty line.
            self._headers = []
            self._parser = httptools.HttpRequestParser(self)
            self._arriving = HEAD
        known = len(self._head)
        self._head += data[start:]
        end = self._head.find(_END_OF_HEAD, max(0, known - 3)) + 4
        if end < 4:
            self._parse(data[start:])
            if self._head_parsed:
                raise invalid_request()
            return len(data)
        del self._head[end:]
        self._parse(data[start : start + end - known])
        head = bytes(self._head)
        self._begin_request(head)
        self._head.clear()
        return start + end - known

    def _parse(self, piece: bytes) -> None:
        """Give a piece of a head to its parser. A wish for another protocol is left to the application. Raises HttpParserError."""
        self._head_parsed = False
        assert self._parser is not None
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            return
        except httptools.HttpParserError:
            self._head = self._head or bytearray(piece)
            raise

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header from the parser."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Note what the parser knows of a head that is complete."""
        assert self._parser is not None
        self._head_parsed = True
        self._keep_alive = self._parser.should_keep_alive()

    def _begin_request(self, head: bytes) -> None:
        """Have the application answer the request whose head is complete, after those before it. Raises BardoError."""
        if self._deadline is not None:
            self._clear_deadline()
        self._parser = None
        bounds, headers = self._bounds, self._headers
        line = REQUEST_LINE.match(head)
        if line is None or not self._head_parsed:
            self._head = self._head or bytearray(head)
            raise head_problem(head, headers)
        method, target, minor = line.groups()
        self._target = target
        if len(headers) > bounds.max_headers:
            raise too_many_headers(bounds.max_headers)
        if len(head) > bounds.max_header_bytes and _size_of_head(target, headers) > bounds.max_header_bytes:
            raise too_large_headers(bounds.max_header_bytes)
        if self._surplus:
            raise too_many_connections(self._limits.max_connections)
        if len(self._waiting) >= bounds.max_pipelined_requests:
            raise too_many_pipelined(bounds.max_pipelined_requests)
        if target != self._parsed_target:
            # The next requests of a connection are most often for the same endpoint.
            self._paths = _paths(target)
            self._parsed_target = target
        version = "1.1" if minor == b"1" else "1.0"
        first = dict(reversed(headers))
        if b"transfer-encoding" in first:
            if problem := coding_problem(headers, version):
                raise problem
            self._chunks = ChunkedBody(bounds.max_header_bytes, bounds.max_headers)
        path, raw_path, query = self._paths
        scope: dict[str, Any] = {
            **self._scope_of_connection,
            "http_version": version,
            "headers": headers,
            FIRST_HEADERS: first,
            "state": self.server.app_state.copy(),
            "method": method.decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
        }
        is_newer = version == "1.1"
        if is_newer and b"upgrade" in first:
            self._websocket = self._websocket_of(scope)
        cycle = self._last = self._websocket or RequestCycle(
            self,
            scope,
            keep_alive=is_newer and self._keep_alive,
            expects_100_continue=is_newer and b"expect" in first and first[b"expect"].lower() == b"100-continue",
        )
        active = self._active
        if active is None or active.response_complete:
            self._unstarted = cycle
        else:
            self._waiting.append(cycle)
            if not active.watched:
                self.pause_reading()
        self._arriving = BODY
        self._target = b""
        self._left = int(first.get(b"content-length", 0))
        if not self._left and self._chunks is None:
            cycle.add_body(b"", ends=True)
            self._end_request(cycle)

    def _websocket_of(self, scope: dict[str, Any]) -> WebSocketCycle | None:
        """Return the request of a WebSocket's handshake; None for any other."""
        fields = scope[FIRST_HEADERS]
        is_asked = scope["method"] == "GET" and b"websocket" in fields[b"upgrade"].lower()
        if not is_asked or self._chunks is not None or int(fields.get(b"content-length", 0)):
            return None
        # Loaded with the first of them: most gateways have none.
        from bardo.server.websocket import WebSocketCycle

        keep_alive, seconds = self._keep_alive, self._bounds.body_seconds
        cycle = WebSocketCycle(self, scope, keep_alive=keep_alive, loop=self.loop, body_seconds=seconds)
        return cycle if cycle.is_handshake() else None

    # The body

    def _read_body(self, data: bytes, start: int) -> int:
        """Read what there is of a body from `start` on, and return where it was read to. Raises BardoError."""
        cycle = self._last
        assert cycle is not None
        if self._chunks is not None:
            piece, end = self._chunks.feed(data, start)
            is_complete = self._chunks.complete
        else:
            end = min(start + self._left, len(data))
            piece = data[start:end] if start or end < len(data) else data
            self._left -= end - start
            is_complete = not self._left
        if piece or is_complete:
            cycle.add_body(piece, ends=is_complete)
        if is_complete:
            self._end_request(cycle)
        return end

    def _end_request(self, cycle: RequestCycle) -> None:
        self._chunks = None
        self._arriving = NOTHING
        if self._unstarted is not None:
            self._start(cycle)
        if self._deadline is not None:
            self._clear_deadline()

    def _start(self, cycle: RequestCycle) -> None:
        self._unstarted = None
        self._active = cycle
        task = self.loop.create_task(cycle.run(self.server.app))
        tasks = self._limits.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # What does not come in time, or is not taken

    def _check_arrival(self) -> None:
        """Bound a request that did not arrive in one piece: its size so far, and from now on its time."""
        bounds = self._bounds
        seconds = bounds.head_seconds
        if self._arriving == BODY:
            seconds = bounds.body_seconds
            if self._unstarted is not None and not is_awaited(self._unstarted, self._limits):
                self._start(self._unstarted)
        elif len(self._headers) > bounds.max_headers:
            self._refuse(too_many_headers(bounds.max_headers))
            return
        elif len(self._head) > bounds.max_header_bytes:
            self._refuse(too_large_headers(bounds.max_header_bytes))
            return
        if self._deadline is None:
            self._set_deadline(seconds)

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._check_time, seconds)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _check_time(self, seconds: float) -> None:
        if self._arriving == NOTHING:
            self.transport.close()
        elif self.read_paused:
            # The client waits for us: for the replies before this one, or for the application to read.
            self._set_deadline(seconds)
        else:
            part = "head" if self._arriving == HEAD else "body"
            message = f"the {part} of the request did not arrive within {seconds:g} s"
            self._refuse(RequestTimeout(message, hint=f"send it faster, or raise gateway.{part}_seconds in bardo.toml"))

    def _refuse(self, problem: BardoError) -> None:
        """Answer a request with an error once the replies before it are complete, and read no more of the connection."""
        reply = self._encode(problem)
        self._refused = True
        self._clear_deadline()
        if self._arriving == BODY:
            self._withdraw()
        if self._is_busy():
            self._refusal = reply
        else:
            self._write_refusal(reply)

    def _withdraw(self) -> None:
        """Take a request that has not wholly arrived from the application, which is told that the client has gone."""
        cycle = self._last
        assert cycle is not None
        if cycle is self._unstarted:
            self._unstarted = None
        elif cycle is not self._active:
            self._waiting.pop()
        elif cycle.response_started:
            self.transport.abort()
            return
        else:
            cycle.lose()
        cycle.release_body()

    def _is_busy(self) -> bool:
        """Whether a reply is being made, which goes before an error."""
        active = self._active
        return active is not None and not active.response_complete and not active.disconnected

    def _encode(self, problem: BardoError) -> bytes:
        if self._arriving == BODY and self._last is not None:
            path, headers = self._last.scope["raw_path"], self._last.scope["headers"]
        else:
            target = self._target or b"".join(self._head.split(None, 2)[1:2])
            path, headers = target.partition(b"?")[0], self._headers
        reply = self._limits.encode_error(path.decode("latin-1"), list(headers), problem)
        request_id = f"req_{CHANCE.getrandbits(96):024x}".encode()
        ids = [(b"x-request-id", request_id), (b"request-id", request_id)]
        own = [*ids, (b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")]
        lines = [b"%b: %b\r\n" % pair for pair in (*reply.headers, *own)]
        return b"".join([STATUS_LINE[reply.status], self.server.own_headers, *lines, b"\r\n", reply.body])

    def _write_refusal(self, reply: bytes) -> None:
        self._refusal = None
        if not self.transport.is_closing():
            self.transport.write(reply)
            self._linger()

    def _linger(self) -> None:
        """Close the sending side, and let the client go on for a short time: a reset would take the answer from it."""
        self._refused = True
        self._discarded = 0
        self._clear_deadline()
        if self.transport.is_closing():
            return
        self.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._discarded_at = self.loop.time()
        self._discards_until = self._discarded_at + max(_LINGER_SECONDS, self._bounds.body_seconds)
        self._deadline = self.loop.call_later(_LINGER_SECONDS, self._end_lingering)

    def _end_lingering(self) -> None:
        """Close the connection, unless its client has sent something just now, and has some time left."""
        rest = min(self._discarded_at + _LINGER_SECONDS, self._discards_until) - self.loop.time()
        if rest <= 0:
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(rest, self._end_lingering)

    def _discard(self, size: int) -> None:
        """Throw away what a client sends after it was refused, or after its last request."""
        self._discarded += size
        self._discarded_at = self.loop.time()
        longest = self._limits.max_body_bytes()
        if self._discarded <= max(_LINGER_BYTES, 0 if longest == sys.maxsize else 2 * longest):
            return
        if self._is_busy():
            self.pause_reading()
        else:
            self.transport.abort()


def _address(transport: asyncio.BaseTransport, name: str) -> tuple[str, int] | None:
    """Return host and port of one end of a connection, or None if it has none, as a socket in a file."""
    info = transport.get_extra_info(name)
    return (str(info[0]), int(info[1])) if isinstance(info, tuple | list) and len(info) >= 2 else None


def _paths(target: bytes) -> tuple[str, bytes, bytes]:
    """Return the path of a target, the path as it came, and the query. Raises InvalidRequest where it is none."""
    if target[:1] != b"/":
        raise InvalidRequest("the target of the request is not a path", hint="send a path; bardo is not a proxy")
    parsed = httptools.parse_url(target)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


def _size_of_head(target: bytes, headers: Headers) -> int:
    """Return the bytes of a head's lines."""
    return len(target) + sum(len(name) + len(value) + 4 for name, value in headers)
