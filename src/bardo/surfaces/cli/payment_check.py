"""What `bardo doctor` says of the wallet that pays for calls: its address, its caps, and what was spent today. Its key is never shown."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.util import find_spec

from bardo.accounting.payments import Payer, dollars
from bardo.adapters.config.settings import Settings, state_path
from bardo.surfaces.cli.provider_checks import Finding
from bardo.values.errors import BardoError


def check_payments(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Return what is found of the wallet; nothing where none is named."""
    if not settings.payments.wallet_key_env:
        return []
    try:
        return [_wallet_finding(settings, environment)]
    except BardoError as problem:
        return [Finding(area="payments", status="problem", found=problem.message, fix=problem.hint)]


def _wallet_finding(settings: Settings, environment: Mapping[str, str]) -> Finding:
    """Return the wallet as a finding. Raises ConfigError and DatabaseProblem where it cannot pay."""
    from bardo.adapters.config.accounts import rules_of
    from bardo.services.payments.packages import INSTALL
    from bardo.services.payments.wallet import PACKAGES, signer_of

    rules = rules_of(settings.payments)
    signer = signer_of(settings.payments, environment)
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        found = f"{' and '.join(missing)} are not installed"
        return Finding(area="payments", status="problem", found=found, fix=INSTALL)
    spent, still_open = _ledger_figures(settings, environment)
    caps = f"at most {dollars(rules.per_call)} a call and {dollars(rules.per_day)} a day"
    found = f"wallet {signer.address}, {caps}, {dollars(spent)} spent today"
    if still_open:
        found = f"{found}, {still_open} of unknown outcome"
        return Finding(area="payments", status="warning", found=found, fix="bardo payments reconcile")
    if not rules.recipients:
        fix = "name the addresses that may be paid: payments.recipients"
        return Finding(area="payments", status="warning", found=f"{found}; nobody may be paid", fix=fix)
    return Finding(area="payments", status="ok", found=found)


def _ledger_figures(settings: Settings, environment: Mapping[str, str]) -> tuple[int, int]:
    """Return what was spent today, in nano-dollars, and how many payments have an unknown outcome. Creates nothing."""
    from bardo.services.payments.database import find_ledger
    from bardo.services.payments.ledger import day_of

    ledger = find_ledger(state_path(settings, environment))
    if ledger is None:
        return 0, 0
    try:
        unknown = ledger.latest(1000, states=("unknown",))
        return ledger.spent(day_of(time.time()), Payer()).day, len(unknown)
    finally:
        ledger.close()
