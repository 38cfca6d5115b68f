"""The tables of kept replies, the same for SQLite and PostgreSQL.

What they hold can be had again, so that tables of another form are removed and made anew: there are no migrations.
Loads SQLAlchemy: import it where a store is opened, and nowhere above.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text

from bardo.adapters.stores.database.problems import DatabaseUse

FORM = "1"
VERSION_TABLE = "reply_cache_version"
USE = DatabaseUse(
    name="cache of replies",
    lock=int.from_bytes(b"bardo ca"),
    how_to_find="name the database that your gateway uses",
)

metadata = MetaData()
_Number = BigInteger().with_variant(Integer(), "sqlite")

entries = Table(
    "reply_cache_entries",
    metadata,
    # In the order in which they came; a number is never used again, so that others can ask for what is newer than one.
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("identity", LargeBinary, nullable=False, unique=True),
    Column("value", LargeBinary, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("expires", Double, nullable=False),
    Column("marks", LargeBinary),
    Index("ix_reply_cache_entries_tenant", "tenant", "number"),
    Index("ix_reply_cache_entries_expires", "expires"),
    sqlite_autoincrement=True,
)

# What an entry is removed by: `m` and a name of its model, or `t` and a tag.
labels = Table(
    "reply_cache_labels",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("label", Text, primary_key=True),
    Index("ix_reply_cache_labels_label", "label"),
)

# Sums are kept beside the entries, so that looking at a bound costs nothing that grows.
shares = Table(
    "reply_cache_shares",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("entries", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)
