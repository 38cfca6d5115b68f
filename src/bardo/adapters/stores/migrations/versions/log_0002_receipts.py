"""The receipt of a call's thinking in words, to be looked for. Calls from before have none."""

import sqlalchemy as sa
from alembic import op

revision = "log_0002"
down_revision = "log_0001"
branch_labels = None
depends_on = None

COLUMNS = ("reasoning_intent", "reasoning_emitted", "reasoning_layer", "reasoning_verdict")


def upgrade() -> None:
    """Add the columns; both engines do so without touching a row."""
    for name in COLUMNS:
        op.add_column("inference_log", sa.Column(name, sa.Text))


def downgrade() -> None:
    """Remove the columns, and what they hold."""
    for name in reversed(COLUMNS):
        op.drop_column("inference_log", name)
