"""The tables of keys and of what processes have leased of their limits, the same for SQLite and PostgreSQL.

A change here comes with a new revision of the branch `keys` in `stores/migrations`; a test compares the two.
Loads SQLAlchemy: import it where keys are opened, and nowhere above.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, MetaData, Table, Text

metadata = MetaData()

access_keys = Table(
    "access_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    # The account without its id, as JSON: what a key says grows without a migration.
    Column("account", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

# One row: it goes up with each change of a key, so that a process sees at a glance whether it has to read them again.
access_keys_revision = Table(
    "access_keys_revision",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)

limit_workers = Table(
    "limit_workers",
    metadata,
    Column("worker", Text, primary_key=True),
    Column("seen_at", Double, nullable=False),
)

limit_leases = Table(
    "limit_leases",
    metadata,
    Column("account", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("period", BigInteger, primary_key=True, autoincrement=False),
    Column("worker", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Index("ix_limit_leases_worker", "worker"),
)

# What calls of unknown cost count as.
estimated_spend = Table(
    "estimated_spend",
    metadata,
    Column("account", Text, primary_key=True),
    Column("day", BigInteger, primary_key=True, autoincrement=False),
    Column("nanos", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)
