"""`[gateway]`: where the gateway listens, whom it answers, and how much it accepts."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

import msgspec

from bardo.edge.server_limits import ServerBounds
from bardo.edge.settings_problems import Place
from bardo.values.errors import ConfigError

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
    `allow_unauthenticated` lets it listen where other machines reach it although it asks nobody for a key; where there are keys, it
    answers also those who come without one. `client_pipelines` are the profiles of layers that any call may name beside the one that it
    gets by the configuration; `*` is all. `panel` serves web pages about calls, costs and providers at `/panel`.
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
    max_pipelined_requests: Count = _BOUNDS.max_pipelined_requests
    max_reply_bytes: Count = 64 * 1024 * 1024
    max_stream_bytes: Count = 256 * 1024 * 1024
    keep_alive_seconds: Silence = 15.0
    unasked_thinking: bool = False
    client_pipelines: tuple[str, ...] = ()
    drain_cancelled: bool = False
    drain_seconds: Seconds = 60.0
    drain_tokens: Count = 16_000
    panel: bool = True


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
    """Raise ConfigError where other machines would reach a gateway that asks nobody for a key."""
    if has_keys or gateway.allow_unauthenticated or is_loopback_host(gateway.host):
        return
    message = f"the gateway would listen on {gateway.host}, where other machines reach it, and it asks nobody for a key"
    hint = (
        "make a key with `bardo keys create NAME`, listen on 127.0.0.1, or allow it with --allow-unauthenticated or "
        "allow_unauthenticated = true under [gateway]"
    )
    raise ConfigError(message, hint=hint)
