"""Whose call it was, how it was found who answers, and what people think of answers. Calls from before have none of these."""

import sqlalchemy as sa
from alembic import op

revision = "log_0005"
down_revision = "log_0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, which touches no row, and the table of feedback."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.add_column("inference_log", sa.Column("tenant", sa.Text))
    op.add_column("inference_log", sa.Column("route", sa.Text() if is_sqlite else sa.JSON(none_as_null=True)))
    op.create_table(
        "inference_feedback",
        sa.Column(
            "row_number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
        ),
        sa.Column("request_id", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("given_at", sa.Double, nullable=False),
        sa.Column("score", sa.Double, nullable=False),
        sa.Column("comment", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_inference_feedback_request_id", "inference_feedback", ["request_id"])


def downgrade() -> None:
    """Remove the table and the columns, and what they hold."""
    op.drop_table("inference_feedback")
    op.drop_column("inference_log", "route")
    op.drop_column("inference_log", "tenant")
