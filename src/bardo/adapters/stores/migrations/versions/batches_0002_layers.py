"""What layers keep of an item until its reply comes: the values behind placeholders."""

import sqlalchemy as sa
from alembic import op

revision = "batches_0002"
down_revision = "batches_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("batch_items", sa.Column("layers", sa.LargeBinary))


def downgrade() -> None:
    """Remove the column: items that were masked come back with placeholders then."""
    op.drop_column("batch_items", "layers")
