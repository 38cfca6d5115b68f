"""The ledger of payments: the amounts held back, those sent, and their state. Every change is on disk before it is acted upon.

Loads SQLAlchemy: import it where a ledger is opened, and nowhere above. Its functions block; the event loop calls them in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    case,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from bardo.accounting.payments import Payer, Spending
from bardo.adapters.stores.database.engines import address_of, is_file, open_for_reading, unusable
from bardo.adapters.stores.database.problems import STATE
from bardo.adapters.stores.database.revisions import open_current, stored_revision
from bardo.adapters.stores.migrations import PAYMENTS_BRANCH
from bardo.values.payments import OPEN_STATES, Payment, PaymentState

metadata = MetaData()
_row_number = BigInteger().with_variant(Integer, "sqlite")

payments = Table(
    "payments",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=True),
    Column("payment_id", Text, nullable=False, unique=True),
    # What was asked of whom, as a keyed digest: a ledger reveals no prompt.
    Column("purchase", Text, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("proof", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("day", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("subsystem", Text, nullable=False),
    Column("payer", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    Column("network", Text, nullable=False),
    Column("asset", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("amount", Text, nullable=False),
    Column("nanos", BigInteger, nullable=False),
    Column("nonce", Text, nullable=False),
    Column("valid_before", BigInteger, nullable=False),
    Column("transaction_hash", Text, nullable=False),
    Column("note", Text, nullable=False),
    Index("payments_by_purchase", "purchase", "ordinal", unique=True),
    Index("payments_by_day", "day"),
    Index("payments_by_state", "state"),
    sqlite_autoincrement=True,
)


_COLUMNS = [column for column in payments.c if column.name != "row_number"]
Proof = str
"""Who says so: `bardo`, the `provider`, or the `network` itself."""


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One payment as the ledger has it. `purchase` is a digest of what was asked of whom; `ordinal` counts its payments from 0."""

    payment_id: str
    purchase: str
    ordinal: int
    request_id: str
    provider: str
    state: PaymentState
    proof: Proof
    created_at: float
    changed_at: float
    day: str
    tenant: str
    subsystem: str
    payer: str
    recipient: str
    network: str
    asset: str
    symbol: str
    amount: str
    nanos: int
    nonce: str
    valid_before: int
    transaction_hash: str = ""
    note: str = ""

    @property
    def payment(self) -> Payment:
        """The payment as the receipt of its call shows it."""
        return Payment(
            id=self.payment_id,
            state=self.state,
            nanos=self.nanos,
            amount=self.amount,
            asset=self.symbol,
            network=self.network,
            recipient=self.recipient,
            transaction=self.transaction_hash,
        )


