"""How much of the sums is estimated, of calls whose replies did not come to their end. The calls that are there are counted."""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "log_0010"
down_revision = "log_0009"
branch_labels = None
depends_on = None

NAMES = ("estimated_calls", "estimated_nanos", "thinking_estimated")
LARGEST = 2**53 - 1
DAY = 86_400
LAST_DAY = 2**31 - 1
ESTIMATED = "((tokens_approx AND outcome <> 'ok') OR COALESCE(CAST(attempt_records AS TEXT), '') LIKE :of_an_attempt)"
QUERY = f"""
SELECT started_at, provider, model, COALESCE(key_id, '') AS key_id, COALESCE(subsystem, '') AS subsystem, operation,
  CASE WHEN {ESTIMATED} THEN 1 ELSE 0 END AS estimated, COALESCE(cost_nanos, 0) AS nanos
FROM inference_log WHERE tokens_approx OR {ESTIMATED}
"""
ADD = sa.text(
    "UPDATE inference_rollup SET estimated_calls = :estimated_calls, estimated_nanos = :estimated_nanos, "
    "thinking_estimated = :thinking_estimated WHERE group_id = :group_id"
)


def upgrade() -> None:
    """Add the columns, and count the calls that are in the log."""
    for name in NAMES:
        op.add_column("inference_rollup", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    connection = op.get_bind()
    groups: dict[str, dict[str, int]] = {}
    for started_at, *texts, estimated, nanos in connection.execute(
        sa.text(QUERY), {"of_an_attempt": '%"tokens_approx":true%'}
    ):
        day = max(-LAST_DAY, min(started_at / DAY, LAST_DAY)) // 1
        key = "\0".join([str(int(day)), *texts])
        group_id = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        sums = groups.setdefault(group_id, dict.fromkeys(NAMES, 0))
        sums["estimated_calls"] += estimated
        sums["estimated_nanos"] = max(-LARGEST, min(sums["estimated_nanos"] + (nanos if estimated else 0), LARGEST))
        sums["thinking_estimated"] += 1 - estimated
    if groups:
        connection.execute(ADD, [{"group_id": group_id, **sums} for group_id, sums in groups.items()])


def downgrade() -> None:
    """Remove the columns."""
    for name in NAMES:
        op.drop_column("inference_rollup", name)
