"""The connections to providers: kept warm, watched while they are silent, checked before they serve again, and hung up at once."""

from __future__ import annotations

import select
import socket
from weakref import WeakSet

from aiohttp import ClientRequest, ClientResponse, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import AddrInfoType, Connection
from aiohttp.tracing import Trace

# Shorter than servers and networks usually keep a silent connection.
_IDLE_SECONDS = 50
_DNS_SECONDS = 60
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 4))


class Connections(TCPConnector):
    """Connections without a limit; one that the provider has closed meanwhile is not used again."""

    def __init__(self) -> None:
        super().__init__(
            limit=0, ttl_dns_cache=_DNS_SECONDS, keepalive_timeout=_IDLE_SECONDS, socket_factory=watched_socket
        )
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        """Return a connection on which nothing waits to be read: an end, or bytes nobody asked for.

        The event loop may not have seen them yet, after work that held it up. A request that went out there would be lost, and
        could not be sent again, for nobody would know whether it had arrived.
        """
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None or protocol not in self._used:
                break
            if not _has_something_to_read(connection):
                return connection
            connection.close()
        if protocol is not None:
            self._used.add(protocol)
        return connection


def _has_something_to_read(connection: Connection) -> bool:
    watched = connection.transport.get_extra_info("socket") if connection.transport else None
    if watched is None:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([watched], [], [], 0)[0])
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    return bool(poll.poll(0))


def watched_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket that keeps a silent connection alive: a model may think for longer than a firewall remembers it."""
    family, kind, protocol, *_ = address
    watched = socket.socket(family, kind, protocol)
    watched.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        if hasattr(socket, option):
            watched.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return watched


class AbruptResponse(ClientResponse):
    """A response whose early end hangs up.

    A graceful end would first send what is left of the request, and over TLS wait for the provider's farewell.
    """

    def close(self) -> None:
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()
        super().close()