class CapReached(Exception):
    """A payment would go over a cap: `reason` says which one, and `key` is where it is set."""

    def __init__(self, reason: str, key: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key


class Ledger:
    """The payments of one wallet, in a database that several processes may share. Its methods raise DatabaseUnusable where that fails."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def reserve(
        self, purchase: str, make: Callable[[int], LedgerEntry], refusal: Callable[[Spending], tuple[str, str]]
    ) -> tuple[LedgerEntry, bool]:
        """Hold the amount of one more payment back, and return its entry and True; or the open entry of the same purchase, and False.

        A purchase has one payment at a time: the next may be made once the one before is settled or released, or was answered. `make` gets
        its ordinal. `refusal` says which cap is exceeded, given the spending, in the transaction that holds back: calls that run side by
        side cannot both have the last cent. Raises CapReached.
        """
        with self._using(), self._engine.begin() as connection:
            chosen = (
                select(*_COLUMNS).where(payments.c.purchase == purchase).order_by(payments.c.ordinal.desc()).limit(1)
            )
            row = connection.execute(chosen).one_or_none()
            last = None if row is None else LedgerEntry(**row._mapping)
            if last is not None and last.state in ("reserved", "delivered", "unknown"):
                return last, False
            entry = make(0 if last is None else last.ordinal + 1)
            reason, key = refusal(
                _sum_spent(connection, entry.day, Payer(tenant=entry.tenant, subsystem=entry.subsystem))
            )
            if reason:
                raise CapReached(reason, key)
            connection.execute(insert(payments).values(**msgspec.structs.asdict(entry)))
            return entry, True

    def move(
        self,
        payment_id: str,
        state: PaymentState,
        *,
        among: Sequence[PaymentState],
        now: float,
        proof: Proof = "bardo",
        transaction_hash: str = "",
        note: str = "",
    ) -> LedgerEntry | None:
        """Bring a payment to a state, if it is in one `among` those given, and return its entry, or None if it is not.

        An empty transaction or note leaves the old one.
        """
        changed: dict[str, Any] = {"state": state, "changed_at": now, "proof": proof}
        changed |= {"transaction_hash": transaction_hash} if transaction_hash else {}
        changed |= {"note": note} if note else {}
        wanted = and_(payments.c.payment_id == payment_id, payments.c.state.in_(among))
        with self._using(), self._engine.begin() as connection:
            if not connection.execute(update(payments).where(wanted).values(**changed)).rowcount:
                return None
            return _find_entry(connection, payments.c.payment_id == payment_id)

    def entry(self, payment_id: str) -> LedgerEntry | None:
        """Return a payment, or None if there is none of this id."""
        with self._using(), self._engine.connect() as connection:
            return _find_entry(connection, payments.c.payment_id == payment_id)

    def unproven(self) -> list[LedgerEntry]:
        """Return the payments of which the network itself has not said what became of them, oldest first."""
        wanted = payments.c.state.in_(OPEN_STATES) | ((payments.c.state == "settled") & (payments.c.proof != "network"))
        with self._using(), self._engine.connect() as connection:
            rows = connection.execute(select(*_COLUMNS).where(wanted).order_by(payments.c.row_number))
            return [LedgerEntry(**row._mapping) for row in rows]

    def latest(self, limit: int, *, states: Sequence[PaymentState] = ()) -> list[LedgerEntry]:
        """Return the newest payments, newest first."""
        chosen = select(*_COLUMNS).order_by(payments.c.row_number.desc()).limit(limit)
        if states:
            chosen = chosen.where(payments.c.state.in_(states))
        with self._using(), self._engine.connect() as connection:
            return [LedgerEntry(**row._mapping) for row in connection.execute(chosen)]

    def spent(self, day: str, payer: Payer) -> Spending:
        """Return what was paid or is held back on a day."""
        with self._using(), self._engine.connect() as connection:
            return _sum_spent(connection, day, payer)

    def spent_by(self, column: str, day_from: str, day_to: str) -> dict[str, int]:
        """Return what was paid or is held back on some days by a column: `day`, `tenant`, `subsystem`, `provider` or `state`."""
        by = payments.c[column]
        wanted = (payments.c.day >= day_from) & (payments.c.day <= day_to) & (payments.c.state != "released")
        with self._using(), self._engine.connect() as connection:
            rows = connection.execute(select(by, func.sum(payments.c.nanos)).where(wanted).group_by(by).order_by(by))
            return {str(name): int(nanos) for name, nanos in rows}

    @contextmanager
    def _using(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise unusable(self._engine.url, error) from error


def day_of(now: float) -> str:
    """Return the day of a time, in UTC: caps begin anew with it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")


def _sum_spent(connection: Connection, day: str, payer: Payer) -> Spending:
    def sum_where(condition: Any) -> Any:
        return func.coalesce(func.sum(case((condition, payments.c.nanos), else_=0)), 0)

    sums = select(
        func.coalesce(func.sum(payments.c.nanos), 0),
        sum_where(payments.c.tenant == payer.tenant),
        sum_where(payments.c.subsystem == payer.subsystem),
    ).where(payments.c.day == day, payments.c.state != "released")
    whole, tenant, subsystem = connection.execute(sums).one()
    return Spending(day=int(whole), tenant=int(tenant), subsystem=int(subsystem))


def _find_entry(connection: Connection, condition: Any) -> LedgerEntry | None:
    row = connection.execute(select(*_COLUMNS).where(condition)).one_or_none()
    return None if row is None else LedgerEntry(**row._mapping)


_USE = msgspec.structs.replace(
    STATE, lock=int.from_bytes(b"bardopay"), how_to_find="it is made with the first payment of a gateway"
)


def open_ledger(path: str | Path) -> Ledger:
    """Return the ledger in a file or at an address, made where there is none. Raises DatabaseProblem."""
    address = address_of(path, _USE)
    return Ledger(open_current(address, PAYMENTS_BRANCH, metadata=metadata, use=_USE, prepare=_sync_each_commit))


def find_ledger(path: str | Path) -> Ledger | None:
    """Return the ledger in a file or at an address, or None if no payment was ever made. Creates nothing. Raises DatabaseProblem."""
    address = address_of(path, _USE)
    if is_file(address) and not Path(str(address.database)).is_file():
        return None
    engine = open_for_reading(address, _USE)
    try:
        with engine.connect() as connection:
            stored = stored_revision(connection, PAYMENTS_BRANCH)
    finally:
        engine.dispose()
    return None if stored is None else open_ledger(path)


def _sync_each_commit(engine: Engine) -> None:
    """Keep a power cut from taking back that a signature left, for a disk flush with each change. PostgreSQL does so by itself."""
    if is_file(engine.url):
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = FULL"))
