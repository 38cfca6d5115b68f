"""The tables of batches and their files, the same for SQLite and PostgreSQL.

A change here comes with a new revision of the branch `batches` in `stores/migrations`; a test compares the two.
Loads SQLAlchemy: import it where batches are opened, and nowhere above.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()

batch_files = Table(
    "batch_files",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Index("ix_batch_files_tenant", "tenant", "created_at"),
)

batch_file_pieces = Table(
    "batch_file_pieces",
    metadata,
    Column("file_id", Text, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

batches = Table(
    "batches",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("dialect", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("over", Boolean, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("owner", Text, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Index("ix_batches_tenant", "tenant", "dialect", "created_at"),
    Index("ix_batches_due", "over", "due_at"),
)

batch_jobs = Table(
    "batch_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("batch_id", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Index("ix_batch_jobs_batch", "batch_id"),
)

batch_items = Table(
    "batch_items",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("custom_id", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("job_id", Text),
    Column("wire", LargeBinary),
    Column("result", LargeBinary),
    Column("log_row", LargeBinary),
    Column("layers", LargeBinary),
    Index("ix_batch_items_state", "batch_id", "state"),
    Index("ix_batch_items_job", "job_id", "place"),
)
