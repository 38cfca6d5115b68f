"""Without the columns that no version has written: the tenant of a call, and its cost by cause."""

import sqlalchemy as sa
from alembic import op

revision = "log_0004"
down_revision = "log_0003"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(sa.Text, "sqlite")


def upgrade() -> None:
    """Remove the columns. SQLite rewrites the table; PostgreSQL does not."""
    op.drop_column("inference_log", "cost_by_cause")
    op.drop_column("inference_log", "tenant")


def downgrade() -> None:
    """Add the columns, as empty as they were."""
    op.add_column("inference_log", sa.Column("tenant", sa.Text))
    op.add_column("inference_log", sa.Column("cost_by_cause", JSON, nullable=False, server_default="{}"))
