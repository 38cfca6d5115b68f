"""Which addresses a host's name may lead to. The network's own answer is looked at, so that no spelling and no change of the name matters.

Whoever holds the domain of a provider decides what its name resolves to, at each moment. It shall not lead to the services that hand out a
machine's own credentials. An address that an operator wrote as one is used as it is.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any

from bardo.catalog.network_rows import blocked_networks

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
    found = [info for info in infos if not is_forbidden(str(info[4][0]))]
    check_some(host, found, infos)
    return found


def check_some(host: str, found: Sequence[Any], all_of_them: Iterable[Any]) -> None:
    """Raise ForbiddenAddress where a name has addresses, and none of them is allowed."""
    if not found and any(True for _ in all_of_them):
        raise ForbiddenAddress(f"{host} leads to an address that belongs to no provider")


def is_forbidden(text: str) -> bool:
    """Whether an address is one that no provider has; also where IPv6 only wraps it. A row of the catalog says so of each network."""
    address = ipaddress.ip_address(text.partition("%")[0])
    return any(one in network for one in (address, *_wrapped(address)) for network in blocked_networks())


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
        return tuple(one for one in candidates if one.packed[0])
    number = int(address)
    isatap = (number >> 32) & 0xFFFFFFFF in _ISATAP
    if isatap or (number >= _SMALLEST_WRAPPED and any(address in network for network in _ENDS_IN_IPV4)):
        return (ipaddress.IPv4Address(number & 0xFFFFFFFF),)
    return ()
