"""Where a URL leads: to a host, directly or through a proxy, and what a request to it says of that."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from bardo.edge.http_proxy import is_loopback, proxy_for

# What is complete goes out as it is: undoing its escapes would break a signature.
_COMPLETE = re.compile(r"[!-~]*")
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_HOST_LINE = re.compile(r"(?:\[[0-9a-fA-F:.]+(?:%[-.\w]+)?\]|[^\s%\[\]<>\\^`{|}:/?#@]+)(?::\d*)?")
_ZONE = re.compile(r"%[^\]]*")
# Names with these characters lead elsewhere by the newer rules of domain names (UTS 46) than by those of Python.
_AMBIGUOUS = frozenset("\u00df\u03c2\u200c\u200d")


class Proxy(NamedTuple):
    """A proxy: its address and the value of `proxy-authorization`, empty where it asks for none."""

    secure: bool
    host: str
    port: int
    authorization: str


class Address(NamedTuple):
    """Where calls go: what makes two calls share connections."""

    secure: bool
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def first_stop(self) -> Address | Proxy:
        """Whom the connection itself is made to."""
        return self.proxy or self

    @property
    def tunnelled(self) -> bool:
        """Whether a proxy has to open a way through which TLS is spoken with the host."""
        return self.secure and self.proxy is not None


class RequestRoute(NamedTuple):
    """An address, and what a request to one URL says of it: the `Host` line, the request's target, and headers of the URL or the proxy."""

    address: Address
    host: bytes
    target: bytes
    headers: tuple[tuple[str, str], ...] = ()


def way_of(url: str) -> RequestRoute | None:
    """Return how a URL is reached; None where it is no http(s) URL. Raises ConfigError for a proxy that cannot be used."""
    try:
        parts = urlsplit(url)
        secure, host, port = _place(parts)
        host_line = _host_line(parts)
        named = None if is_loopback(url) else proxy_for(parts.scheme, host)
        proxy = None if named is None else proxy_of(named)
    except ValueError:
        return None
    path = parts.path or "/"
    target = _escaped(f"{path}?{parts.query}" if parts.query else path)
    headers = _authorization("authorization", parts)
    if proxy is not None and not secure:
        target = f"http://{host_line}{target}"
        headers += (("proxy-authorization", proxy.authorization),) if proxy.authorization else ()
    return RequestRoute(Address(secure, host, port, proxy), host_line.encode(), target.encode(), headers)


def proxy_of(url: str) -> Proxy:
    """Return the proxy at an http(s) URL, which may hold a user and a password. Raises ValueError where it is none."""
    parts = urlsplit(url)
    secure, host, port = _place(parts)
    return Proxy(secure, host, port, dict(_authorization("", parts)).get("", ""))


def _place(parts: SplitResult) -> tuple[bool, str, int]:
    """Return whether TLS is spoken, with which host, and at which port. Raises ValueError where a URL leads nowhere."""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("no http(s) URL")
    secure = parts.scheme == "https"
    return secure, _ascii_name(parts.hostname), parts.port or (443 if secure else 80)


def _ascii_name(host: str) -> str:
    if not _AMBIGUOUS.isdisjoint(host):
        raise ValueError("a name that has to be written in its ASCII form")
    host.encode("idna")
    return host if host.isascii() else host.encode("idna").decode()


def _host_line(parts: SplitResult) -> str:
    line = parts.netloc.rpartition("@")[2]
    if _HOST_LINE.fullmatch(line) is None:
        raise ValueError("no host")
    if not line.isascii():
        name, colon, port = line.partition(":")
        return f"{_ascii_name(name)}{colon}{port}"
    return _ZONE.sub("", line)


def _authorization(name: str, parts: SplitResult) -> tuple[tuple[str, str], ...]:
    """Return the header that says the user and the password of a URL, where it has them."""
    if parts.username is None and parts.password is None:
        return ()
    words = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return ((name, f"Basic {b64encode(words.encode()).decode()}"),)


def _escaped(target: str) -> str:
    return target if _COMPLETE.fullmatch(target) else quote(target, safe=_PRINTABLE)
