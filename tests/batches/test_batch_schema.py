"""The tables of batches: a new database has the form that the migrations lead to."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, inspect

from bardo.adapters.stores.database.revisions import migrate
from bardo.adapters.stores.migrations import BATCHES_BRANCH
from bardo.batches.batch_store import BatchStore
from bardo.batches.records import BatchRecord
from bardo.batches.schema import metadata
from support.databases import open_database


def shape_of(engine: Engine) -> dict[str, tuple[list[tuple[str, str, bool]], list[str]]]:
    """Return the columns and the indexes of each table."""
    seen = inspect(engine)
    return {
        table: (
            [(column["name"], str(column["type"]), bool(column["nullable"])) for column in seen.get_columns(table)],
            sorted(str(index["name"]) for index in seen.get_indexes(table)),
        )
        for table in seen.get_table_names()
    }


def test_migrations_lead_to_the_form_of_a_new_database(tmp_path: Path) -> None:
    made, migrated = open_database(tmp_path / "made.db"), open_database(tmp_path / "migrated.db")
    migrate(made, BATCHES_BRANCH, metadata=metadata)
    migrate(migrated, BATCHES_BRANCH)
    try:
        assert shape_of(made) == shape_of(migrated)
    finally:
        made.dispose()
        migrated.dispose()


def test_a_batch_that_is_changed_while_it_is_worked_at_is_looked_at_again_at_once(tmp_path: Path) -> None:
    engine = open_database(tmp_path / "state.db")
    migrate(engine, BATCHES_BRANCH, metadata=metadata)
    try:
        store = BatchStore(engine)
        store.add(BatchRecord(id="b", tenant="", dialect="d", endpoint="/", created_at=1.0, expires_at=9e9))
        assert store.lease("one", 10.0, 15.0) is not None
        assert store.lease("two", 10.0, 15.0) is None, "one process works at a batch at a time"
        store.change("b", lambda batch: batch.came_to("cancelling", 11.0), due_at=0.0)
        store.release("b", "one", 500.0)
        assert store.lease("two", 12.0, 15.0) is not None
        store.release("b", "two", 500.0)
        assert store.lease("three", 13.0, 15.0) is None
        assert store.next_due() == 500.0
        assert not store.renew("b", "one", 20.0, 15.0)
    finally:
        engine.dispose()
