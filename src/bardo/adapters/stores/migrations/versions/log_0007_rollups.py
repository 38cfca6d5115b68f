"""Sums of calls by day and by who was asked, so that costs of a month need not read its rows. The rows that are there are summed."""

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "log_0007"
down_revision = "log_0006"
branch_labels = None
depends_on = None

TEXTS = ("provider", "model", "key_id", "subsystem", "operation")
CAUSES = (
    "input", "cache_read", "cache_write", "answer", "thinking", "fee",
    "retry", "failover", "escalation", "repair", "hedge",
)  # fmt: skip
SUMS = (
    "calls", "failed", "seconds", "input_tokens", "input_known", "output_tokens", "output_known", "reasoning_tokens", "reasoning_known",
    "cached_input_tokens", "cached_known", "cache_write_tokens", "written_known", "cost_nanos", "cost_known", "partial_nanos", "compared",
    "reported_nanos", "computed_nanos", "saved_nanos", "saved_known",
)  # fmt: skip
SUMMED = {
    "failed": "CASE WHEN outcome = 'ok' THEN 0 ELSE 1 END",
    "seconds": "seconds",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "cached_input_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cost_nanos": "cost_nanos",
}
COUNTED = {
    "calls": "request_id",
    "input_known": "input_tokens",
    "output_known": "output_tokens",
    "reasoning_known": "reasoning_tokens",
    "cached_known": "cached_input_tokens",
    "written_known": "cache_write_tokens",
    "cost_known": "cost_nanos",
}
LARGEST = 2**53 - 1
LAST_DAY = 2**31 - 1


def upgrade() -> None:
    """Create the table, and sum the calls that are in the log."""
    id_text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    table = op.create_table(
        "inference_rollup",
        sa.Column("group_id", id_text, primary_key=True),
        sa.Column("day", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in TEXTS),
        *(sa.Column(name, sa.Double if name == "seconds" else sa.BigInteger, nullable=False) for name in SUMS),
        *(sa.Column(f"{cause}_part_nanos", sa.BigInteger, nullable=False) for cause in CAUSES),
    )
    op.create_index("ix_inference_rollup_day", "inference_rollup", ["day"])
    connection = op.get_bind()
    query = sa.text(_query(_FLOORS[connection.dialect.name]))
    groups = [_group(dict(row._mapping)) for row in connection.execute(query)]
    if groups:
        op.bulk_insert(table, groups)


# Not every SQLite has a function for it, and PostgreSQL rounds where SQLite cuts off.
_FLOORS = {"sqlite": "CAST({0} AS BIGINT) - ({0} < CAST({0} AS BIGINT))", "postgresql": "CAST(FLOOR({0}) AS BIGINT)"}


def _query(floor: str) -> str:
    # Counts came from providers, and a sum of whole numbers must not overflow. Floating point holds all up to LARGEST exactly.
    sums = ", ".join(f"SUM(CAST({what} AS DOUBLE PRECISION)) AS {name}" for name, what in SUMMED.items())
    counts = ", ".join(f"COUNT({what}) AS {name}" for name, what in COUNTED.items())
    most = LAST_DAY * 86400.0
    bounded = f"CASE WHEN started_at > {most} THEN {most} WHEN started_at < {-most} THEN {-most} ELSE started_at END"
    day = floor.format(f"(({bounded}) / 86400)")
    texts = "provider, model, COALESCE(key_id, '') AS key_id, COALESCE(subsystem, '') AS subsystem, operation"
    return f"SELECT {day} AS day, {texts}, {sums}, {counts} FROM inference_log GROUP BY 1, 2, 3, 4, 5, 6"


def _group(row: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: _bounded(row.get(name), whole=name != "seconds") for name in SUMS}
    parts = {f"{cause}_part_nanos": 0 for cause in CAUSES}
    texts = {name: row[name] for name in TEXTS}
    group_id = hashlib.blake2b("\0".join([str(row["day"]), *texts.values()]).encode(), digest_size=16).hexdigest()
    return {"group_id": group_id, "day": row["day"], **texts, **numbers, **parts}


def _bounded(number: float | None, *, whole: bool) -> float:
    near = max(-LARGEST, min(number or 0, LARGEST))
    return int(near) if whole else near


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("inference_rollup")
