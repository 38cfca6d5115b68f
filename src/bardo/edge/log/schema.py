"""The tables of the log, the same for SQLite and PostgreSQL.

A change here comes with a new file in `migrations/versions` and a new `CURRENT_REVISION`; a test compares the two.
Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

from bardo.edge.log.rollup import CAUSES, SUMS, RollupKey, part_column
from bardo.edge.log.stored import from_json

CURRENT_REVISION = "0009"


class ExactJson(TypeDecorator[Any]):
    """JSON that keeps what a provider sent as it was: 1e16 stays a float, keys keep their order.

    SQLite makes numbers of numeric text in a column declared JSON, so there it is declared text. PostgreSQL's JSON
    keeps the text, where JSONB would rewrite numbers. Values are written as text: `stored.to_columns` makes it.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the engine's own type."""
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else JSON(none_as_null=True))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Read JSON; PostgreSQL's type does so by itself."""
        return from_json(value) if dialect.name == "sqlite" and value is not None else value


metadata = MetaData()

# SQLite numbers rows by itself only in a column declared INTEGER.
_row_number = BigInteger().with_variant(Integer, "sqlite")
# Ids are looked up by how they begin, and PostgreSQL can use its index for that only in byte order.
_id_text = Text().with_variant(Text(collation="C"), "postgresql")

inference_log = Table(
    "inference_log",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=True),
    Column("request_id", _id_text, nullable=False, index=True),
    Column("started_at", Double, nullable=False, index=True),
    Column("seconds", Double, nullable=False),
    Column("first_byte_seconds", Double),
    Column("client_dialect", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("provider_dialect", Text, nullable=False),
    Column("model_asked", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("streamed", Boolean, nullable=False),
    Column("passed_through", Boolean, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("status", BigInteger),
    Column("outcome", Text, nullable=False),
    Column("error_class", Text),
    Column("error_message", Text),
    Column("finish_reason", Text),
    Column("finish_raw", Text),
    Column("visibility", Text),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("reasoning_tokens", BigInteger),
    Column("tokens_approx", Boolean, nullable=False),
    Column("cached_input_tokens", BigInteger),
    Column("cache_write_tokens", BigInteger),
    Column("usage_raw", ExactJson),
    Column("cost_usd", Double),
    Column("degraded", ExactJson, nullable=False),
    Column("receipt", ExactJson),
    Column("request_content", Text),
    Column("reply_content", Text),
    # What later forms added stands last, as it does in a log that was migrated.
    Column("reasoning_intent", Text),
    Column("reasoning_emitted", Text),
    Column("reasoning_layer", Text),
    Column("reasoning_verdict", Text),
    Column("operation", Text, nullable=False, server_default="generate"),
    Column("tenant", Text),
    Column("route", ExactJson),
    Column("cost_nanos", BigInteger),
    Column("cost_parts", ExactJson),
    Column("reported_cost_nanos", BigInteger),
    Column("computed_cost_nanos", BigInteger),
    Column("cache_saved_nanos", BigInteger),
    Column("price_source", Text),
    Column("key_id", Text),
    Column("subsystem", Text),
    Column("tags", ExactJson),
    Column("attempt_records", ExactJson),
    Column("pipeline", ExactJson),
    Column("cache", Text),
    Column("reply_saved_nanos", BigInteger),
    Column("sent_content", Text),
    # Numbers of removed rows are never given again, so a follower cannot miss a row.
    sqlite_autoincrement=True,
)

inference_rollup = Table(
    "inference_rollup",
    metadata,
    Column("group_id", _id_text, primary_key=True),
    Column("day", BigInteger, nullable=False, index=True),
    *(Column(name, Text, nullable=False) for name in RollupKey._fields[1:]),
    *(Column(name, Double if name == "seconds" else BigInteger, nullable=False) for name in SUMS),
    *(Column(part_column(cause), BigInteger, nullable=False) for cause in CAUSES),
)

inference_feedback = Table(
    "inference_feedback",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=True),
    Column("request_id", _id_text, nullable=False, index=True),
    Column("given_at", Double, nullable=False),
    Column("score", Double, nullable=False),
    Column("comment", Text),
    sqlite_autoincrement=True,
)

inference_log_gaps = Table(
    "inference_log_gaps",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=True),
    Column("noticed_at", Double, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("why", Text, nullable=False),
    sqlite_autoincrement=True,
)

VERSION_TABLE = "inference_log_version"
"""Where Alembic keeps the form of the log."""
