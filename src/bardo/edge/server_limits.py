"""What one server process accepts from its clients, and how it answers a request that the application never sees."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.dialects import DEFAULT_DIALECT, dialect
from bardo.values.errors import BardoError, HeadersTooLarge, Overloaded

if TYPE_CHECKING:
    import asyncio

Headers = list[tuple[bytes, bytes]]
# Files that a process holds besides its connections: the log, the listener, the event loop, libraries.
_OTHER_FILES = 32
_FEWEST_CONNECTIONS = 4
# Connections over the bound that are answered with an error; the ones after these are closed at once.
SURPLUS_CONNECTIONS = 16


class ServerBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what clients may send. Sizes are bytes, `*_seconds` the time until the head or the body has arrived.

    `max_total_body_bytes` counts the bodies of all requests of the process that have no complete reply yet: the process takes up to five
    times as much for them, as bytes, as text and as what is sent to providers.
    """

    max_connections: int = 10_000
    max_pipelined_requests: int = 16
    max_headers: int = 128
    max_header_bytes: int = 64 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    max_total_body_bytes: int = 64 * 1024 * 1024


class ErrorReply(msgspec.Struct, frozen=True, kw_only=True):
    """An error as HTTP sends it."""

    status: int
    headers: Headers
    body: bytes


# Takes the path and the headers of a request, as far as they are known, and what is wrong with it.
EncodeError = Callable[[str, Headers, BardoError], ErrorReply]


def encode_error(path: str, headers: Headers, problem: BardoError) -> ErrorReply:
    """Return an error in the form most clients read, for an application that has no form of its own."""
    body = dialect(DEFAULT_DIALECT).encode_error(problem)
    return ErrorReply(status=problem.status, headers=[(b"content-type", b"application/json")], body=body)


class ServerLimits:
    """The bounds of one process and how much of them is used. Every connection of the process shares it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.bounds: ServerBounds = getattr(app, "bounds", None) or ServerBounds()
        self.encode_error: EncodeError = getattr(app, "encode_error", None) or encode_error
        self.max_connections = min(self.bounds.max_connections, _connections_of_open_files())
        self.body_bytes = 0
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks that answer requests: the server's own set, once a connection is made."""

    def max_body_bytes(self) -> int:
        """Return how long a body the application takes, by the configuration at work: what it does not say has no bound."""
        longest: int = getattr(self._app, "max_body_bytes", sys.maxsize)
        return longest


def _connections_of_open_files() -> int:
    """Return how many clients the limit of open files leaves room for: each may need a connection to a provider too."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return 1 << 30
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(_FEWEST_CONNECTIONS, (soft - _OTHER_FILES - SURPLUS_CONNECTIONS) // 2)


def too_many_headers(limit: int) -> HeadersTooLarge:
    """A request has too many headers."""
    return HeadersTooLarge(f"over {limit} headers", hint="send fewer, or raise gateway.max_headers in bardo.toml")


def too_large_headers(limit: int) -> HeadersTooLarge:
    """The lines of a head are too long together."""
    hint = "send less in headers and URL, or raise gateway.max_header_bytes in bardo.toml"
    return HeadersTooLarge(f"the head of the request is over {limit} bytes", hint=hint)


def too_many_connections(limit: int) -> Overloaded:
    """The process has as many connections as it may have."""
    hint = "try again later, or raise gateway.max_connections in bardo.toml and the limit of open files"
    return Overloaded(f"over {limit} open connections", hint=hint)


def too_many_pipelined(limit: int) -> Overloaded:
    """A connection has too many requests that wait for the one before."""
    hint = "wait for replies, or raise gateway.max_pipelined_requests in bardo.toml"
    return Overloaded(f"over {limit} requests wait on one connection", hint=hint)


def too_many_body_bytes(limit: int) -> Overloaded:
    """The process holds as many bytes of bodies as it may hold."""
    hint = "try again later, or raise gateway.max_total_body_bytes in bardo.toml"
    return Overloaded(f"the bodies of the open requests are over {limit} bytes together", hint=hint)
