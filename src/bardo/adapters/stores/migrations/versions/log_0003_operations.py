"""What each call asked for, in a column of its own. Calls from before have generated a reply."""

import sqlalchemy as sa
from alembic import op

revision = "log_0003"
down_revision = "log_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; both engines do so without touching a row."""
    op.add_column("inference_log", sa.Column("operation", sa.Text, nullable=False, server_default="generate"))


def downgrade() -> None:
    """Remove the column, and what it holds."""
    op.drop_column("inference_log", "operation")
