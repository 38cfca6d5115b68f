"""How bardo uses aiohttp: the session that calls go through, its connections, and a reply read piece by piece."""

from __future__ import annotations

import asyncio
import functools
import io
import re
import socket
from collections.abc import Awaitable
from contextvars import ContextVar
from functools import lru_cache
from time import monotonic
from typing import Any
from weakref import ref

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
    ThreadedResolver,
)
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from bardo._version import __version__
from bardo.adapters.net import problems
from bardo.adapters.net.addresses import check_some, is_forbidden, is_loopback, proxy_for
from bardo.adapters.net.bodies import TimedReply
from bardo.adapters.net.calls import Call, Deadlines, can_be_sent
from bardo.adapters.net.connection import IDLE_SECONDS, NAME_SECONDS, has_something_to_read, idle_limit, watched_socket
from bardo.values.errors import BardoError


class ReplyProtocol(ResponseHandler):
    """One connection, and when it was last heard of. `idle_limit`: how many seconds the server keeps it silent, where it said so."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self.served = False
        self.heard = False
        self.last_heard = 0.0
        self.idle_limit: float | None = None

    def data_received(self, data: bytes) -> None:
        """Take bytes of a reply."""
        self.heard = True
        self.last_heard = monotonic()
        super().data_received(data)

    @property
    def expired(self) -> bool:
        """Whether the server has closed this connection, or is about to, by its own `Keep-Alive`."""
        return self.idle_limit is not None and monotonic() - self.last_heard >= self.idle_limit


class Sending:
    """One sending of a call: which connection it went out on. `fresh`: no connection that served before may be taken."""

    __slots__ = ("fresh", "protocol", "reused")

    def __init__(self, *, fresh: bool) -> None:
        self.fresh = fresh
        self.protocol: ReplyProtocol | None = None
        self.reused = False

    def may_be_repeated(self, failure: ClientError) -> bool:
        """Whether the server had closed a connection that served before, without a byte of this reply.

        It closed it as idle then: some servers do so after each streamed reply without saying it (llama-server).
        """
        if not self.reused or self.protocol is None or self.protocol.heard:
            return False
        ended = isinstance(failure, ServerDisconnectedError | ClientOSError)
        return ended and not isinstance(failure, ClientConnectorError)

    def keep(self, header: str | None) -> None:
        """Take what the reply says of how long its connection is kept."""
        limit = idle_limit(header)
        if limit is not None and self.protocol is not None:
            self.protocol.idle_limit = limit


SENDING: ContextVar[Sending] = ContextVar("sending")


class CheckedResolver(ThreadedResolver):
    """Resolves names as the system does, and leaves out what no name of a provider may lead to."""

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        """Return where a name leads. Raises ForbiddenAddress where nothing is left."""
        results = await super().resolve(host, port, family)
        found = [one for one in results if not is_forbidden(one["host"])]
        check_some(host, found, results)
        return found


class Connections(TCPConnector):
    """Connections without a limit; one that the provider has closed meanwhile is not used again.

    `owner` closes them. When it is gone without having done so, they are let go of quietly.
    """

    def __init__(self, owner: object) -> None:
        super().__init__(
            limit=0,
            ttl_dns_cache=int(NAME_SECONDS),
            keepalive_timeout=IDLE_SECONDS,
            socket_factory=watched_socket,
            resolver=CheckedResolver(),
        )
        self._factory = functools.partial(ReplyProtocol, loop=self._loop)  # type: ignore[assignment]
        self._owner = ref(owner)

    @property
    def closed(self) -> bool:
        """Whether they are closed, or nobody is left to close them."""
        return bool(super().closed) or self._owner() is None

    def __del__(self, _warnings: Any = None) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Close the connections without waiting for their ends."""
        if not self._closed:
            self._close(abort_ssl=True)

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        """Return a connection on which nothing waits to be read: an end, or bytes nobody asked for.

        The event loop may not have seen them yet, after work that held it up. A request that went out there would be lost, and
        have to be sent again.
        """
        sending = SENDING.get(None) or Sending(fresh=False)
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if not isinstance(protocol, ReplyProtocol):
                return connection
            if not protocol.served:
                break
            if not (sending.fresh or protocol.expired or has_something_to_read(_socket_of(connection))):
                break
            connection.close()
        sending.protocol, sending.reused = protocol, protocol.served
        protocol.served, protocol.heard = True, False
        return connection


def _socket_of(connection: Connection) -> Any:
    return connection.transport.get_extra_info("socket") if connection.transport else None


class AbruptResponse(ClientResponse):
    """A response whose early end hangs up.

    A graceful end would first send what is left of the request, and over TLS wait for the provider's farewell.
    """

    def close(self) -> None:
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()
        super().close()


USER_AGENT = f"bardo/{__version__}"

_HEADER_BYTES = 64 * 1024
# aiohttp holds at most twice as much before it stops reading, which slows the provider down.
_BUFFER_BYTES = 64 * 1024
# aiohttp warns of more bytes than these in one piece: writing them would hold up the loop.
_LARGE_BODY = 2**20
_COMPLETE = re.compile(r"[!-~]+")


