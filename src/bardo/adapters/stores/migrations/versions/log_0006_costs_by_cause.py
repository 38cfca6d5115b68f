"""What each call cost, exactly and by cause, its attempts, and whose call it was.

Costs of calls from before are what providers reported, and are not split by cause.
"""

import sqlalchemy as sa
from alembic import op

revision = "log_0006"
down_revision = "log_0005"
branch_labels = None
depends_on = None

COLUMNS = (
    ("cost_nanos", sa.BigInteger),
    ("cost_parts", None),
    ("reported_cost_nanos", sa.BigInteger),
    ("computed_cost_nanos", sa.BigInteger),
    ("cache_saved_nanos", sa.BigInteger),
    ("price_source", sa.Text),
    ("key_id", sa.Text),
    ("subsystem", sa.Text),
    ("tags", None),
    ("attempt_records", None),
)
# A dollar has 10^9 of them; larger amounts than readers hold exactly are cut off, as the log does.
LARGEST = 2**53 - 1


def upgrade() -> None:
    """Add the columns, which touches no row, and write the costs that are there in nano-dollars."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    json = sa.Text() if is_sqlite else sa.JSON(none_as_null=True)
    for name, kind in COLUMNS:
        op.add_column("inference_log", sa.Column(name, json if kind is None else kind()))
    nanos = f"CAST(ROUND(CASE WHEN cost_usd > {LARGEST / 1e9} THEN {LARGEST / 1e9} ELSE cost_usd END * 1e9) AS BIGINT)"
    op.execute(
        f"UPDATE inference_log SET cost_nanos = {nanos}, reported_cost_nanos = {nanos}, price_source = 'provider' "
        "WHERE cost_usd >= 0"
    )


def downgrade() -> None:
    """Remove the columns, and what they hold."""
    for name, _ in reversed(COLUMNS):
        op.drop_column("inference_log", name)
