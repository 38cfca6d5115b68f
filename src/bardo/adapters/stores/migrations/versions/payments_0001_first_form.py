"""The ledger of payments."""

import sqlalchemy as sa
from alembic import op

revision = "payments_0001"
down_revision = None
branch_labels = ("payments",)
depends_on = None


def upgrade() -> None:
    """Create the table."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "payments",
        sa.Column("row_number", number, primary_key=True, autoincrement=True),
        sa.Column("payment_id", sa.Text, nullable=False, unique=True),
        sa.Column("purchase", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("proof", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("day", "tenant", "subsystem", "payer", "recipient")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("network", "asset", "symbol", "amount")),
        sa.Column("nanos", sa.BigInteger, nullable=False),
        sa.Column("nonce", sa.Text, nullable=False),
        sa.Column("valid_before", sa.BigInteger, nullable=False),
        sa.Column("transaction_hash", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("payments_by_purchase", "payments", ["purchase", "ordinal"], unique=True)
    op.create_index("payments_by_day", "payments", ["day"])
    op.create_index("payments_by_state", "payments", ["state"])


def downgrade() -> None:
    """Remove the table, and what it holds."""
    op.drop_table("payments")
