"""The tables of the reasoning memory, which stand in the log's database beside the calls.

Their form is made by `stores/migrations` alone, since the index of words is another in each engine. Loads SQLAlchemy: import it where a
memory is opened, and nowhere above.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

metadata = MetaData()
_row_number = BigInteger().with_variant(Integer, "sqlite")
_id_text = Text().with_variant(Text(collation="C"), "postgresql")

episodes = Table(
    "memory_episodes",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=True),
    Column("id", _id_text, nullable=False),
    Column("request_id", _id_text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("subsystem", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("tokens_reported", Boolean, nullable=False),
    Column("tokens_approx", Boolean, nullable=False),
    Column("interleaved", Boolean, nullable=False),
    Column("schema_ok", Boolean),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_nanos", BigInteger),
    Column("tags", Text, nullable=False),
    Column("embedding", Text),
    Column("signature", LargeBinary),
)
"""The columns that select episodes, in rows short enough to be read all. `signature` holds the signs of a vector's components."""

texts = Table(
    "memory_texts",
    metadata,
    Column("row_number", _row_number, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary),
    Column("question", Text, nullable=False),
    Column("thinking", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("words", Text().with_variant(TSVECTOR(), "postgresql")),
)
"""The texts, and the vector before them, so that it is read without the texts.

`words` is what the index of words is made of: of PostgreSQL a `tsvector`, of SQLite a text, or NULL where the texts themselves will do.
"""
