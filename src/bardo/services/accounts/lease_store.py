"""What processes have leased of the limits of keys, in the state database, and what of their budgets is spent.

Loads SQLAlchemy: import it where keys are opened, and nowhere above.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

from sqlalchemy import Connection, Engine, text

from bardo.accounting.limits import (
    COUNTED_SECONDS,
    WINDOWS,
    LeasedUsage,
    LeaseRequest,
    LimitName,
    Shortage,
    day_number,
    is_counted,
)
from bardo.adapters.stores.database.engines import transaction
from bardo.services.accounts.leases import (
    KEPT_SECONDS,
    STALE_SECONDS,
    Estimate,
    Lease,
    LeaseGrant,
    OwnRows,
    Spend,
    days_of,
    grant_of,
    is_about_money,
    rows_of,
    usage_of,
)

_PUT_LEASE = text(
    "INSERT INTO limit_leases (account, name, period, worker, amount) VALUES (:account, :name, :period, :worker, :amount) "
    "ON CONFLICT (account, name, period, worker) DO UPDATE SET amount = excluded.amount"
)
_REMOVE_LEASE = text(
    "DELETE FROM limit_leases WHERE account = :account AND name = :name AND period = :period AND worker = :worker"
)
_WINDOW_NAMES = ", ".join(f"'{name}'" for name in WINDOWS)
# What was used of a minute counts whoever used it; calls at a time and money only while their process lives.
_TOTALS = text(
    "SELECT l.name, l.period, SUM(l.amount) AS amount FROM limit_leases l LEFT JOIN limit_workers w ON w.worker = l.worker "
    f"WHERE l.account = :account AND (l.name IN ({_WINDOW_NAMES}) OR w.seen_at > :since) GROUP BY l.name, l.period"
)
_REMOVE_STALE = text(
    "DELETE FROM limit_leases WHERE worker NOT IN (SELECT worker FROM limit_workers WHERE seen_at > :since) "
    f"AND name NOT IN ({_WINDOW_NAMES})"
)
_REMOVE_WORKERS = text("DELETE FROM limit_workers WHERE seen_at <= :since")
_REMOVE_PAST = text(f"DELETE FROM limit_leases WHERE period < :first AND name IN ({_WINDOW_NAMES})")
_REMOVE_OWN = text(f"DELETE FROM limit_leases WHERE worker = :worker AND name NOT IN ({_WINDOW_NAMES})")
_WAS_SEEN = text("SELECT seen_at FROM limit_workers WHERE worker = :worker")
_SEEN = text(
    "INSERT INTO limit_workers (worker, seen_at) VALUES (:worker, :now) "
    "ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at"
)
_LIVING = text("SELECT COUNT(*) FROM limit_workers WHERE seen_at > :since")
_ESTIMATED = text("SELECT day, nanos FROM estimated_spend WHERE account = :account AND day >= :first AND day <= :last")
_REMOVE_ESTIMATED = text("DELETE FROM estimated_spend WHERE day < :before")
_ADD_ESTIMATED = text(
    "INSERT INTO estimated_spend (account, day, nanos, calls) VALUES (:account, :day, :nanos, 1) ON CONFLICT (account, day) "
    "DO UPDATE SET nanos = estimated_spend.nanos + excluded.nanos, calls = estimated_spend.calls + 1"
)


class SqlLeaseStore:
    """The leases of one process in SQLite or PostgreSQL."""

    def __init__(self, engine: Engine, worker: str, spend: Spend) -> None:
        self._engine = engine
        self._worker = worker
        self._spend = spend
        self._own = OwnRows()

    def claim(
        self, account: str, rows: Sequence[Lease], wants: Sequence[LeaseRequest], now: float
    ) -> LeaseGrant | Shortage:
        """Store `rows`, and lease what is wanted: all of it, or nothing where one limit has too little left."""
        with transaction(self._engine) as connection:
            self._live(connection, rows, now)
            used = self._used(connection, account, now, money=is_about_money(wants))
            found = grant_of(wants, used, now)
            granted = rows_of(account, wants, found) if isinstance(found, LeaseGrant) else []
            self._store(connection, granted)
        self._own.note([*rows, *granted])
        return found

    def sync(self, rows: Sequence[Lease], estimates: Sequence[Estimate], now: float) -> int:
        """Store rows and estimates, say that this process lives, and return how many do."""
        with transaction(self._engine) as connection:
            self._live(connection, rows, now)
            if estimates:
                connection.execute(_ADD_ESTIMATED, [one._asdict() for one in estimates])
            living = int(connection.scalar(_LIVING, {"since": now - STALE_SECONDS}) or 0)
        self._own.note(rows)
        return living

    def used(self, account: str, now: float) -> LeasedUsage:
        """Return what is used and leased of the limits of one key by all processes."""
        with transaction(self._engine) as connection:
            return self._used(connection, account, now, money=True)

    def clean(self, now: float) -> None:
        """Remove what counts no longer: rows of processes that are over, and of minutes that are past."""
        since, first = now - STALE_SECONDS, int(now) - COUNTED_SECONDS - 60
        with transaction(self._engine) as connection:
            connection.execute(_REMOVE_STALE, {"since": since})
            connection.execute(_REMOVE_WORKERS, {"since": since})
            connection.execute(_REMOVE_PAST, {"first": first})
            connection.execute(_REMOVE_ESTIMATED, {"before": day_number(now - KEPT_SECONDS)})

    def leave(self) -> None:
        """Return all leases of calls at a time and of money: this process ends. What it used of a minute counts on."""
        with transaction(self._engine) as connection:
            connection.execute(_REMOVE_OWN, {"worker": self._worker})
        self._own.clear()

    def close(self) -> None:
        """Do nothing: the engine is not only for leases."""

    def _live(self, connection: Connection, rows: Sequence[Lease], now: float) -> None:
        """Say that this process lives, and store rows; all of its own where others took it for over, and may have removed them."""
        seen = connection.scalar(_WAS_SEEN, {"worker": self._worker})
        connection.execute(_SEEN, {"worker": self._worker, "now": now})
        if seen is None or float(seen) <= now - STALE_SECONDS:
            self._store(connection, self._own.all())
        self._store(connection, rows)

    def _used(self, connection: Connection, account: str, now: float, *, money: bool) -> LeasedUsage:
        leases: dict[LimitName, dict[int, int]] = defaultdict(dict)
        for name, period, amount in connection.execute(_TOTALS, {"account": account, "since": now - STALE_SECONDS}):
            if is_counted((cast("LimitName", name), period), now):
                leases[cast("LimitName", name)][period] = int(amount)
        if not money:
            return LeasedUsage(leases, 0, 0)
        first, today = days_of(account, now)
        days = {
            int(day): int(nanos)
            for day, nanos in connection.execute(_ESTIMATED, {"account": account, "first": first, "last": today})
        }
        return usage_of(account, leases, days, self._spend, now)

    def _store(self, connection: Connection, rows: Iterable[Lease]) -> None:
        put, gone = [], []
        for account, (name, period), amount in rows:
            fields = {"account": account, "name": name, "period": period, "worker": self._worker}
            if amount > 0:
                put.append({**fields, "amount": amount})
            else:
                gone.append(fields)
        if put:
            connection.execute(_PUT_LEASE, put)
        if gone:
            connection.execute(_REMOVE_LEASE, gone)
