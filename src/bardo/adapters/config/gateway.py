"""`[gateway]`, `[timeouts]`, `[telemetry]` and `[batches]`: where the gateway listens, whom it answers, and how much it accepts."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from bardo.adapters.config.mistakes import Place
from bardo.dialects import DEFAULT_DIALECT, dialect
from bardo.reuse import MOST_BYTES
from bardo.values.errors import BardoError, ConfigError, HeadersTooLarge, Overloaded

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

    `connection_idle_seconds` is how long a connection stays open between a reply and the next request: longer than load balancers keep
    theirs (AWS 60 s, nginx 60 s), which would otherwise send a request on a connection that is just being closed. A client may take
    nothing of its last reply for as long.
    `max_total_body_bytes` counts the bodies of all requests of the process that have no complete reply yet: the process takes up to five
    times as much for them, as bytes, as text and as requests to providers.
    """

    max_connections: int = 10_000
    max_pipelined_requests: int = 16
    max_headers: int = 128
    max_header_bytes: int = 64 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 60.0
    connection_idle_seconds: float = 75.0
    max_total_body_bytes: int = 64 * 1024 * 1024


class ErrorReply(msgspec.Struct, frozen=True, kw_only=True):
    """An error as HTTP sends it."""

    status: int
    headers: Headers
    body: bytes


# Takes the path and the headers of a request, as far as they are known, and the fault in it.
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
        """The tasks that answer requests, and those of WebSockets for as long as they are open."""
        self.websockets = 0
        """How many of the tasks are those of WebSockets."""

    def is_idle(self) -> bool:
        """Whether nothing is at work: no request, and none on a WebSocket, where each counts as a body until it is answered."""
        return len(self.tasks) == self.websockets and not self.body_bytes

    def count_body(self, size: int) -> None:
        """Count bytes of a body. Raises Overloaded where those of all requests are too many."""
        self.body_bytes += size
        if self.body_bytes > self.bounds.max_total_body_bytes:
            raise too_many_body_bytes(self.bounds.max_total_body_bytes)

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


Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Silence = Annotated[float, msgspec.Meta(ge=0)]

