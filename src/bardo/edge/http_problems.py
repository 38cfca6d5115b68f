"""What can go wrong on the way to a provider, said in words that help: which host, what happened, what to check.

Nothing here quotes a header, a key, a path or a query string.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bardo.values.errors import (
    BardoError,
    BrokenStream,
    ConfigError,
    InternalError,
    MalformedReply,
    Unreachable,
    UpstreamTimeout,
)

if TYPE_CHECKING:
    from pyreqwest.exceptions import DetailedPyreqwestError

    from bardo.edge.http import Call, Deadlines

_CHECK_ADDRESS = "check base_url, and that the server runs and listens there"
_CHECK_NAME = "check the host name in base_url, and this machine's network and DNS"
_CHECK_TLS = "check base_url: https or http, the port, and whether this machine trusts the server's certificate"
_CHECK_NETWORK = "check this machine's network, firewall and proxy settings"
_TRY_AGAIN = "try again, or send the call to another provider"
_OS_ERROR_NUMBER = re.compile(r" \(os error \d+\)")


def origin(url: str) -> str:
    """Return the host and port of `url`, the part that is safe to show."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "its address"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{port}" if port else host or "its address"


def unanswered(failure: DetailedPyreqwestError, call: Call, deadlines: Deadlines) -> BardoError:
    """Name the failure of a call that got no reply."""
    from pyreqwest.exceptions import BuilderError, ClientClosedError, ConnectTimeoutError, DecodeError

    if isinstance(failure, ConnectTimeoutError):
        return no_connection_in_time(call, deadlines)
    if isinstance(failure, TimeoutError):
        return no_first_byte(call, deadlines)
    if isinstance(failure, ClientClosedError):
        return InternalError("the HTTP client was closed during a call")
    if isinstance(failure, BuilderError):
        return unsendable_address(call)
    if isinstance(failure, DecodeError):
        return not_http(call, reason(failure))
    return unreachable(call, failure)


def unreachable(call: Call, failure: DetailedPyreqwestError) -> BardoError:
    """Tell a connection that could not be made from one that closed without an answer."""
    trail = " / ".join(_causes(failure))
    place, why = origin(call.url), reason(failure)
    if "(Connect)" not in trail:
        return broken_off(call, f"no answer came, {why}")
    if "dns error" in trail:
        return Unreachable(f"the name in {place} cannot be resolved", hint=_CHECK_NAME, provider=call.provider)
    if "refused" in why:
        return Unreachable(f"{place} refuses connections", hint=_CHECK_ADDRESS, provider=call.provider)
    if "certificate" in why or "corrupt message" in why or "handshake" in why:
        return Unreachable(f"no TLS connection to {place}: {why}", hint=_CHECK_TLS, provider=call.provider)
    return Unreachable(f"no connection to {place}: {why}", hint=_CHECK_NETWORK, provider=call.provider)


def no_connection_in_time(call: Call, deadlines: Deadlines) -> UpstreamTimeout:
    """The connect deadline passed."""
    message = f"no connection to {origin(call.url)} within {deadlines.connect:g} s (connect deadline)"
    return UpstreamTimeout(message, hint=_CHECK_NETWORK, provider=call.provider)


def no_first_byte(call: Call, deadlines: Deadlines) -> UpstreamTimeout:
    """The first-byte deadline passed."""
    message = f"{origin(call.url)} sent no reply within {deadlines.first_byte:g} s (first_byte deadline)"
    return UpstreamTimeout(message, hint="raise the deadline for slow models, or stream", provider=call.provider)


def stalled(call: Call, idle: float) -> UpstreamTimeout:
    """The idle deadline passed between two pieces of a body."""
    message = f"{origin(call.url)} stopped sending for {idle:g} s (idle deadline)"
    return UpstreamTimeout(message, hint=_TRY_AGAIN, provider=call.provider)


def broken_off(call: Call, why: str) -> BrokenStream:
    """The connection ended before the reply did."""
    return BrokenStream(f"{origin(call.url)} broke off its reply: {why}", hint=_TRY_AGAIN, provider=call.provider)


def not_http(call: Call, why: str) -> MalformedReply:
    """What answers there speaks something else."""
    message = f"what {origin(call.url)} sent is not an HTTP reply: {why}"
    return MalformedReply(message, hint=_CHECK_ADDRESS, provider=call.provider)


def oversized(call: Call, limit: int) -> MalformedReply:
    """A whole body went over what may be held in memory."""
    message = f"the reply of {origin(call.url)} is larger than {limit} bytes"
    return MalformedReply(message, hint="stream the reply, or raise the limit", provider=call.provider)


def unsendable_address(call: Call) -> ConfigError:
    """The URL or the method is none."""
    return ConfigError(f"the address of {call.provider or 'a provider'} is not an http(s) URL", hint="check base_url")


def unsendable_header(call: Call) -> ConfigError:
    """A header holds what HTTP does not allow: a line break in a key, most often."""
    message = f"a header for {call.provider or 'a provider'} holds a character HTTP does not allow"
    return ConfigError(message, hint="check its key and headers: a pasted key may end in a line break")


def reason(failure: DetailedPyreqwestError) -> str:
    """Return the innermost cause in words; the outer ones quote the whole URL."""
    causes = _causes(failure)
    innermost = causes[-1] if causes else ""
    if not innermost or "url (" in innermost:
        return "the connection failed"
    plain = _OS_ERROR_NUMBER.sub("", innermost)
    return plain[0].lower() + plain[1:]


def _causes(failure: DetailedPyreqwestError) -> list[str]:
    return [cause["message"] for cause in failure.details.get("causes") or []]
