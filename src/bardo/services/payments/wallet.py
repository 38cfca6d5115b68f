"""The wallet that a configuration describes, and what pays with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from bardo.adapters.config.accounts import PaymentSettings, rules_of
from bardo.adapters.net.calls import Transport
from bardo.services.payments.network import PaymentNetworks
from bardo.services.payments.packages import INSTALL
from bardo.services.payments.payer import Payments, Wallet
from bardo.services.payments.signer import Signer
from bardo.values.errors import ConfigError

PACKAGES = ("eth_account", "x402")


def open_payments(
    settings: PaymentSettings,
    transport: Transport,
    ledger_path: Path | str,
    environment: Mapping[str, str] | None,
    *,
    clock: Callable[[], float],
) -> Payments | None:
    """Return what pays for calls, or None if no wallet is named. Opens nothing.

    Raises ConfigError where the wallet's key is not set or is none, or the packages are not installed.
    """
    if not settings.wallet_key_env:
        return None
    wallet = Wallet(
        signer=signer_of(settings, environment),
        rules=rules_of(settings),
        order=settings.order,
        ledger_path=ledger_path,
        wait_seconds=settings.wait_seconds,
    )
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        raise ConfigError(f"[payments] needs packages that are not installed: {names}", hint=INSTALL)
    return Payments(wallet, PaymentNetworks(transport, settings.servers), clock=clock)


def signer_of(settings: PaymentSettings, environment: Mapping[str, str] | None = None) -> Signer:
    """Return the signer of the wallet that is named. Raises ConfigError where its key is not set, or is none."""
    variable = settings.wallet_key_env
    key = (os.environ if environment is None else environment).get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"the private key of the wallet is not set: payments.wallet_key_env names {variable}",
            hint=f"set {variable} where bardo runs, or leave wallet_key_env out",
        )
    return Signer(key, variable)
