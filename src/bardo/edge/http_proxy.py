"""Which proxy of the environment, or of the system's settings, stands between bardo and a host."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from bardo.values.errors import ConfigError


def proxy_for(scheme: str, host: str) -> str | None:
    """Return the URL of the proxy for calls to `host`, or None where they go straight. Raises ConfigError for one that cannot be used."""
    proxies = getproxies()
    named = proxies.get(scheme) or proxies.get("all")
    if not named or proxy_bypass(host) or _is_within(host, proxies.get("no", "")):
        return None
    proxy = named if "://" in named else f"http://{named}"
    if not _is_usable(proxy):
        hint = "check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the host in NO_PROXY"
        raise ConfigError(f"the proxy for {host} is not an http(s) proxy", hint=hint)
    return proxy


def _is_usable(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def is_loopback(url: str) -> bool:
    """Say whether `url` leads to this machine, where a proxy from the environment has no business."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_within(host: str, exceptions: str) -> bool:
    """Say whether `host` is an address in one of the networks of `exceptions`, as in `10.0.0.0/8`: the library knows names only."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in map(_network, exceptions.split(",")) if network is not None)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None
