"""What the layers did that worked on a call before it was sent, and what the cache of replies did. Calls from before have none of these."""

import sqlalchemy as sa
from alembic import op

revision = "log_0008"
down_revision = "log_0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, which touches no row."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.add_column("inference_log", sa.Column("pipeline", sa.Text() if is_sqlite else sa.JSON(none_as_null=True)))
    op.add_column("inference_log", sa.Column("cache", sa.Text))
    op.add_column("inference_log", sa.Column("reply_saved_nanos", sa.BigInteger))


def downgrade() -> None:
    """Remove the columns, and what they hold."""
    for name in ("reply_saved_nanos", "cache", "pipeline"):
        op.drop_column("inference_log", name)
