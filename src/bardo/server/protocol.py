"""The HTTP/1.1 protocol of one connection: uvicorn's, with bounds on what a client may send, and refusals in the client's dialect."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, NoReturn
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from bardo.adapters.config.gateway import (
    SURPLUS_CONNECTIONS,
    Headers,
    ServerLimits,
    too_large_headers,
    too_many_body_bytes,
    too_many_connections,
    too_many_headers,
    too_many_pipelined,
)
from bardo.server.reply import (
    FIRST_HEADERS,
    NOBODY_WAITS,
    EarlyReply,
    RequestCycle,
    is_awaited,
    without_chunks,
    without_upgrade,
)
from bardo.values.chance import CHANCE
from bardo.values.errors import BardoError, InvalidRequest, Overloaded, RequestTimeout

# After an error the client may go on sending this much, or twice as much as a body may have, as long as something comes; then the
# connection is closed. Many clients read nothing before they have sent all, and see a broken pipe where they are cut off.
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 4 * 1024 * 1024

# Which part of a request has begun to arrive and is not complete.
NOTHING, HEAD, BODY = range(3)


class RefusingProtocol(HttpToolsProtocol):
    """One connection. `app.limits` are the limits of its process."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.cycle: RequestCycle
        self.url = b""
        self.headers = []
        self._limits: ServerLimits = getattr(self.app, "limits", None) or ServerLimits(self.app)
        self._limits.tasks = self.tasks
        self._arriving = NOTHING
        # Ends a request that does not arrive in time, or a connection that was refused.
        self._deadline: asyncio.TimerHandle | None = None
        self._body_size = 0
        # The request whose reply is being made: with pipelined requests, not the last that came.
        self._active: RequestCycle | None = None
        # The request that the application gets once it has arrived.
        self._unstarted: RequestCycle | None = None
        # An error that waits for the replies before it, and how much was read since.
        self._refusal: bytes | None = None
        self._refused = False
        self._discarded = 0
        self._discards_until = 0.0
        self._discarded_at = 0.0

    def connection_lost(self, exc: Exception | None) -> None:
        self.release_body()
        self._clear_deadline()
        if self._active is not None and not self._active.response_complete:
            self._active.lose()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        if self.pipeline:
            super().on_response_complete()
            return
        self.release_body()
        if self._refusal is not None:
            self._write_refusal(self._refusal)
        elif not self._refused:
            self.server_state.total_requests += 1
            if not self.transport.is_closing():
                if self.flow.read_paused:
                    self.flow.resume_reading()
                seconds = self.timeout_keep_alive
                self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _refuse(self, problem: BardoError) -> None:
        """Answer a request with an error once the replies before it are complete, and read no more of it."""
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
        if self.cycle is self._unstarted:
            self._unstarted = None
            self.release_body()
        elif self.cycle is not self._active:
            self.pipeline.popleft()
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            self.cycle.lose()
            self.release_body()

    def _is_busy(self) -> bool:
        """Whether a reply is being made, which goes before an error."""
        active = self._active
        return active is not None and not active.response_complete and not active.disconnected

    def _encode(self, problem: BardoError) -> bytes:
        headers = self.scope["headers"] if self._arriving == BODY else self.headers
        path = self.url.partition(b"?")[0].decode("latin-1")
        reply = self._limits.encode_error(path, list(headers), problem)
        length = str(len(reply.body)).encode()
        request_id = f"req_{CHANCE.getrandbits(96):024x}".encode()
        ids = [(b"x-request-id", request_id), (b"request-id", request_id)]
        own = [*ids, (b"content-length", length), (b"connection", b"close")]
        lines = [
            name + b": " + value + b"\r\n" for name, value in (*self.server_state.default_headers, *reply.headers, *own)
        ]
        return b"".join([STATUS_LINE[reply.status], *lines, b"\r\n", reply.body])

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
        self.flow.resume_reading()
        self.transport.write_eof()
        self._discarded_at = self.loop.time()
        self._discards_until = self._discarded_at + max(_LINGER_SECONDS, self._limits.bounds.body_seconds)
        self._deadline = self.loop.call_later(_LINGER_SECONDS, self._end_lingering)

    def _end_lingering(self) -> None:
        """Close the connection, unless its client has sent something just now, and has some time left."""
        rest = min(self._discarded_at + _LINGER_SECONDS, self._discards_until) - self.loop.time()
        if rest <= 0:
            self.transport.abort()
        else:
            self._deadline = self.loop.call_later(rest, self._end_lingering)

    def _discard(self, size: int) -> None:
        """Throw away what a client sends after it was refused."""
        self._discarded += size
        self._discarded_at = self.loop.time()
        longest = self._limits.max_body_bytes()
        if self._discarded <= max(_LINGER_BYTES, 0 if longest == sys.maxsize else 2 * longest):
            return
        if self._is_busy():
            self.flow.pause_reading()
        else:
            self.transport.abort()

    def count_body(self, size: int) -> None:
        """Count bytes of a body, until its reply is complete. Raises Overloaded where those of all requests are too many."""
        self._body_size += size
        self._limits.body_bytes += size
        most = self._limits.bounds.max_total_body_bytes
        if self._limits.body_bytes > most:
            raise too_many_body_bytes(most)

    def release_body(self) -> None:
        """Count no longer what was read of a body: it is answered, or was put elsewhere."""
        self._limits.body_bytes -= self._body_size
        self._body_size = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        assert isinstance(cycle, RequestCycle)
        self._active = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _RequestRefused(Exception):
    """Ends the parsing of a request that was refused."""


