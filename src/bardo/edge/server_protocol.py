"""The HTTP/1.1 protocol of one connection: uvicorn's, with bounds on what a client may send.

A request that exceeds a bound is answered with an error in its dialect, after the replies that are still due on its connection, and the
connection is closed. What the client sends after that is thrown away for a short time, so that it can read the answer, and is not kept.
An ordinary request, which arrives in one piece, costs a few comparisons.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from bardo.edge.server_limits import (
    SURPLUS_CONNECTIONS,
    Headers,
    too_large_headers,
    too_many_connections,
    too_many_headers,
    too_many_pipelined,
)
from bardo.edge.server_refusal import BODY, HEAD, NOTHING, RefusingProtocol
from bardo.edge.server_reply import FIRST_HEADERS, NOBODY_WAITS, RequestCycle
from bardo.edge.server_special_cases import EarlyReply, is_awaited, without_chunks, without_upgrade
from bardo.values.errors import BardoError, InvalidRequest, Overloaded, RequestTimeout


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
