"""Episodes, their texts, and an index of their words. A call that is removed from the log takes its episode with it."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "memory_0001"
down_revision = None
branch_labels = ("memory",)
depends_on = None

WORDS = "coalesce({0}words, {0}question || ' ' || {0}thinking || ' ' || {0}answer)"
SQLITE = (
    f"CREATE VIEW memory_indexed AS SELECT row_number, {WORDS.format('')} AS words FROM memory_texts",
    "CREATE VIRTUAL TABLE memory_words USING fts5(words, content='memory_indexed', content_rowid='row_number', "
    "tokenize='unicode61 remove_diacritics 0')",
    "CREATE TRIGGER memory_text_added AFTER INSERT ON memory_texts BEGIN "
    f"INSERT INTO memory_words (rowid, words) VALUES (new.row_number, {WORDS.format('new.')}); END",
    "CREATE TRIGGER memory_text_removed AFTER DELETE ON memory_texts BEGIN INSERT INTO memory_words (memory_words, rowid, words) "
    f"VALUES ('delete', old.row_number, {WORDS.format('old.')}); END",
    "CREATE TRIGGER memory_episode_removed AFTER DELETE ON memory_episodes BEGIN "
    "DELETE FROM memory_texts WHERE row_number = old.row_number; END",
    "CREATE TRIGGER memory_call_removed AFTER DELETE ON inference_log BEGIN "
    "DELETE FROM memory_episodes WHERE request_id = old.request_id; END",
)
POSTGRESQL = (
    "ALTER TABLE memory_texts ADD FOREIGN KEY (row_number) REFERENCES memory_episodes ON DELETE CASCADE",
    "CREATE INDEX ix_memory_texts_words ON memory_texts USING gin (words)",
    "CREATE FUNCTION memory_call_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "DELETE FROM memory_episodes WHERE request_id = OLD.request_id; RETURN NULL; END $$",
    "CREATE TRIGGER memory_call_removed AFTER DELETE ON inference_log FOR EACH ROW EXECUTE FUNCTION memory_call_removed()",
)


def upgrade() -> None:
    """Make the tables, in a database that holds a log."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    row_number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    id_text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    texts = ("tenant", "key_id", "session", "subsystem", "provider", "model", "outcome", "verdict", "visibility")
    op.create_table(
        "memory_episodes",
        sa.Column("row_number", row_number, primary_key=True, autoincrement=True),
        sa.Column("id", id_text, nullable=False),
        sa.Column("request_id", id_text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in texts),
        sa.Column("reasoning_tokens", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Boolean, nullable=False) for name in ("tokens_reported", "tokens_approx", "interleaved")),
        sa.Column("schema_ok", sa.Boolean),
        *(sa.Column(name, sa.BigInteger) for name in ("input_tokens", "output_tokens", "cost_nanos")),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("embedding", sa.Text),
        sa.Column("signature", sa.LargeBinary),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_memory_episodes_id", "memory_episodes", ["id"], unique=True)
    op.create_index("ix_memory_episodes_request_id", "memory_episodes", ["request_id"])
    op.create_index("ix_memory_episodes_started_at", "memory_episodes", ["started_at"])
    op.create_index("ix_memory_episodes_tenant", "memory_episodes", ["tenant", "started_at"])
    op.create_index("ix_memory_episodes_session", "memory_episodes", ["session"])
    op.create_table(
        "memory_texts",
        sa.Column("row_number", row_number, primary_key=True, autoincrement=False),
        sa.Column("vector", sa.LargeBinary),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("question", "thinking", "answer")),
        sa.Column("words", sa.Text() if is_sqlite else TSVECTOR()),
    )
    for statement in SQLITE if is_sqlite else POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    """Remove the tables, and all episodes with them. The log stays."""
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    if is_sqlite:
        op.execute("DROP TRIGGER IF EXISTS memory_call_removed")
        op.execute("DROP TABLE memory_words")
        op.execute("DROP VIEW memory_indexed")
    else:
        op.execute("DROP TRIGGER IF EXISTS memory_call_removed ON inference_log")
        op.execute("DROP FUNCTION memory_call_removed()")
    op.drop_table("memory_texts")
    op.drop_table("memory_episodes")
