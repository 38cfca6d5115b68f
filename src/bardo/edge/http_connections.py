"""The connections to providers: kept warm, watched while they are silent, checked before they serve again, and hung up at once."""

from __future__ import annotations

import functools
import socket
from contextvars import ContextVar
from time import monotonic
from typing import Any
from weakref import ref

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientTimeout,
    ServerDisconnectedError,
    TCPConnector,
    ThreadedResolver,
)
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from bardo.edge.http_destinations import check_some, is_forbidden
from bardo.edge.http_sockets import IDLE_SECONDS, NAME_SECONDS, has_something_to_read, idle_limit, watched_socket


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
