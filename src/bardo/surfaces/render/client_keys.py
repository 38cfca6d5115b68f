"""Keys of clients in words and for programs: what each may do, and never the key itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bardo.adapters.config.accounts import NANOS, Account


def account_fields(account: Account, now: float) -> dict[str, Any]:
    """Return what a key may do, without the key itself."""
    limits = dict(account.limits.named())
    return {
        "id": account.id,
        "name": account.name,
        "state": account.state(now),
        "tenant": account.tenant,
        "tags": account.tags,
        "models": account.models,
        "limits": {name: in_units(name, value) for name, value in limits.items()},
        "operator": account.operator,
        "unknown_cost": account.unknown_cost or None,
        "created_at": time_text(account.created),
        "expires_at": time_text(account.expires),
        "revoked_at": time_text(account.revoked),
    }


def in_units(name: str, value: int | None) -> int | float | None:
    """Return a limit in the unit of its name: money is US dollars."""
    return value / NANOS if value is not None and name.startswith("usd") else value


def time_text(seconds: float | None) -> str | None:
    """Write a Unix time in ISO 8601, or None if there is none."""
    return None if seconds is None else datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def limits_text(account: Account) -> str:
    """Write the limits of a key; empty where it has none."""
    return ", ".join(
        f"{name.replace('_', '-')} {in_units(name, value):g}"
        for name, value in account.limits.named()
        if value is not None
    )
