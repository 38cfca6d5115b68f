"""The request as it went to the provider, where the log keeps content. Calls from before have none."""

import sqlalchemy as sa
from alembic import op

revision = "log_0009"
down_revision = "log_0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which touches no row."""
    op.add_column("inference_log", sa.Column("sent_content", sa.Text))


def downgrade() -> None:
    """Remove the column, and what it holds."""
    op.drop_column("inference_log", "sent_content")
