"""The tokens that payments are made in, from `catalog/data/payment_assets.toml`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
import tomli

_NANOS = 9
"""Digits of a nano-dollar behind the point of a dollar."""


class PaymentAsset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token that is worth one US dollar, on one network.

    `network` is a CAIP-2 name, `v1_network` what version 1 of x402 calls it. `name` and `version` are the contract's EIP-712 domain:
    they are never taken from a provider.
    """

    network: str
    v1_network: str
    title: str
    symbol: str
    address: str
    decimals: int
    name: str
    version: str

    @property
    def chain_id(self) -> int:
        """The number of the network in a signature."""
        return int(self.network.partition(":")[2])

    def nanos(self, amount: int) -> int:
        """Return what an amount in the token's smallest unit is worth, in nano-dollars, rounded up."""
        if self.decimals <= _NANOS:
            return int(amount * 10 ** (_NANOS - self.decimals))
        return int(-(-amount // 10 ** (self.decimals - _NANOS)))


@cache
def payment_assets() -> tuple[PaymentAsset, ...]:
    """Return the tokens that are known."""
    text = files("bardo.catalog").joinpath("data/payment_assets.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["assets"], list[PaymentAsset]))


def payment_asset(network: str, address: str) -> PaymentAsset | None:
    """Return the token at an address of a network, which is named as either version of x402 does, or None if it is not known."""
    for asset in payment_assets():
        if network in (asset.network, asset.v1_network) and address.lower() == asset.address.lower():
            return asset
    return None
