"""Keys, and what processes have leased of their limits."""

import sqlalchemy as sa
from alembic import op

revision = "keys_0001"
down_revision = None
branch_labels = ("keys",)
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "access_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "access_keys_revision",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "limit_workers", sa.Column("worker", sa.Text, primary_key=True), sa.Column("seen_at", sa.Double, nullable=False)
    )
    op.create_table(
        "limit_leases",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("period", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("worker", sa.Text, primary_key=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_limit_leases_worker", "limit_leases", ["worker"])
    op.create_table(
        "estimated_spend",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("day", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("nanos", sa.BigInteger, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Remove the tables, and all keys with them."""
    for name in ("estimated_spend", "limit_leases", "limit_workers", "access_keys_revision", "access_keys"):
        op.drop_table(name)
