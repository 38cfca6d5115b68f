"""The first form of the tables of batches."""

import sqlalchemy as sa
from alembic import op

revision = "batches_0001"
down_revision = None
branch_labels = ("batches",)
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "batch_files",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
    )
    op.create_index("ix_batch_files_tenant", "batch_files", ["tenant", "created_at"])
    op.create_table(
        "batch_file_pieces",
        sa.Column("file_id", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("dialect", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("over", sa.Boolean, nullable=False),
        sa.Column("due_at", sa.Double, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_batches_tenant", "batches", ["tenant", "dialect", "created_at"])
    op.create_index("ix_batches_due", "batches", ["over", "due_at"])
    op.create_table(
        "batch_jobs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_batch_jobs_batch", "batch_jobs", ["batch_id"])
    op.create_table(
        "batch_items",
        sa.Column("batch_id", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("custom_id", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text),
        sa.Column("wire", sa.LargeBinary),
        sa.Column("result", sa.LargeBinary),
        sa.Column("log_row", sa.LargeBinary),
    )
    op.create_index("ix_batch_items_state", "batch_items", ["batch_id", "state"])
    op.create_index("ix_batch_items_job", "batch_items", ["job_id", "place"])


def downgrade() -> None:
    """Remove the tables, and every batch with them."""
    for name in ("batch_items", "batch_jobs", "batches", "batch_file_pieces", "batch_files"):
        op.drop_table(name)
