"""The conversation, the agent and the repository of a call, as its client names them. Calls from before have none."""

import sqlalchemy as sa
from alembic import op

revision = "log_0011"
down_revision = "log_0010"
branch_labels = None
depends_on = None

NAMES = ("session", "agent", "repository")


def upgrade() -> None:
    """Add the columns, which touches no row, and the index of the calls of a session."""
    for name in NAMES:
        op.add_column("inference_log", sa.Column(name, sa.Text))
    op.create_index("ix_inference_log_session", "inference_log", ["session"])


def downgrade() -> None:
    """Remove the columns, and what they hold."""
    op.drop_index("ix_inference_log_session", "inference_log")
    for name in NAMES:
        op.drop_column("inference_log", name)
