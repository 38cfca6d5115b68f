"""The figures of a key for its holder: how much of its limits is used, and what its calls cost by the inference log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.accounting.limits import (
    COUNTED_SECONDS,
    WINDOWS,
    LeasedUsage,
    LimitName,
    SessionAccount,
    day_number,
    next_day,
    next_month,
    session_of_id,
)
from bardo.adapters.config.accounts import NANOS, Account
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, day_of
from bardo.services.accounts.leases import LeaseStore
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a key to one model.

    `cost_known` counts those whose cost is known, which are summed in `nanos`, `estimated_nanos` a part of them; `charged` is what the key
    is charged for them.
    """

    provider: str
    model: str
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    nanos: int
    cost_known: int
    estimated_nanos: int = 0
    charged: int


class LogSpend:
    """Reads the sums that a log keeps. `path` is None if the log is off, and `charged` says what a key is charged for a cost.

    Its methods block; any thread may call them.

    The log is the one place where settled costs are kept. SQLAlchemy is loaded with the first question.
    """

    def __init__(self, path: str | Path | None, charged: Callable[[int], int] = int) -> None:
        self._path = path
        self._charged = charged
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def __call__(self, account: str, first_day: int, last_day: int) -> int:
        """Return the nano-dollars that a key is charged for its calls from the first to the last day (20261123), of known cost.

        Of a session of a key it is all of its calls that the log holds.
        """
        session = session_of_id(account)
        if session is not None:
            return self._in_session(session)
        return sum(usage.charged for usage in self.by_model(account, first_day, last_day))

    def _in_session(self, session: SessionAccount) -> int:
        """Return the nano-dollars that a key is charged for the calls of one of its sessions, of known cost."""
        from sqlalchemy import func, select

        from bardo.adapters.stores.log.database import inference_log

        row = inference_log.c
        statement = select(func.sum(row.cost_nanos)).where(row.key_id == session.key_id)
        if session.name:
            statement = statement.where(row.session == session.name)
        else:
            begin = day_of_log(session.day) * SECONDS_PER_DAY
            statement = statement.where(
                row.session.is_(None), row.started_at >= begin, row.started_at < begin + SECONDS_PER_DAY
            )
        with self._reading() as connection:
            return self._charged(int(connection.scalar(statement) or 0))

    def by_model(self, account: str, first_day: int, last_day: int) -> Sequence[ModelUsage]:
        """Return the calls of a key by model, the costliest first."""
        from sqlalchemy import func, select

        from bardo.adapters.stores.log.database import inference_rollup

        row = inference_rollup.c
        cost = func.sum(row.cost_nanos)
        sums = (row.calls, row.failed, row.input_tokens, row.output_tokens)
        statement = (
            select(
                row.provider,
                row.model,
                *map(func.sum, sums),
                cost,
                func.sum(row.cost_known),
                func.sum(row.estimated_nanos),
            )
            .where(row.key_id == account, row.day >= day_of_log(first_day), row.day <= day_of_log(last_day))
            .group_by(row.provider, row.model)
            .order_by(cost.desc(), row.provider, row.model)
        )
        with self._reading() as connection:
            rows = connection.execute(statement).all()
        counted = [(*row[:2], *map(int, row[2:])) for row in rows]
        names = ModelUsage.__struct_fields__
        return [ModelUsage(**dict(zip(names, [*row, self._charged(row[-3])], strict=True))) for row in counted]

    def close(self) -> None:
        """Close the log."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        from sqlalchemy.exc import SQLAlchemyError

        from bardo.adapters.stores.log.database import address_of, unusable

        if self._path is None:
            raise ConfigError(
                "a key has a budget, and the log is off: nobody knows what was spent",
                hint="set enabled = true under [log]",
            )
        try:
            with self._open_log(self._path).connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise unusable(address_of(self._path), error) from error

    def _open_log(self, path: str | Path) -> Engine:
        from bardo.adapters.stores.database.engines import without_transactions
        from bardo.adapters.stores.log.database import address_of, open_readable

        with self._lock:
            if self._engine is None:
                self._engine = without_transactions(open_readable(address_of(path)))
            return self._engine


def day_of_log(day: int) -> int:
    begin = datetime(day // 10_000, day // 100 % 100, day % 100, tzinfo=UTC)
    return day_of(begin.timestamp())


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
            "by_model": [_model(model) for model in self.models],
        }

    def reserved(self, name: LimitName) -> int:
        """Return what of a budget is held for calls that run, and what ended calls of unknown cost count as; the log knows the rest."""
        models = self.today if name == "usd_per_day" else self.models
        return max(0, self.used.total(name, self.now) - sum(model.charged for model in models))

    def _limit(self, name: LimitName, limit: int) -> dict[str, Any]:
        if name == "usd_per_session":
            return {"limit": limit / NANOS}  # Each session has its own.
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
            used = LeasedUsage({}, sum(usage.charged for usage in of_today), sum(model.charged for model in models))
        return KeyUsage(account=account, now=now, used=used, today=of_today, models=models)


def _sums(models: Sequence[ModelUsage], reserved: int) -> dict[str, Any]:
    calls, priced = sum(model.calls for model in models), sum(model.cost_known for model in models)
    return {
        "calls": calls,
        "failed": sum(model.failed for model in models),
        "input_tokens": sum(model.input_tokens for model in models),
        "output_tokens": sum(model.output_tokens for model in models),
        "spent_usd": sum(model.charged for model in models) / NANOS,
        "cost_usd": sum(model.nanos for model in models) / NANOS,
        "estimated_usd": sum(model.estimated_nanos for model in models) / NANOS,
        "reserved_usd": reserved / NANOS,
        "calls_of_unknown_cost": calls - priced,
    }


def _model(usage: ModelUsage) -> dict[str, Any]:
    return {
        "provider": usage.provider,
        "model": usage.model,
        "calls": usage.calls,
        "failed": usage.failed,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.nanos / NANOS if usage.cost_known else None,
        "estimated_usd": usage.estimated_nanos / NANOS,
        "charged_usd": usage.charged / NANOS if usage.cost_known else None,
        "calls_of_unknown_cost": usage.calls - usage.cost_known,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
