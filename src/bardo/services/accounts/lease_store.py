"""The leases of the limits of keys by processes, in the state database, and the spent part of their budgets.

Loads SQLAlchemy: import it where keys are opened, and nowhere above.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Engine, text

from bardo.accounting.limits import (
    COUNTED_SECONDS,
    MONEY,
    WINDOWS,
    LeasedUsage,
    LeaseRequest,
    LimitName,
    Shortage,
    day_number,
    is_counted,
)
from bardo.adapters.stores.database.engines import Statement, execute_together, is_file, transaction, without_turns
from bardo.adapters.stores.database.problems import DatabaseUnusable
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
_SERVER_CLOCK = "extract(epoch FROM clock_timestamp())"
"""The time of PostgreSQL, by which processes on machines whose clocks differ are seen alike."""
_ALIVE = f":now - {STALE_SECONDS}"
# What was used of a minute counts whoever used it; calls at a time and money only while their process lives.
_TOTALS = text(
    "SELECT l.name, l.period, SUM(l.amount) AS amount FROM limit_leases l LEFT JOIN limit_workers w ON w.worker = l.worker "
    f"WHERE l.account = :account AND (l.name IN {WINDOWS} OR w.seen_at > {_ALIVE}) GROUP BY l.name, l.period"
)
_REMOVE_STALE = text(
    f"DELETE FROM limit_leases WHERE worker NOT IN (SELECT worker FROM limit_workers WHERE seen_at > {_ALIVE}) "
    f"AND name NOT IN {WINDOWS}"
)
_REMOVE_WORKERS = text(f"DELETE FROM limit_workers WHERE seen_at <= {_ALIVE}")
_REMOVE_PAST = text(f"DELETE FROM limit_leases WHERE period < :first AND name IN {WINDOWS}")
_REMOVE_OWN = text(f"DELETE FROM limit_leases WHERE worker = :worker AND name NOT IN {WINDOWS}")
_WAS_SEEN = text(f"SELECT 1 FROM limit_workers WHERE worker = :worker AND seen_at > {_ALIVE}")
_SEEN = text(
    "INSERT INTO limit_workers (worker, seen_at) VALUES (:worker, :now) "
    "ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at"
)
# All rows of a grant, or none if others have leased so much meanwhile that one limit holds more than `most`.
_PUT_WITHIN = text(
    "INSERT INTO limit_leases (account, name, period, worker, amount) "
    "SELECT :account, row.name, row.period, :worker, row.amount "
    "FROM unnest(CAST(:names AS text[]), CAST(:periods AS bigint[]), CAST(:amounts AS bigint[])) AS row (name, period, amount) "
    "WHERE NOT EXISTS (SELECT 1 "
    "FROM unnest(CAST(:names AS text[]), CAST(:periods AS bigint[]), CAST(:most AS bigint[])) AS bound (name, period, most) "
    "WHERE bound.most < (SELECT COALESCE(SUM(l.amount), 0) FROM limit_leases l LEFT JOIN limit_workers w ON w.worker = l.worker "
    f"WHERE l.account = :account AND l.name = bound.name AND CASE WHEN l.name IN {WINDOWS} THEN l.period > :first "
    f"ELSE l.period = bound.period AND w.seen_at > {_ALIVE} END)) "
    "ON CONFLICT (account, name, period, worker) DO UPDATE SET amount = excluded.amount RETURNING name"
)
# A lease of a key waits only for other leases of the same key.
_LOCK_ACCOUNT = text("SELECT pg_advisory_xact_lock(hashtextextended(:account, 7089073064144565108))")
_LIVING = text(f"SELECT COUNT(*) FROM limit_workers WHERE seen_at > {_ALIVE}")
_ESTIMATED = text("SELECT day, nanos FROM estimated_spend WHERE account = :account AND day >= :first AND day <= :last")
_REMOVE_ESTIMATED = text("DELETE FROM estimated_spend WHERE day < :before")
_ADD_ESTIMATED = text(
    "INSERT INTO estimated_spend (account, day, nanos, calls) VALUES (:account, :day, :nanos, 1) ON CONFLICT (account, day) "
    "DO UPDATE SET nanos = estimated_spend.nanos + excluded.nanos, calls = estimated_spend.calls + 1"
)


# Whether an earlier transaction was committed is known to PostgreSQL where the answer that told so was lost.
_TRANSACTION = text("SELECT txid_current(), txid_status(:before)")


class SqlLeaseStore:
    """The leases of one process in SQLite or PostgreSQL. A server is asked once for what a process uses, and twice for a lease.

    `clock` is the time in SQL by which processes are seen: if none is given, that of the server, and of a file what a method is told.
    """

    def __init__(self, engine: Engine, worker: str, spend: Spend, *, clock: str = "") -> None:
        self._is_file = is_file(engine.url)
        clock = clock or (":now" if self._is_file else _SERVER_CLOCK)
        self._by_clock = {
            statement: text(statement.text.replace(":now", clock))
            for statement in (_TOTALS, _REMOVE_STALE, _REMOVE_WORKERS, _WAS_SEEN, _SEEN, _PUT_WITHIN, _LIVING)
        }
        self._engine = without_turns(engine)
        self._worker = worker
        self._spend = spend
        self._own = OwnRows()
        # Others may have taken this process for over, and removed its rows, which are not stored anew yet.
        self._lost = False
        # How many of the estimates that are to be stored are stored already, and the transaction of those whose result is unknown.
        self._known = 0
        self._unknown: tuple[int, int] | None = None

    def claim(
        self, account: str, rows: Sequence[Lease], wants: Sequence[LeaseRequest], now: float
    ) -> LeaseGrant | Shortage:
        """Store `rows`, and lease the wanted amounts: all, or none if one limit has too little left."""
        granted = None if self._is_file else self._claim_beside_others(account, rows, wants, now)
        return granted or self._claim_in_turn(account, rows, wants, now)

    def _claim_beside_others(
        self, account: str, rows: Sequence[Lease], wants: Sequence[LeaseRequest], now: float
    ) -> LeaseGrant | None:
        """Lease the wanted amounts without making others wait on the way to the server, or return None if too little is left for that.

        What costs move meanwhile from leases to the log is counted in neither: so a budget is leased of in turn where less would be left
        than all have leased, or than a further lease.
        """
        with transaction(self._engine) as connection:
            seen, *_, leases, estimates = execute_together(
                connection, [*self._live(rows, now), *self._usage_of(account, now)], commits=True
            )
        self._own.note(rows)
        self._lost = not seen
        if self._lost:
            return None
        used = self._used(account, leases, estimates, now, money=is_about_money(wants))
        granted = grant_of(wants, used, now)
        if not isinstance(granted, LeaseGrant):
            return None
        leased = rows_of(account, wants, granted)
        values = {
            "account": account,
            "worker": self._worker,
            "names": [want.name for want in wants],
            "periods": [want.period for want in wants],
            "amounts": [row.amount for row in leased],
            "most": [
                granted.left[want.name] + (min(0, taken - want.most) if want.name in MONEY else taken)
                for want in wants
                for taken in [sum(used.leases.get(want.name, {}).values())]
            ],
            "first": int(now) - COUNTED_SECONDS,
            "now": now,
        }
        with transaction(self._engine) as connection:
            *_, stored = execute_together(
                connection, [(_LOCK_ACCOUNT, {"account": account}), (self._by_clock[_PUT_WITHIN], values)], commits=True
            )
        if not stored:
            return None
        self._own.note(leased)
        return granted

    def _claim_in_turn(
        self, account: str, rows: Sequence[Lease], wants: Sequence[LeaseRequest], now: float
    ) -> LeaseGrant | Shortage:
        with transaction(self._engine) as connection:
            locks: list[Statement] = [] if self._is_file else [(_LOCK_ACCOUNT, {"account": account})]
            answers = execute_together(connection, [*locks, *self._live(rows, now), *self._usage_of(account, now)])
            leases, estimates = answers[-2:]
            if not answers[len(locks)]:
                execute_together(connection, self._stored([*self._own.all(), *rows]))
                leases, estimates = execute_together(connection, self._usage_of(account, now))
            used = self._used(account, leases, estimates, now, money=is_about_money(wants))
            granted = grant_of(wants, used, now)
            leased = rows_of(account, wants, granted) if isinstance(granted, LeaseGrant) else []
            execute_together(connection, self._stored(leased), commits=True)
        self._lost = False
        self._own.note([*rows, *leased])
        return granted

    def sync(self, rows: Sequence[Lease], estimates: Sequence[Estimate], now: float) -> int:
        """Store rows and estimates, say that this process lives, and return how many do.

        After an error the estimates are to be given again, before others: those that were stored nevertheless are not added twice.
        """
        with transaction(self._engine) as connection:
            if estimates and not self._is_file:
                before, count = self._unknown or (None, 0)
                number, status = connection.execute(_TRANSACTION, {"before": before}).one()
                if status == "in progress":
                    raise DatabaseUnusable(
                        "the state database has not ended what it was asked before", hint="try again"
                    )
                self._known = count if status == "committed" else self._known
                self._unknown = (number, len(estimates))
            asked = self._live(rows, now)
            if new := estimates[self._known :]:
                asked.append((_ADD_ESTIMATED, [estimate._asdict() for estimate in new]))
            asked.append((self._by_clock[_LIVING], {"now": now}))
            seen, *_, living = execute_together(connection, asked, commits=True)
        self._lost = not seen
        if self._lost:
            with transaction(self._engine) as connection:
                execute_together(connection, self._stored([*self._own.all(), *rows]), commits=True)
        self._lost, self._known, self._unknown = False, 0, None
        self._own.note(rows)
        return int(living[0][0] or 0)

    def used(self, account: str, now: float) -> LeasedUsage:
        """Return the usage and the leases of the limits of one key by all processes."""
        with transaction(self._engine) as connection:
            leases, estimates = execute_together(connection, self._usage_of(account, now), commits=True)
        return self._used(account, leases, estimates, now, money=True)

    def clean(self, now: float) -> None:
        """Remove what counts no longer: rows of processes that are over, and of minutes that are past."""
        first = int(now) - COUNTED_SECONDS - 60
        # One after the other: a process that is seen again meanwhile stores its rows in another order.
        for statement in (
            (self._by_clock[_REMOVE_STALE], {"now": now}),
            (self._by_clock[_REMOVE_WORKERS], {"now": now}),
            (_REMOVE_PAST, {"first": first}),
            (_REMOVE_ESTIMATED, {"before": day_number(now - KEPT_SECONDS)}),
        ):
            with transaction(self._engine) as connection:
                execute_together(connection, [statement], commits=True)

    def leave(self) -> None:
        """Return all leases of calls at a time and of money: this process ends. What it used of a minute counts on."""
        with transaction(self._engine) as connection:
            connection.execute(_REMOVE_OWN, {"worker": self._worker})
        self._own.clear()

    def close(self) -> None:
        """Do nothing: the engine is not only for leases."""

    def _live(self, rows: Sequence[Lease], now: float) -> list[Statement]:
        """Return what says that this process lives, after having asked when it was seen, and stores rows, those that were lost too."""
        worker = {"worker": self._worker, "now": now}
        stored = self._stored([*self._own.all(), *rows] if self._lost else rows)
        # The result is unknown until it is answered: a connection may be lost after the change.
        self._lost = True
        return [(self._by_clock[_WAS_SEEN], worker), (self._by_clock[_SEEN], worker), *stored]

    def _used(
        self, account: str, totals: Sequence[Any], estimates: Sequence[Any], now: float, *, money: bool
    ) -> LeasedUsage:
        leases: dict[LimitName, dict[int, int]] = defaultdict(dict)
        for name, period, amount in totals:
            if is_counted((cast("LimitName", name), period), now):
                leases[cast("LimitName", name)][period] = int(amount)
        if not money:
            return LeasedUsage(leases, 0, 0)
        days = {int(day): int(nanos) for day, nanos in estimates}
        return usage_of(account, leases, days, self._spend, now)

    def _usage_of(self, account: str, now: float) -> list[Statement]:
        """Return what asks for the leases of an account, and for its calls of unknown cost."""
        first, today = days_of(account, now)
        return [
            (self._by_clock[_TOTALS], {"account": account, "now": now}),
            (_ESTIMATED, {"account": account, "first": first, "last": today}),
        ]

    def _stored(self, rows: Iterable[Lease]) -> list[Statement]:
        put: list[Mapping[str, Any]] = []
        gone: list[Mapping[str, Any]] = []
        for account, (name, period), amount in rows:
            fields = {"account": account, "name": name, "period": period, "worker": self._worker}
            if amount > 0:
                put.append({**fields, "amount": amount})
            else:
                gone.append(fields)
        changes: list[Statement] = [(_PUT_LEASE, put)] if put else []
        return [*changes, (_REMOVE_LEASE, gone)] if gone else changes
