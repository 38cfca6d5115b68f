"""The problems on the way to a provider, in words that help: which provider or host, what happened, what to check.

Nothing here quotes a header, a key, a path or a query string.
"""

from __future__ import annotations

import os
import socket
import ssl
from urllib.parse import urlsplit

from bardo.adapters.net.addresses import ForbiddenAddress
from bardo.adapters.net.calls import Call, Deadlines
from bardo.values.errors import BrokenStream, ConfigError, InternalError, MalformedReply, Unreachable, UpstreamTimeout

_CHECK_ADDRESS = "check base_url, and that the server runs and listens there"
_CHECK_NAME = "check the host name in base_url, and this machine's network and DNS"
_CHECK_NAME_LEADS = "check what the host name in base_url resolves to; an address that is meant is written as one"
_CHECK_TLS = "check base_url: https or http, the port, and whether this machine trusts the server's certificate"
_CHECK_NETWORK = "check this machine's network, firewall and proxy settings"
_CHECK_PROXY = "check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the host in NO_PROXY"
_TRY_AGAIN = "try again, or send the call to another provider"


def origin(url: str) -> str:
    """Return the host and port of `url`, the part that is safe to show."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "its address"
    return _host_and_port(parts.hostname, port) if parts.hostname else "its address"


def _who(call: Call) -> str:
    """Return who did not answer as it should, for a client: its provider by name, whose host and port are the operator's affair."""
    return call.provider or origin(call.url)


def _host_and_port(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else shown


def unconnected(failure: BaseException, call: Call) -> Unreachable:
    """Say at which step a direct connection failed: the name, the network or TLS."""
    place = origin(call.url)
    why = reason(failure)
    match failure:
        case ForbiddenAddress():
            message, hint = f"the name in {place} leads to an address that no provider has", _CHECK_NAME_LEADS
        case socket.gaierror():
            message, hint = f"the name in {place} cannot be resolved", _CHECK_NAME
        case ssl.SSLError():
            message, hint = f"no TLS connection to {place}: {why}", _CHECK_TLS
        case ConnectionRefusedError():
            message, hint = f"{place} refuses connections", _CHECK_ADDRESS
        case _:
            message, hint = f"no connection to {place}: {why}", _CHECK_NETWORK
    return Unreachable(message, hint=hint, provider=call.provider)


def no_proxy(call: Call, host: str, port: int | None, failure: BaseException) -> Unreachable:
    """There is no connection to the proxy before a provider."""
    message = f"no connection to the proxy {_host_and_port(host, port)}: {reason(failure)}"
    return Unreachable(message, hint=_CHECK_PROXY, provider=call.provider)


def cut_off(call: Call) -> BrokenStream:
    """A body has not come to the end its head announced."""
    return broken_off(call, "the connection closed before its end")


def no_connection_in_time(call: Call, deadlines: Deadlines) -> UpstreamTimeout:
    """The connect deadline passed."""
    message = f"no connection to {origin(call.url)} within {deadlines.connect:g} s (connect deadline)"
    problem = UpstreamTimeout(message, hint=_CHECK_NETWORK, provider=call.provider)
    problem.reached = False
    return problem


def no_first_byte(call: Call, deadlines: Deadlines) -> UpstreamTimeout:
    """The first-byte deadline passed."""
    message = f"{_who(call)} sent no reply within {deadlines.first_byte:g} s (first_byte deadline)"
    return UpstreamTimeout(message, hint="raise the deadline for slow models, or stream", provider=call.provider)


def stalled(call: Call, idle: float) -> UpstreamTimeout:
    """The idle deadline passed between two pieces of a body."""
    message = f"{_who(call)} stopped sending for {idle:g} s (idle deadline)"
    return UpstreamTimeout(message, hint=_TRY_AGAIN, provider=call.provider)


def out_of_time(call: Call, total: float) -> UpstreamTimeout:
    """The total deadline passed before the end of a reply."""
    message = f"{_who(call)} did not complete its reply within {total:g} s (total deadline)"
    hint = "limit the tokens of the reply, or raise timeouts.total in bardo.toml"
    return UpstreamTimeout(message, hint=hint, provider=call.provider)


def broken_off(call: Call, why: str) -> BrokenStream:
    """The connection ended before the reply did."""
    return BrokenStream(f"{_who(call)} broke off its reply: {why}", hint=_TRY_AGAIN, provider=call.provider)


def unreadable(call: Call, why: str) -> MalformedReply:
    """The server does not speak HTTP, or packs its replies in a way that bardo cannot unpack."""
    if "content-encoding" in why:
        message = f"{_who(call)} compressed its reply, unasked, in a form that cannot be read"
        return MalformedReply(
            message, hint="switch compression off there, or in the proxy before it", provider=call.provider
        )
    # Only the parser's own words: what follows them quotes what came.
    message = f"what {_who(call)} sent is not an HTTP reply: {_lowered(why.partition(':')[0])}"
    return MalformedReply(message, hint=_CHECK_ADDRESS, provider=call.provider)


def refused_by_proxy(call: Call, status: int, why: str) -> Unreachable:
    """A proxy would not open a way to the provider."""
    message = f"the proxy opens no way to {origin(call.url)}: {status} {why}".rstrip()
    return Unreachable(message, hint=_CHECK_PROXY, provider=call.provider)


def closed() -> InternalError:
    """The transport was closed before its calls had ended."""
    return InternalError("the HTTP client was closed during a call")


def oversized(call: Call, limit: int) -> MalformedReply:
    """A whole body went over what may be held in memory."""
    message = f"the reply of {_who(call)} is larger than {limit} bytes"
    return MalformedReply(message, hint="stream the reply, or raise the limit", provider=call.provider)


def unsendable_address(call: Call) -> ConfigError:
    """The URL or the method is none."""
    return ConfigError(f"the address of {call.provider or 'a provider'} is not an http(s) URL", hint="check base_url")


def unsendable_header(call: Call) -> ConfigError:
    """A header holds what HTTP does not allow: a line break in a key, most often."""
    message = f"a header for {call.provider or 'a provider'} holds a character HTTP does not allow"
    return ConfigError(message, hint="check its key and headers: a pasted key may end in a line break")


def reason(failure: BaseException) -> str:
    """Return a cause in plain words. The library's own may quote the whole URL."""
    if isinstance(failure, socket.gaierror):
        return "its name cannot be resolved"
    if detail := getattr(failure, "verify_message", None):
        return f"certificate not trusted, {_lowered(detail)}"
    if detail := getattr(failure, "reason", None):
        return _lowered(str(detail).replace("_", " ").lower())
    if number := getattr(failure, "errno", None):
        return _lowered(os.strerror(number))
    return "the connection was closed"


def _lowered(words: str) -> str:
    return words[:1].lower() + words[1:]