_BOUNDS = ServerBounds()
_HOST = re.compile(r"\*|\[?[0-9A-Za-z.:_-]+\]?")
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s]+", re.IGNORECASE)


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the gateway listens, whom it answers, and how much it accepts. Sizes are bytes.

    `keep_alive_seconds`: after how long a silence a streamed answer says that it is alive; 0 is never.
    `allowed_hosts` are names besides those of the address it listens on, `allowed_origins` web pages that may call it.
    `unasked_thinking` shows Anthropic clients also the thinking of other providers that they did not ask for.
    `drain_cancelled` reads the reply of a client that has left to its end, so that its cost is exact: for at most `drain_seconds`, and
    for at most `drain_tokens` more tokens. A provider may have its own `drain_cancelled`.
    `allow_unauthenticated` lets it listen where other machines reach it although it requires no keys; where there are keys, it
    answers also those who come without one. `client_pipelines` are the profiles of layers that any call may name beside the one that it
    gets by the configuration; `*` is all. `panel` serves web pages about calls, costs and providers at `/panel`.
    `websockets` serves Responses by WebSocket too: at most `max_websockets_per_key` at once of one key, each for `websocket_seconds`, and
    as long as something was asked within `websocket_idle_seconds`.
    """

    host: str = "127.0.0.1"
    port: Port = 8484
    workers: Count = 1
    reload_on_change: bool = True
    allow_unauthenticated: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: Count = 32 * 1024 * 1024
    max_total_body_bytes: Count = _BOUNDS.max_total_body_bytes
    max_total_values: Count = 600_000
    body_seconds: Seconds = _BOUNDS.body_seconds
    max_headers: Count = _BOUNDS.max_headers
    max_header_bytes: Count = _BOUNDS.max_header_bytes
    head_seconds: Seconds = _BOUNDS.head_seconds
    max_connections: Count = _BOUNDS.max_connections
    connection_idle_seconds: Seconds = _BOUNDS.connection_idle_seconds
    max_pipelined_requests: Count = _BOUNDS.max_pipelined_requests
    max_reply_bytes: Count = 64 * 1024 * 1024
    max_stream_bytes: Count = 256 * 1024 * 1024
    max_reuse_bytes: Annotated[int, msgspec.Meta(ge=0)] = MOST_BYTES
    keep_alive_seconds: Silence = 15.0
    unasked_thinking: bool = False
    client_pipelines: tuple[str, ...] = ()
    drain_cancelled: bool = False
    drain_seconds: Seconds = 60.0
    drain_tokens: Count = 16_000
    panel: bool = True
    websockets: bool = True
    max_websockets_per_key: Count = 100
    websocket_seconds: Seconds = 3600.0
    websocket_idle_seconds: Seconds = 3600.0


def bounds_of(gateway: GatewaySettings) -> ServerBounds:
    """Return the bounds of a server process."""
    return ServerBounds(**{name: getattr(gateway, name) for name in ServerBounds.__struct_fields__})


def check_gateway(gateway: GatewaySettings, place: Place) -> None:
    """Raise ConfigError for a host or an origin that no request can name."""
    for host in gateway.allowed_hosts:
        if not _HOST.fullmatch(host):
            hint = 'write names without a port: ["gateway.example.org"], or ["*"] for any'
            raise ConfigError(f"{place.of('allowed_hosts')}: {host!r} is not a host name", hint=hint)
    for origin in gateway.allowed_origins:
        if not _ORIGIN.fullmatch(origin):
            hint = 'write scheme and host without a path: ["https://app.example.org"], or ["*"] for any'
            raise ConfigError(f"{place.of('allowed_origins')}: {origin!r} is not an origin", hint=hint)


def is_loopback_host(host: str) -> bool:
    """Return whether only this machine reaches a server that listens on `host`."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def check_bind(gateway: GatewaySettings, *, has_keys: bool) -> None:
    """Raise ConfigError if other machines would reach a gateway that requires no keys."""
    if has_keys or gateway.allow_unauthenticated or is_loopback_host(gateway.host):
        return
    message = f"the gateway would listen on {gateway.host}, where other machines reach it, and it asks nobody for a key"
    hint = (
        "make a key with `bardo keys create NAME`, listen on 127.0.0.1, or allow it with --allow-unauthenticated or "
        "allow_unauthenticated = true under [gateway]"
    )
    raise ConfigError(message, hint=hint)


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which batches the gateway takes, how they are run, and how long they are kept. Sizes are bytes.

    `run_without_api`: items whose model no batch API takes are sent one by one, `concurrency` at once, after the calls of clients
    who wait. Jobs at providers hold at most `max_job_bytes`, and are asked for after `poll_seconds` and ever less often, up to every
    `max_poll_seconds`. A job that its provider may have taken, but did not confirm, is sent again only where it is not in the provider's
    list after `settling_seconds`. Files and finished batches are kept for `retention_seconds`.
    """

    enabled: bool = True
    run_without_api: bool = False
    concurrency: Count = 2
    poll_seconds: Seconds = 10.0
    max_poll_seconds: Seconds = 300.0
    settling_seconds: Seconds = 60.0
    max_file_bytes: Count = 200_000_000
    max_bytes_per_tenant: Count = 2_000_000_000
    max_items: Count = 50_000
    max_open_per_tenant: Count = 100
    max_job_bytes: Count = 32 * 1024 * 1024
    retention_seconds: Seconds = 30 * 24 * 3600.0


class TimeoutSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds: to connect, to the reply's head, between two pieces of it, and for all of it; 0 is no bound."""

    connect: Seconds = 10.0
    first_byte: Seconds = 600.0
    idle: Seconds = 120.0
    total: Silence = 0.0


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`metrics`: Prometheus finds them at /metrics. `otlp` is the address of a collector, to which spans and metrics go by OTLP over HTTP.

    `service` is what this process is called there. `logs` is the form of the lines that bardo writes to its standard error.
    """

    metrics: bool = False
    otlp: str = ""
    service: str = "bardo"
    logs: Literal["text", "json"] = "text"
