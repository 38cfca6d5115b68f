"""Networks that the name of a provider must not lead to, from `catalog/data/blocked_networks.toml`."""

from __future__ import annotations

import ipaddress
import tomllib
from functools import cache
from importlib.resources import files

import msgspec


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
    return msgspec.convert(tomllib.loads(text)["network"], list[NetworkRow])
