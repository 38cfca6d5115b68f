"""Which addresses a host's name may lead to. The network's own answer is looked at, so that no spelling and no change of the name matters.

Whoever holds the domain of a provider decides what its name resolves to, at each moment. It shall not lead to the services that hand out a
machine's own credentials. An address that an operator wrote as one is used as it is.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# AWS (also for containers and pods) and nearly all other clouds use link-local addresses of IPv4; AWS the two of IPv6 as well
# (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html). Alibaba Cloud has 100.100.100.200, Oracle Cloud
# 192.0.0.192 (2026-11-24). Names under `.local` lead to machines in a house by link-local addresses of IPv6, which are not refused.
_METADATA = tuple(
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "fd00:ec2::254/128", "fd00:ec2::23/128", "100.100.100.200/32", "192.0.0.192/32")
)
# Addresses of IPv6 whose last 32 bits are one of IPv4: NAT64 (RFC 6052, RFC 8215), translated (RFC 2765), compatible (RFC 4291, 2.5.5.1).
_ENDS_IN_IPV4 = tuple(
    ipaddress.ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")
)
_SMALLEST_WRAPPED = 0x10000
"""`::` and `::1` are addresses of their own, and wrap none of IPv4."""


class ForbiddenAddress(OSError):
    """A name leads to an address that no provider has."""


def allowed_addresses(host: str, infos: Sequence[Any]) -> list[Any]:
    """Return the lines of `getaddrinfo` for a host that may be connected to. Raises ForbiddenAddress where none is left."""
    if _is_address(host):
        return list(infos)
    found = [info for info in infos if not is_forbidden(str(info[4][0]))]
    check_some(host, found, infos)
    return found


def check_some(host: str, found: Sequence[Any], all_of_them: Iterable[Any]) -> None:
    """Raise ForbiddenAddress where a name has addresses, and none of them is allowed."""
    if not found and any(True for _ in all_of_them):
        raise ForbiddenAddress(f"{host} leads to an address that belongs to no provider")


def is_forbidden(text: str) -> bool:
    """Whether an address is one of a cloud's metadata, of nobody, or of many machines at once; also where IPv6 only wraps it."""
    address = _unwrapped(ipaddress.ip_address(text.partition("%")[0]))
    return address.is_unspecified or address.is_multicast or any(address in network for network in _METADATA)


def _is_address(host: str) -> bool:
    """Whether a host is written as an address, and not as a name: decimal and octal forms are names here, which the system may resolve."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _unwrapped(address: _Address) -> _Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and int(address) >= _SMALLEST_WRAPPED and any(address in network for network in _ENDS_IN_IPV4):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address
