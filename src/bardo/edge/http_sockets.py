"""Sockets to providers: what both HTTP clients ask of one, and what a reply says of how long it is kept."""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Callable
from typing import Any

# Shorter than servers and networks usually keep a silent connection.
IDLE_SECONDS = 50.0
NAME_SECONDS = 60.0
_KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 4))
_TIMEOUT = re.compile(r"(?i)(?:^|[\s,;])timeout\s*=\s*\"?(\d{1,9})")


def watched_socket(info: tuple[Any, ...]) -> socket.socket:
    """Return a socket that keeps a silent connection alive: a model may think for longer than a firewall remembers it.

    `info` is a line of `getaddrinfo`.
    """
    family, kind, protocol, *_ = info
    carrier = socket.socket(family, kind, protocol)
    carrier.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        if hasattr(socket, option):
            carrier.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return carrier


def has_something_to_read(carrier: Any) -> bool:
    """Whether bytes, or an end, wait on a socket; also where there is none."""
    return carrier is None or reading_watch(carrier)()


def reading_watch(carrier: Any) -> Callable[[], bool]:
    """Return what tells whether bytes, or an end, wait on a socket, as long as it is open."""
    if not hasattr(select, "poll"):
        return lambda: bool(select.select([carrier], [], [], 0)[0])
    poll = select.poll()
    poll.register(carrier, select.POLLIN)
    return lambda: bool(poll.poll(0))


def idle_limit(header: str | None) -> float | None:
    """Return for how many seconds a `Keep-Alive` header says a connection is kept; a second, or half, is left for the way there."""
    found = _TIMEOUT.search(header) if header else None
    if found is None:
        return None
    seconds = float(found[1])
    return max(seconds - 1, seconds / 2)
