"""How often signing in may fail: at each address and at all together, so that nobody finds a key by trying.

A try that turns out right costs nothing, and an address that has not failed yet is not held up by those that have.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from bardo.surfaces.gateway.http import Scope, header

_MOST_ADDRESSES = 10_000
_NETWORK_BITS = 64
"""Whoever has one address of IPv6 has all of its network."""


class Allowance(NamedTuple):
    """So many tries at once, and one more after each `seconds`."""

    tries: int
    seconds: float


OF_ONE = Allowance(5, 10.0)
OF_FAILED = Allowance(50, 1.0)
"""Of all addresses that have failed before, together."""
OF_NEW = Allowance(200, 0.1)
"""Of all addresses that have not."""


class _Bucket:
    """The tries that are left of an allowance."""

    def __init__(self, allowance: Allowance, now: float) -> None:
        self._allowance = allowance
        self._left = float(allowance.tries)
        self._at = now

    def wait(self, now: float) -> float:
        """Return after how many seconds there is a try left, 0 where there is one."""
        most, seconds = self._allowance
        self._left = min(most, self._left + max(0.0, now - self._at) / seconds)
        self._at = now
        return max(0.0, (1 - self._left) * seconds)

    def is_full(self, now: float) -> bool:
        """Whether nothing of it is used."""
        self.wait(now)
        return self._left >= self._allowance.tries

    def take(self, tries: int = 1) -> None:
        """Use tries, or give them back."""
        self._left -= tries


class SignInLimits:
    """Counts the tries of one process. `watch` gives seconds that never jump."""

    def __init__(self, watch: Callable[[], float]) -> None:
        self._watch = watch
        self._failed = _Bucket(OF_FAILED, watch())
        self._new = _Bucket(OF_NEW, watch())
        self._addresses: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, scope: Scope) -> SignInTry:
        """Take a try before the key is looked at, since others may come meanwhile."""
        now, address = self._watch(), _address_of(scope)
        own = self._addresses.get(address)
        if own is None:
            own = self._addresses[address] = _Bucket(OF_ONE, now)
            if len(self._addresses) > _MOST_ADDRESSES:
                self._addresses.popitem(last=False)
        self._addresses.move_to_end(address)
        together = self._new if own.is_full(now) else self._failed
        wait = max(own.wait(now), together.wait(now))
        buckets = () if wait else (own, together)
        for bucket in buckets:
            bucket.take()
        return SignInTry(wait=math.ceil(wait), buckets=buckets)


class SignInTry(NamedTuple):
    """A try. `wait`: it may not be made, and in so many seconds one may."""

    wait: int
    buckets: tuple[_Bucket, ...]

    def was_right(self) -> None:
        """Give the try back."""
        for bucket in self.buckets:
            bucket.take(-1)


def _address_of(scope: Scope) -> str:
    """Return the address that a request came from: where a proxy of this machine sent it, what that one says of it."""
    client = scope.get("client")
    found = _parsed(str(client[0])) if client else None
    if found is not None and found.is_loopback:
        # The last address is the one that the proxy itself has seen.
        found = _parsed(header(scope, b"x-forwarded-for").rpartition(",")[2].strip()) or found
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))
    return str(found)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