class BoundedProtocol(RefusingProtocol):
    """One connection. `app.limits` are the limits of its process."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._bounds = self._limits.bounds
        self._surplus = False
        self._scope_of_connection: dict[str, Any] = {}
        # The address that was parsed last: its path, the path as it came, and its query.
        self._parsed_url = b""
        self._paths = "", b"", b""
        # Bytes of this read; of earlier reads that belong to the head; of reads of a body that brought nothing of it.
        self._read_size = 0
        self._head_size = 0
        self._empty_size = 0
        self._message_ended = False
        self._early: EarlyReply | None = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._scope_of_connection = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
        }
        surplus = len(self.connections) - self._limits.max_connections
        self._surplus = surplus > 0
        if surplus > SURPLUS_CONNECTIONS:
            transport.abort()
        else:
            self._set_deadline(self._bounds.head_seconds)

    def shutdown(self) -> None:
        """Close the connection, or let it close after the reply that is being made."""
        if self._unstarted is not None:
            self._begin_early()
        if self._early is not None:
            self._early.stay_closed()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._discard(len(data))
            return
        self._unset_keepalive_if_required()
        self._read_size = len(data)
        self._message_ended = False
        try:
            self._parse(data)
        except httptools.HttpParserError:
            if not self._refused:
                self._refuse(InvalidRequest("what arrived is not a valid HTTP request", hint="send HTTP/1.1"))
            return
        if self._arriving:
            self._check_arrival()

    def _parse(self, data: bytes) -> None:
        """Parse what arrived. A wish for another protocol is ignored, as HTTP allows.

        The parser takes what follows such a head for the other protocol, so the head is parsed once more without the wish.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = without_upgrade(self.parser.get_method(), self.url, self.headers) + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    # The parser's callbacks

    def on_message_begin(self) -> None:
        self.url, self.headers = b"", []
        self._arriving = HEAD
        self._head_size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._deadline is not None:
            self._clear_deadline()
        self._check_head()
        if self.parser.should_upgrade():
            return
        version = self.parser.get_http_version()
        self._begin_request(version)
        self._arriving = BODY
        # Whatever headers follow the body are not the request's.
        self.headers = []
        self._empty_size = 0
        if version != "1.1":
            self._serve_older_version(version)

    def _begin_request(self, version: str) -> None:
        """Have the application answer the request whose head is complete, after those before it, as uvicorn does."""
        headers = self.headers
        first = dict(reversed(headers))
        if self.url != self._parsed_url:
            # The next requests of a connection are most often for the same endpoint.
            self._paths = _paths(self.url, self.root_path)
            self._parsed_url = self.url
        path, raw_path, query = self._paths
        scope: dict[str, Any] = {
            **self._scope_of_connection,
            "http_version": version,
            "headers": headers,
            FIRST_HEADERS: first,
            "state": self.app_state.copy(),
            "method": self.parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
        }
        self.scope = scope  # type: ignore[assignment]
        cycle = self.cycle = RequestCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=NOBODY_WAITS,
            expect_100_continue=b"expect" in first and first[b"expect"].lower() == b"100-continue",
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        active = self._active
        if active is None or active.response_complete:
            self._unstarted = cycle
            return
        self.pipeline.appendleft((cycle, self.app))
        if not active.watched:
            self.flow.pause_reading()

    def on_body(self, body: bytes) -> None:
        self._empty_size = -self._read_size
        try:
            self.count_body(len(body))
        except Overloaded as problem:
            self._refuse_now(problem)
        self.cycle.add_body(body)

    def on_message_complete(self) -> None:
        if self._arriving == HEAD:
            return  # It asked for another protocol, and is parsed again.
        self.cycle.end_body()
        if self._unstarted is not None:
            self._start(self._unstarted)
        self._arriving = NOTHING
        self._message_ended = True
        if self._deadline is not None:
            self._clear_deadline()
        if self._early is not None:
            self._early.revoke()
            self._early = None

    def _start(self, cycle: RequestCycle) -> None:
        self._unstarted = None
        self._start_asgi_task(cycle, self.app)

    def _begin_early(self) -> None:
        """Let a request be answered before it has wholly arrived."""
        if self._unstarted is not None:
            self._start(self._unstarted)
        self._early = EarlyReply(self.cycle, self.transport, self._linger)

    # What is checked

    def _check_head(self) -> None:
        """Refuse a complete head that exceeds a bound."""
        bounds, headers = self._bounds, self.headers
        if len(headers) > bounds.max_headers:
            self._refuse_now(too_many_headers(bounds.max_headers))
        limit = bounds.max_header_bytes
        if self._head_size + self._read_size > limit and _size_of_head(self.url, headers) > limit:
            self._refuse_now(too_large_headers(limit))
        if self._surplus:
            self._refuse_now(too_many_connections(self._limits.max_connections))
        if len(self.pipeline) >= bounds.max_pipelined_requests:
            self._refuse_now(too_many_pipelined(bounds.max_pipelined_requests))
        if self.url[:1] != b"/":
            hint = "send a path; bardo is not a proxy"
            self._refuse_now(InvalidRequest("the target of the request is not a path", hint=hint))

    def _serve_older_version(self, version: str) -> None:
        if version != "1.0":
            self._refuse_now(InvalidRequest("this version of HTTP is not served here", hint="use HTTP/1.1"))
        without_chunks(self.cycle)

    def _check_arrival(self) -> None:
        """Bound a request that did not arrive in one piece: its size so far, and from now on its time."""
        bounds = self._bounds
        if self._arriving == HEAD:
            self._head_size += 0 if self._message_ended else self._read_size
            seconds, unused = bounds.head_seconds, self._head_size
        else:
            if self._early is None and (self._unstarted is None or not is_awaited(self._unstarted, self._limits)):
                self._begin_early()
            self._empty_size += self._read_size
            seconds, unused = bounds.body_seconds, self._empty_size
        if len(self.headers) > bounds.max_headers:
            self._refuse(too_many_headers(bounds.max_headers))
        elif unused > bounds.max_header_bytes:
            self._refuse(too_large_headers(bounds.max_header_bytes))
        elif self._deadline is None:
            self._set_deadline(seconds)

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._check_time, seconds)

    def _check_time(self, seconds: float) -> None:
        if self._arriving == NOTHING:
            self.transport.close()
        elif self.flow.read_paused:
            # The client waits for us: for the replies before this one, or for the application to read.
            self._set_deadline(seconds)
        else:
            part = "head" if self._arriving == HEAD else "body"
            message = f"the {part} of the request did not arrive within {seconds:g} s"
            self._refuse(RequestTimeout(message, hint=f"send it faster, or raise gateway.{part}_seconds in bardo.toml"))

    def _refuse_now(self, problem: BardoError) -> NoReturn:
        """Refuse a request from within a callback of the parser."""
        self._refuse(problem)
        raise _RequestRefused


def _paths(url: bytes, root: str) -> tuple[str, bytes, bytes]:
    """Return the path of a request below `root`, the path as it came, and the query. Raises HttpParserError."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return root + (unquote(path) if "%" in path else path), root.encode("ascii") + parsed.path, parsed.query or b""


def _size_of_head(url: bytes, headers: Headers) -> int:
    """Return the bytes of a head's lines."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