class Session:
    """The connections of one event loop. It keeps no cookies, follows no redirect and reads no `.netrc`."""

    def __init__(self) -> None:
        self._way = lru_cache(maxsize=1024)(_way)
        self._unfinished: set[TimedReply] = set()
        self._client = ClientSession(
            connector=Connections(self),
            # Replies are small and often streamed: compressing them costs latency and saves nothing. A reply that is
            # compressed all the same is unpacked.
            headers={"user-agent": USER_AGENT, "accept-encoding": "identity"},
            cookie_jar=DummyCookieJar(),
            response_class=AbruptResponse,
            read_bufsize=_BUFFER_BYTES,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def send(self, call: Call, deadlines: Deadlines) -> AiohttpReply:
        """Send `call` and return its reply once the head is there. Raises what `Transport.send` may raise."""
        total, first_byte = deadlines.total, deadlines.first_byte
        begun = asyncio.get_running_loop().time() if total else 0.0
        problem: BardoError
        try:
            async with asyncio.timeout(min(total, first_byte) if total else first_byte):
                response, resent = await self._reply(call, deadlines.connect)
            reply = AiohttpReply(response, call, deadlines.idle, self._unfinished, resent=resent)
            if total:
                reply.end_by(begun + total, total)
            return reply
        except ClientError as failure:
            problem = problems.closed() if self._client.closed else problems.unanswered(failure, call, deadlines)
        except TimeoutError:
            late = 0 < total < first_byte
            problem = problems.out_of_time(call, total) if late else problems.no_first_byte(call, deadlines)
        except ValueError:
            problem = problems.unsendable_address(call)
        # Raised out here so that the library's message, which may hold the whole URL, is not chained to ours.
        raise problem

    async def close(self) -> None:
        """Hang up on every provider. Whoever reads a reply, or waits for one, gets an InternalError."""
        for reply in tuple(self._unfinished):
            reply.break_off(problems.closed())
        await self._client.close()

    def let_go(self) -> None:
        """Close without waiting: the event loop of these connections does not run any more."""
        connections = self._client.connector
        self._client.detach()
        if isinstance(connections, Connections):
            connections.let_go()

    async def _reply(self, call: Call, connect: float) -> tuple[ClientResponse, bool]:
        """Return the reply, and whether the call went out twice: a connection that served before may be closed by now."""
        sending = Sending(fresh=False)
        try:
            return await self._send_request(call, connect, sending), False
        except ClientError as failure:
            if self._client.closed or not sending.may_be_repeated(failure):
                raise
        return await self._send_request(call, connect, Sending(fresh=True)), True

    async def _send_request(self, call: Call, connect: float, sending: Sending) -> ClientResponse:
        token = SENDING.set(sending)
        try:
            response = await self._request(call, connect)
        finally:
            SENDING.reset(token)
        sending.keep(response.headers.get("keep-alive"))
        return response

    def _request(self, call: Call, connect: float) -> Awaitable[ClientResponse]:
        for name, value in call.headers.items():
            if not can_be_sent(name, value):
                raise problems.unsendable_header(call)
        try:
            url, proxy = self._way(call.url)
        except ValueError:
            problem = problems.unsendable_address(call)
        else:
            return self._client.request(
                call.method,
                url,
                headers=call.headers,
                data=io.BytesIO(call.body) if len(call.body) > _LARGE_BODY else call.body or None,
                proxy=proxy,
                allow_redirects=False,
                timeout=_timeout(connect),
            )
        raise problem


def _way(address: str) -> tuple[URL, URL | None]:
    """Return where `address` leads, and through which proxy. Raises ValueError where it is no http(s) URL, and ConfigError."""
    # What is complete goes out as it is: undoing its escapes would break a signature.
    url = URL(address, encoded=_COMPLETE.fullmatch(address) is not None)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("no http(s) URL")
    proxy = None if is_loopback(address) else proxy_for(url.scheme, url.host)
    return url, None if proxy is None else URL(proxy)


@lru_cache(maxsize=16)
def _timeout(connect: float) -> ClientTimeout:
    return ClientTimeout(total=None, connect=connect)


class AiohttpReply(TimedReply):
    """One reply over aiohttp."""

    __slots__ = ("_content", "_response")

    def __init__(
        self, response: ClientResponse, call: Call, idle: float, unfinished: set[TimedReply], *, resent: bool
    ) -> None:
        headers = {name.lower(): value for name, value in response.headers.items()}
        loop = asyncio.get_running_loop()
        super().__init__(response.status, headers, call, idle, unfinished, loop, resent=resent)
        self._response = response
        self._content = response.content

    def _has_ended(self) -> bool:
        return self._content.at_eof()

    def _hang_up(self) -> None:
        self._response.close()

    def _connection_problem(self) -> BardoError | None:
        # aiohttp hangs up on a body that is not HTTP any more, and leaves its reader waiting.
        connection = self._response.connection
        return problems.cut_off(self._call) if connection is not None and connection.closed else None

    async def _next_chunk(self) -> bytes:
        if self._problem is None:
            try:
                return self._content.read_nowait() or await self._wait()
            except ClientError as failure:
                self._problem = self._problem or problems.interrupted(failure, self._call)
        return self._left_over()

    async def _wait(self) -> bytes:
        if self._content.at_eof():
            return b""
        self._begin_waiting()
        try:
            return await self._content.readany()
        finally:
            self._reading = False

    def _left_over(self) -> bytes:
        """Return what came before the reply broke off and was not read yet: aiohttp tells of the break first."""
        self._content.set_exception(None)  # type: ignore[arg-type]
        return self._content.read_nowait()
