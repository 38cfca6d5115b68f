"""Where a URL leads: to a host whose addresses are looked at, directly or through a proxy, and what a request to it says of that."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec
import tomli

from bardo.adapters.log_filter import know
from bardo.values.errors import ConfigError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses of IPv6 whose last 32 bits are one of IPv4: NAT64 (RFC 6052), translated (RFC 2765), compatible (RFC 4291, 2.5.5.1).
_ENDS_IN_IPV4 = tuple(ipaddress.ip_network(text) for text in ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96"))
# NAT64 of a network of one's own (RFC 8215), where the address of IPv4 may stand in four places (RFC 6052, section 2.2).
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
_NAT64_BYTES = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))
# The end of an address of ISATAP (RFC 5214, section 6.1), before the address of IPv4.
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})
_SMALLEST_WRAPPED = 0x10000
"""`::` and `::1` are addresses of their own, and wrap none of IPv4."""


class ForbiddenAddress(OSError):
    """A name leads to an address that no provider has."""


def allowed_addresses(host: str, infos: Sequence[Any]) -> list[Any]:
    """Return the lines of `getaddrinfo` for a host that may be connected to. Raises ForbiddenAddress where none is left."""
    if _is_address(host):
        return list(infos)
    allowed = [info for info in infos if not is_forbidden(str(info[4][0]))]
    if infos and not allowed:
        raise ForbiddenAddress(f"{host} leads to an address that belongs to no provider")
    return allowed


def is_forbidden(text: str) -> bool:
    """Whether an address is one that no provider has; also where IPv6 only wraps it. A row of the catalog says so of each network."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return any(own in network for own in (address, *_wrapped(address)) for network in blocked_networks())


def _is_address(host: str) -> bool:
    """Whether a host is written as an address, and not as a name: decimal and octal forms are names here, which the system may resolve."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _wrapped(address: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """Return the addresses of IPv4 that one of IPv6 may lead to."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is not None:
        return (inner,)
    if address in _LOCAL_NAT64:
        candidates = (ipaddress.IPv4Address(bytes(address.packed[at] for at in places)) for places in _NAT64_BYTES)
        return tuple(candidate for candidate in candidates if candidate.packed[0])
    number = int(address)
    isatap = (number >> 32) & 0xFFFFFFFF in _ISATAP
    if isatap or (number >= _SMALLEST_WRAPPED and any(address in network for network in _ENDS_IN_IPV4)):
        return (ipaddress.IPv4Address(number & 0xFFFFFFFF),)
    return ()


_VARIABLES = {"http": "HTTP_PROXY", "https": "HTTPS_PROXY", "all": "ALL_PROXY"}
_SEPARATORS = re.compile(r"[,\s]+")


_WITH_PROXY_SETTINGS = ("darwin", "win32")


def proxy_for(scheme: str, host: str, port: int) -> str | None:
    """Return the URL of the proxy for calls to a host, or None if they go straight. Raises ConfigError for one that cannot be used."""
    if sys.platform not in _WITH_PROXY_SETTINGS and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # It loads the HTTP client of Python, which is for this alone.
    from urllib.request import getproxies, getproxies_environment, proxy_bypass

    proxies = getproxies()
    name = scheme if proxies.get(scheme) else "all"
    named = proxies.get(name)
    if not named:
        return None
    # Where no variable names a proxy, the settings of macOS and of Windows do, with exceptions of their own.
    from_variables = getproxies_environment()
    if is_excepted(host, port, from_variables.get("no", "")) if from_variables else proxy_bypass(host):
        return None
    proxy = named if "://" in named else f"http://{named}"
    if not _is_usable(proxy):
        kind = proxy.partition("://")[0].lower()
        why = f"is of the kind {kind}" if kind.isalnum() and kind not in ("http", "https") else "has no usable address"
        raise ConfigError(
            f"the proxy for {host} in {_VARIABLES[name]} {why}: bardo goes through http and https proxies",
            hint=f"write http://HOST:PORT in {_VARIABLES[name]}, or name {host} in NO_PROXY",
        )
    return proxy


def check_proxies(urls: Iterable[str]) -> None:
    """Raise ConfigError where calls to one of these addresses would go through a proxy that cannot be used."""
    for url in urls:
        way_of(url)


def _is_usable(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:
        return False


def is_excepted(host: str, port: int, exceptions: str) -> bool:
    """Whether `NO_PROXY` names a host: `*`, a name with all below it, an address, a network as in 10.0.0.0/8, each also with a port.

    A dot or `*.` before a name changes nothing, as with curl.
    """
    host = host.lower().partition("%")[0].rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    for word in filter(None, _SEPARATORS.split(exceptions)):
        place, named_port = _without_port(word)
        if named_port not in ("", str(port)):
            continue
        if place == "*":
            return True
        if address is not None:
            network = _network(place)
            if network is not None and address in network:
                return True
            continue
        with suppress(ValueError):
            name = _ascii_name(place.lower().removeprefix("*").strip("."))
            if name and (host == name or host.endswith(f".{name}")):
                return True
    return False


def _without_port(word: str) -> tuple[str, str]:
    """Return a host or network and the port behind it, which may be missing: brackets stand round an address of IPv6 that has one."""
    if word.startswith("["):
        place, _, rest = word[1:].partition("]")
        return place, rest.removeprefix(":")
    if word.count(":") == 1:
        place, _, port = word.partition(":")
        return place, port
    return word, ""


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def is_loopback(url: str) -> bool:
    """Say whether `url` leads to this machine, where a proxy from the environment has no business."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# A complete URL goes out as it is: undoing its escapes would break a signature.
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

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets of the address: the password, and the user and the password as they are sent."""
        proof = self.authorization.removeprefix("Basic ")
        return (b64decode(proof).decode().partition(":")[2], proof) if proof else ()


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
    """Return how a URL is reached, or None if it is no http(s) URL. Raises ConfigError for a proxy that cannot be used."""
    try:
        parts = urlsplit(url)
        secure, host, port = _place(parts)
        host_line = _host_line(parts)
        named = None if is_loopback(url) else proxy_for(parts.scheme, host, port)
        proxy = None if named is None else proxy_of(named)
    except ValueError:
        return None
    if proxy is not None:
        know(proxy.secrets)
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


class NetworkRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One network: whose it is, and the page that says so."""

    network: str
    owner: str
    source: str


@cache
def blocked_networks() -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    """Return the networks of all rows."""
    return tuple(ipaddress.ip_network(row.network) for row in network_rows())


def network_rows() -> list[NetworkRow]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/blocked_networks.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(text)["network"], list[NetworkRow])
