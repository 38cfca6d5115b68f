"""The tables of the ledger. Loads SQLAlchemy: import it where a ledger is opened, and nowhere above."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text

metadata = MetaData()
_row_number = BigInteger().with_variant(Integer, "sqlite")

payments = Table(
    "payments",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=True),
    Column("payment_id", Text, nullable=False, unique=True),
    # What was asked of whom, as a keyed digest: nobody reads a prompt out of a ledger.
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
