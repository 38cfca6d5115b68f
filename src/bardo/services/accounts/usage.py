"""What a key has used of its limits, and what its calls cost: for whoever holds the key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bardo.accounting.limits import COUNTED_SECONDS, WINDOWS, LeasedUsage, LimitName, day_number, next_day, next_month
from bardo.adapters.config.accounts import NANOS, Account
from bardo.services.accounts.leases import LeaseStore
from bardo.services.accounts.spend import LogSpend, ModelUsage


class KeyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one key at `now`, Unix time. `models` are the calls of this month."""

    account: Account
    now: float = 0.0
    used: LeasedUsage = LeasedUsage({}, 0, 0)
    today: Sequence[ModelUsage] = ()
    models: Sequence[ModelUsage] = ()

    def fields(self) -> dict[str, Any]:
        """Return the figures as JSON: money in US dollars, times in ISO 8601."""
        own = self.account
        return {
            "key": {
                "id": own.id,
                "name": own.name,
                "tags": own.tags,
                "models": own.models,
                "expires_at": None if own.expires is None else _time(own.expires),
            },
            "limits": {name: self._limit(name, limit) for name, limit in own.limits.named() if limit is not None},
            "today": _sums(self.today, self.reserved("usd_per_day")),
            "this_month": _sums(self.models, self.reserved("usd_per_month")),
            "by_model": [_model(one) for one in self.models],
        }

    def reserved(self, name: LimitName) -> int:
        """Return what of a budget is held for calls that run, and what ended calls of unknown cost count as; the log knows the rest."""
        models = self.today if name == "usd_per_day" else self.models
        return max(0, self.used.total(name, self.now) - sum(one.charged for one in models))

    def _limit(self, name: LimitName, limit: int) -> dict[str, Any]:
        used = self.used.total(name, self.now)
        unit = 1 if name in WINDOWS or name == "concurrency" else NANOS
        fields: dict[str, Any] = {"limit": limit, "used": used, "remaining": max(0, limit - used)}
        if unit != 1:
            begins = next_day(self.now) if name == "usd_per_day" else next_month(self.now)
            reserved = self.reserved(name)
            fields |= {"spent": used - reserved, "reserved": reserved}
            fields = {key: value / unit for key, value in fields.items()} | {"resets_at": _time(begins)}
        elif name in WINDOWS:
            fields["window_seconds"] = COUNTED_SECONDS - 2
        return fields


class UsageReader:
    """Reads the figures of keys. Its methods block."""

    def __init__(self, store: LeaseStore | None, spend: LogSpend, *, has_log: bool) -> None:
        self._store = store
        self._spend = spend
        self._has_log = has_log

    def read(self, account: Account, now: float) -> KeyUsage:
        """Return the figures of one key. Raises OperatorError where a database cannot be read."""
        today = day_number(now)
        first = today // 100 * 100 + 1
        models = self._spend.by_model(account.id, first, today) if self._has_log else ()
        of_today = self._spend.by_model(account.id, today, today) if self._has_log else ()
        if self._store is not None and (self._has_log or account.limited):
            used = self._store.used(account.id, now)
        else:
            used = LeasedUsage({}, sum(one.charged for one in of_today), sum(one.charged for one in models))
        return KeyUsage(account=account, now=now, used=used, today=of_today, models=models)


def _sums(models: Sequence[ModelUsage], reserved: int) -> dict[str, Any]:
    calls, known = sum(one.calls for one in models), sum(one.cost_known for one in models)
    return {
        "calls": calls,
        "failed": sum(one.failed for one in models),
        "input_tokens": sum(one.input_tokens for one in models),
        "output_tokens": sum(one.output_tokens for one in models),
        "spent_usd": sum(one.charged for one in models) / NANOS,
        "cost_usd": sum(one.nanos for one in models) / NANOS,
        "estimated_usd": sum(one.estimated_nanos for one in models) / NANOS,
        "reserved_usd": reserved / NANOS,
        "calls_of_unknown_cost": calls - known,
    }


def _model(one: ModelUsage) -> dict[str, Any]:
    return {
        "provider": one.provider,
        "model": one.model,
        "calls": one.calls,
        "failed": one.failed,
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "cost_usd": one.nanos / NANOS if one.cost_known else None,
        "estimated_usd": one.estimated_nanos / NANOS,
        "charged_usd": one.charged / NANOS if one.cost_known else None,
        "calls_of_unknown_cost": one.calls - one.cost_known,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
