"""The first form of the log."""

import sqlalchemy as sa
from alembic import op

revision = "log_0001"
down_revision = None
branch_labels = ("log",)
depends_on = None

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
JSON = sa.JSON().with_variant(sa.Text, "sqlite")
ID_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "inference_log",
        sa.Column("row_number", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column("request_id", ID_TEXT, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("first_byte_seconds", sa.Double),
        sa.Column("client_dialect", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("provider_dialect", sa.Text, nullable=False),
        sa.Column("model_asked", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text),
        sa.Column("streamed", sa.Boolean, nullable=False),
        sa.Column("passed_through", sa.Boolean, nullable=False),
        sa.Column("attempts", sa.BigInteger, nullable=False),
        sa.Column("status", sa.BigInteger),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("error_class", sa.Text),
        sa.Column("error_message", sa.Text),
        sa.Column("finish_reason", sa.Text),
        sa.Column("finish_raw", sa.Text),
        sa.Column("visibility", sa.Text),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("reasoning_tokens", sa.BigInteger),
        sa.Column("tokens_approx", sa.Boolean, nullable=False),
        sa.Column("cached_input_tokens", sa.BigInteger),
        sa.Column("cache_write_tokens", sa.BigInteger),
        sa.Column("usage_raw", JSON),
        sa.Column("cost_usd", sa.Double),
        sa.Column("cost_by_cause", JSON, nullable=False),
        sa.Column("degraded", JSON, nullable=False),
        sa.Column("receipt", JSON),
        sa.Column("request_content", sa.Text),
        sa.Column("reply_content", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_inference_log_request_id", "inference_log", ["request_id"])
    op.create_index("ix_inference_log_started_at", "inference_log", ["started_at"])
    op.create_table(
        "inference_log_gaps",
        sa.Column("row_number", ROW_NUMBER, primary_key=True, autoincrement=True),
        sa.Column("noticed_at", sa.Double, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Remove the tables, and every row with them."""
    op.drop_table("inference_log_gaps")
    op.drop_table("inference_log")
