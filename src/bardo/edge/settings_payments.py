"""`[payments]` of `bardo.toml`: the wallet that pays for calls, and what it may pay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from bardo.accounting.payments import METHODS, Method, PaymentRules
from bardo.catalog.payment_rows import payment_assets
from bardo.edge.settings_problems import Place
from bardo.values.cost import nanos_of
from bardo.values.errors import ConfigError
from bardo.values.redaction import looks_like_key

Usd = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_SERVER = re.compile(r"https?://[^\s]+")


class PaymentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wallet that pays providers which ask for a payment of each call (x402), and what it may pay.

    `wallet_key_env` names the variable that holds its private key; empty: nothing is paid. `order` are the ways to pay, the first one that
    works is taken: `diem` is a provider's daily allocation, `wallet` a payment, `prepaid` the balance of an API key. Caps are US dollars;
    `tenants` and `subsystems` have daily caps by name. Only `recipients` are paid, in `assets` on `networks`. `most_of_estimate`: a call
    that costs more than so many times its estimate is not paid; 0 is no bound. `wait_seconds`: how long a call waits while another one
    pays for the same. `servers` are JSON-RPC addresses by network, which are asked what became of a payment.
    """

    wallet_key_env: str = ""
    order: tuple[Method, ...] = METHODS
    usd_per_call: Usd = 0.1
    usd_per_day: Usd = 5.0
    tenants: dict[str, Usd] = {}
    subsystems: dict[str, Usd] = {}
    recipients: tuple[str, ...] = ()
    networks: tuple[str, ...] = ("eip155:8453",)
    assets: tuple[str, ...] = ("USDC",)
    most_of_estimate: Annotated[float, msgspec.Meta(ge=0)] = 3.0
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] = 30.0
    servers: dict[str, str] = {}


def check_payments(settings: PaymentSettings, place: Place) -> None:
    """Raise ConfigError for a name of a variable, a recipient, a network, an asset or an address of a server that is none."""
    name = settings.wallet_key_env
    if name and (not _VARIABLE.fullmatch(name) or looks_like_key(name) or len(name) > 60):
        message = f"{place.of('wallet_key_env')}: wallet_key_env is not the name of an environment variable"
        raise ConfigError(message, hint='keep the key in a variable and name it: wallet_key_env = "WALLET_KEY"')
    for recipient in settings.recipients:
        if not _ADDRESS.fullmatch(recipient):
            hint = "write addresses as 0x and 40 hexadecimal digits"
            raise ConfigError(f"{place.of('recipients')}: {recipient!r} is no address", hint=hint)
    _check_known(settings.networks, {asset.network: asset.title for asset in payment_assets()}, "networks", place)
    _check_known(settings.servers, {asset.network: asset.title for asset in payment_assets()}, "servers", place)
    _check_known(settings.assets, {asset.symbol: asset.symbol for asset in payment_assets()}, "assets", place)
    for network, address in settings.servers.items():
        if not _SERVER.fullmatch(address):
            hint = "write the address of a server that speaks JSON-RPC: https://…"
            raise ConfigError(f"{place.of('servers')}: the server of {network} has no address", hint=hint)


def _check_known(names: tuple[str, ...] | Mapping[str, str], known: Mapping[str, str], key: str, place: Place) -> None:
    for name in names:
        if name not in known:
            listed = ", ".join(f"{one} ({title})" if one != title else one for one, title in known.items())
            raise ConfigError(f"{place.of(key)}: bardo cannot pay with {name!r}", hint=f"there are: {listed}")


def rules_of(settings: PaymentSettings) -> PaymentRules:
    """Return what may be paid, with caps in nano-dollars."""
    return PaymentRules(
        per_call=nanos_of(settings.usd_per_call),
        per_day=nanos_of(settings.usd_per_day),
        recipients=frozenset(one.lower() for one in settings.recipients),
        networks=frozenset(settings.networks),
        symbols=frozenset(settings.assets),
        tenants={name: nanos_of(usd) for name, usd in settings.tenants.items()},
        subsystems={name: nanos_of(usd) for name, usd in settings.subsystems.items()},
        over_estimate=settings.most_of_estimate,
    )
