"""How bardo uses aiohttp: the session all calls go through, and a reply read piece by piece.

aiohttp comes with the extra `bardo[aiohttp]`, and is loaded with the first call of a client that `[http] client` makes of it.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable
from functools import lru_cache

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from yarl import URL

from bardo._version import __version__
from bardo.edge import http_problems as problems
from bardo.edge.http_bodies import TimedReply
from bardo.edge.http_calls import Call, Deadlines, can_be_sent
from bardo.edge.http_connections import SENDING, AbruptResponse, Connections, Sending
from bardo.edge.http_proxy import is_loopback, proxy_for
from bardo.values.errors import BardoError

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
