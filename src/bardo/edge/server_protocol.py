"""The HTTP/1.1 protocol of one connection: uvicorn's, with bounds on what a client may send.

A request that exceeds a bound is answered with an error in its dialect, after the replies that are still due on its connection, and the
connection is closed. What the client sends after that is thrown away for a short time, so that it can read the answer, and is not kept.
An ordinary request, which arrives in one piece, costs a few comparisons.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from bardo.edge.server_framing import EarlyAnswer, without_chunks, without_upgrade
from bardo.edge.server_limits import (
    SURPLUS_CONNECTIONS,
    Headers,
    ServerLimits,
    too_large_headers,
    too_many_body_bytes,
    too_many_connections,
    too_many_headers,
    too_many_pipelined,
)
from bardo.values.errors import BardoError, InvalidRequest, RequestTimeout

# After an error the client may go on sending this long and this much; then the connection is closed.
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 4 * 1024 * 1024

_NOTHING, _HEAD, _BODY = range(3)


class _Refused(Exception):
    """Ends the parsing of a request that was refused."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `app.limits` are the limits of its process."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.url = b""
        self.headers = []
        self._limits: ServerLimits = getattr(self.app, "limits", None) or ServerLimits(self.app)
        self._bounds = self._limits.bounds
        self._surplus = False
        # Which part of a request has begun to arrive and is not complete, and since when: a timer that ends it.
        self._arriving = _NOTHING
        self._deadline: asyncio.TimerHandle | None = None
        # Bytes of this read; of earlier reads that belong to the head; of reads of a body that brought nothing of it.
        self._read_size = 0
        self._head_size = 0
        self._empty_size = 0
        self._message_ended = False
        self._body_size = 0
        self._early: EarlyAnswer | None = None
        # The request whose reply is being made: with pipelined requests, not the last that came.
        self._active: RequestResponseCycle | None = None
        # An error that waits for the replies before it, and what was read since.
        self._refusal: bytes | None = None
        self._refused = False
        self._discarded = 0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        surplus = len(self.connections) - self._limits.max_connections
        self._surplus = surplus > 0
        if surplus > SURPLUS_CONNECTIONS:
            transport.abort()
        else:
            self._set_deadline(self._bounds.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._release_body()
        self._clear_deadline()
        if self._active is not None and self._active is not self.cycle:
            _disconnect(self._active)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection, or let it close after the reply that is being made."""
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
        super().on_message_begin()
        self._arriving = _HEAD
        self._head_size = 0

    def on_headers_complete(self) -> None:
        if self._deadline is not None:
            self._clear_deadline()
        self._check_head()
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        self._arriving = _BODY
        # Whatever headers follow the body are not the request's.
        self.headers = []
        self._empty_size = 0
        if self.scope["http_version"] != "1.1":
            self._serve_older_version()

    def on_body(self, body: bytes) -> None:
        size = len(body)
        limits = self._limits
        self._empty_size = -self._read_size
        self._body_size += size
        limits.body_bytes += size
        if limits.body_bytes > self._bounds.max_total_body_bytes:
            self._refuse_now(too_many_body_bytes(self._bounds.max_total_body_bytes))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._arriving == _HEAD:
            return  # It asked for another protocol, and is parsed again.
        super().on_message_complete()
        self._arriving = _NOTHING
        self._message_ended = True
        if self._deadline is not None:
            self._clear_deadline()
        if self._early is not None:
            self._early.revoke()
            self._early = None

    def on_response_complete(self) -> None:
        if self.pipeline:
            super().on_response_complete()
            return
        self._release_body()
        if self._refusal is not None:
            self._write_refusal(self._refusal)
        elif not self._refused:
            super().on_response_complete()

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

    def _serve_older_version(self) -> None:
        if self.scope["http_version"] != "1.0":
            self._refuse_now(InvalidRequest("this version of HTTP is not served here", hint="use HTTP/1.1"))
        without_chunks(self.cycle)

    def _check_arrival(self) -> None:
        """Bound a request that did not arrive in one piece: its size so far, and from now on its time."""
        bounds = self._bounds
        if self._arriving == _HEAD:
            self._head_size += 0 if self._message_ended else self._read_size
            seconds, unused = bounds.head_seconds, self._head_size
        else:
            if self._early is None:
                self._early = EarlyAnswer(self.cycle, self.transport, self._linger)
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

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _check_time(self, seconds: float) -> None:
        if self._arriving == _NOTHING:
            self.transport.close()
        elif self.flow.read_paused:
            # The client waits for us: for the replies before this one, or for the application to read.
            self._set_deadline(seconds)
        else:
            part = "head" if self._arriving == _HEAD else "body"
            message = f"the {part} of the request did not arrive within {seconds:g} s"
            self._refuse(RequestTimeout(message, hint=f"send it faster, or raise gateway.{part}_seconds in bardo.toml"))

    # Refusing

    def _refuse_now(self, problem: BardoError) -> NoReturn:
        """Refuse a request from within a callback of the parser."""
        self._refuse(problem)
        raise _Refused

    def _refuse(self, problem: BardoError) -> None:
        """Answer a request with an error once the replies before it are complete, and read no more of it."""
        reply = self._encode(problem)
        self._refused = True
        self._clear_deadline()
        if self._arriving == _BODY:
            self._withdraw()
        if self._is_busy():
            self._refusal = reply
        else:
            self._write_refusal(reply)

    def _withdraw(self) -> None:
        """Take a request that has not wholly arrived from the application, which is told that the client has gone."""
        if self.cycle is not self._active:
            self.pipeline.popleft()
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            _disconnect(self.cycle)
            self._release_body()

    def _is_busy(self) -> bool:
        """Whether a reply is being made, which goes before an error."""
        active = self._active
        return active is not None and not active.response_complete and not active.disconnected

    def _encode(self, problem: BardoError) -> bytes:
        headers = self.scope["headers"] if self._arriving == _BODY else self.headers
        path = self.url.partition(b"?")[0].decode("latin-1")
        reply = self._limits.encode_error(path, list(headers), problem)
        length = str(len(reply.body)).encode()
        own = [(b"content-length", length), (b"connection", b"close")]
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
        self._deadline = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _discard(self, size: int) -> None:
        """Throw away what a client sends after it was refused."""
        self._discarded += size
        if self._discarded <= _LINGER_BYTES:
            return
        if self._is_busy():
            self.flow.pause_reading()
        else:
            self.transport.abort()

    def _release_body(self) -> None:
        self._limits.body_bytes -= self._body_size
        self._body_size = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()


def _size_of_head(url: bytes, headers: Headers) -> int:
    """Return the bytes of a head's lines."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
