"""A log outlives versions of bardo: older ones are migrated, newer ones refused, new ones are as if migrated."""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, inspect, text

import bardo.adapters.stores.migrations
from bardo.adapters.stores.database.problems import LOG
from bardo.adapters.stores.database.revisions import migrate
from bardo.adapters.stores.log import LogMissing, LogNewer, LogReader, LogRow, LogUnusable, LogWriter
from bardo.adapters.stores.log.database import (
    address_of,
    metadata,
    open_for_writing,
    open_readable,
    stored_revision,
)
from bardo.adapters.stores.migrations import LOG_BRANCH, VERSIONS, Branch
from support.revisions import upgrade

pytestmark = pytest.mark.each_python

ROW = LogRow(request_id="req-1", started_at=1.0, provider="lab")
LATER = '''"""A form that does not exist yet."""

import sqlalchemy as sa
from alembic import op

revision = "log_9999"
down_revision = "{current}"


def upgrade() -> None:
    op.add_column("inference_log", sa.Column("region", sa.Text))
'''


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of today with one row."""
    path = tmp_path / "log.db"
    with LogWriter(path) as writer:
        writer.write(ROW)
    return path


@pytest.fixture
def later(tmp_path: Path) -> Branch:
    """The migrations of a later bardo."""
    folder = tmp_path / "later"
    shutil.copytree(Path(bardo.adapters.stores.migrations.__file__).parent, folder)
    (folder / "versions" / "log_9999_later.py").write_text(LATER.format(current=LOG_BRANCH.newest))
    return LOG_BRANCH._replace(newest="log_9999", tree=str(folder))


def columns(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return {column["name"] for column in inspect(connection).get_columns("inference_log")}


def test_a_new_log_has_the_form_the_migrations_lead_to(tmp_path: Path) -> None:
    created, migrated = tmp_path / "created.db", tmp_path / "migrated.db"
    LogWriter(created).close()
    engine = open_for_writing(address_of(migrated))
    with engine.begin() as connection:
        upgrade(connection, "log@head")
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS, "compare_type": True})
        assert compare_metadata(context, metadata) == [], (
            "src/bardo/adapters/stores/log/database.py has another form than the migrations make: add a file to "
            "src/bardo/adapters/stores/migrations/versions and name its revision in LOG_BRANCH"
        )
        assert stored_revision(connection) == LOG_BRANCH.newest
    engine.dispose()
    assert form(created) == form(migrated)


def form(log: Path) -> set[str]:
    connection = sqlite3.connect(log)
    tables = {sql for name, sql in connection.execute("SELECT name, sql FROM sqlite_master") if VERSIONS not in name}
    connection.close()
    # SQLite writes a column that was added behind the others on their line.
    return {"".join((sql or "").split()) for sql in tables}


def test_an_older_log_is_migrated_and_keeps_its_rows(log: Path, later: Branch) -> None:
    engine = open_for_writing(address_of(log))
    migrate(engine, later, metadata=metadata, use=LOG)
    assert "region" in columns(engine)
    with engine.connect() as connection:
        assert list(connection.scalars(text("SELECT version_num FROM bardo_revisions"))) == ["log_9999"]
        assert connection.scalar(text("SELECT request_id FROM inference_log")) == "req-1"
    engine.dispose()


def test_reading_migrates_an_older_log_too(log: Path, later: Branch) -> None:
    engine = open_readable(address_of(log), branch=later)
    assert "region" in columns(engine)
    engine.dispose()


def test_a_migration_that_fails_leaves_the_log_as_it_was(log: Path, later: Branch) -> None:
    script = Path(later.tree) / "versions" / "log_9999_later.py"
    script.write_text(script.read_text() + '    op.execute("INSERT INTO nowhere VALUES (1)")\n')
    engine = open_for_writing(address_of(log))
    with pytest.raises(LogUnusable, match="nowhere"):
        migrate(engine, later, metadata=metadata, use=LOG)
    assert "region" not in columns(engine)
    engine.dispose()
    with LogReader(log) as reader:
        assert reader.get("req-1") == ROW


@pytest.mark.parametrize("open_log", [LogWriter, LogReader])
def test_a_newer_log_is_refused_with_advice_and_left_alone(
    open_log: type[LogWriter] | type[LogReader], log: Path, later: Branch
) -> None:
    engine = open_for_writing(address_of(log))
    migrate(engine, later, metadata=metadata, use=LOG)
    engine.dispose()
    before = form(log)
    with pytest.raises(LogNewer, match="newer bardo") as caught:
        open_log(log)
    assert "upgrade bardo" in caught.value.hint
    assert form(log) == before


def test_a_database_of_another_program_is_no_log_to_read(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE things (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(LogMissing, match="holds no inference log"):
        LogReader(path)


def test_many_that_open_a_new_log_at_once_take_turns(tmp_path: Path) -> None:
    together = Barrier(8)

    def open_one(path: Path) -> None:
        together.wait()
        LogWriter(path).close()

    with ThreadPoolExecutor(8) as threads:
        for number in range(5):
            path = tmp_path / f"log-{number}.db"
            for opened in [threads.submit(open_one, path) for _ in range(8)]:
                opened.result()
            with LogReader(path) as reader:
                assert reader.recent(1) == []


def test_a_log_is_kept_in_a_journal_that_readers_do_not_hold_up(log: Path) -> None:
    connection = sqlite3.connect(log)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
