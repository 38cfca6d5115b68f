"""Databases of both engines: made, migrated, shared by several owners of tables, and refused with words that help."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, inspect, text

from bardo.adapters.stores.database.engines import address_of, open_for_reading, shown
from bardo.adapters.stores.database.problems import DatabaseMissing, DatabaseNewer, DatabaseUnusable
from bardo.adapters.stores.database.revisions import migrate, stored_revision
from bardo.adapters.stores.migrations import Branch
from support.databases import open_database

pytestmark = pytest.mark.each_python

ENVIRONMENT = """
from alembic import context

context.configure(connection=context.config.attributes["connection"], version_table="bardo_revisions")
with context.begin_transaction():
    context.run_migrations()
"""
REVISION = """
import sqlalchemy as sa
from alembic import op

revision = "coins_{number}"
down_revision = {before!r}


def upgrade() -> None:
    {step}
"""
FIRST = 'op.create_table("coins", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.Text))'
SECOND = 'op.add_column("coins", sa.Column("colour", sa.Text))'
METADATA = MetaData()
Table("coins", METADATA, Column("id", Integer, primary_key=True), Column("name", Text))


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address where there is no database yet."""
    return str(tmp_path / "state.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def coins(tmp_path: Path) -> Branch:
    """A store with one revision."""
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    (folder / "env.py").write_text(ENVIRONMENT)
    (folder / "versions" / "r0001.py").write_text(REVISION.format(number="0001", before=None, step=FIRST))
    return Branch("coins", "coins_0001", "coins_version", tree=str(folder))


def columns(address: str) -> list[str]:
    engine = open_database(address)
    try:
        return [column["name"] for column in inspect(engine).get_columns("coins")]
    finally:
        engine.dispose()


def brought(address: str, branch: Branch, metadata: MetaData | None = None) -> str | None:
    engine = open_database(address)
    try:
        migrate(engine, branch, metadata=metadata)
        with engine.connect() as connection:
            return stored_revision(connection, branch)
    finally:
        engine.dispose()


@pytest.mark.parametrize("metadata", [None, METADATA], ids=["by migrations", "at once"])
def test_tables_are_made_and_then_migrated(address: str, coins: Branch, metadata: MetaData | None) -> None:
    assert brought(address, coins, metadata) == "coins_0001"
    assert columns(address) == ["id", "name"]
    later = Path(coins.tree, "versions", "r0002.py")
    later.write_text(REVISION.format(number="0002", before="coins_0001", step=SECOND))
    assert brought(address, coins._replace(newest="coins_0002"), metadata) == "coins_0002"
    assert columns(address) == ["id", "name", "colour"]


def test_a_newer_form_is_refused(address: str, coins: Branch) -> None:
    brought(address, coins)
    engine = open_database(address)
    with engine.begin() as connection:
        connection.execute(text("UPDATE bardo_revisions SET version_num = 'coins_7000'"))
    with pytest.raises(DatabaseNewer, match="its form is 7000") as caught:
        migrate(engine, coins)
    assert "upgrade bardo" in caught.value.hint
    engine.dispose()


def test_writers_take_turns(address: str, coins: Branch) -> None:
    brought(address, coins)
    engine = open_database(address)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO coins VALUES (1, '0')"))

    def add() -> None:
        for _ in range(25):
            with engine.begin() as connection:
                before = int(connection.scalar(text("SELECT name FROM coins")) or 0)
                connection.execute(text("UPDATE coins SET name = :name"), {"name": str(before + 1)})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT name FROM coins")) == "100"
    engine.dispose()


def test_what_is_no_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database, but longer than a header of one would be: " * 20)
    with pytest.raises(DatabaseUnusable, match=r"state database at .*notes\.txt cannot be used"):
        brought(str(tmp_path / "notes.txt"), Branch("coins", "coins_0001", "coins_version"), METADATA)
    with pytest.raises(DatabaseUnusable, match="no state database can be kept at mysql"):
        open_database("mysql://somebody:hush@host/keys")
    with pytest.raises(DatabaseMissing, match="there is no state database"):
        open_for_reading(address_of(tmp_path / "absent.db"))


def test_a_file_that_is_read_is_shown_by_its_path(tmp_path: Path) -> None:
    place = tmp_path / "100% of it.db"
    open_database(place).dispose()
    engine = open_for_reading(address_of(place))
    assert shown(engine.url) == str(place)
    engine.dispose()


def test_an_address_is_shown_without_its_password() -> None:
    assert "hush" not in shown(address_of("postgresql+psycopg://somebody:hush@host/keys?sslkey=hush"))


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_an_address_of_postgresql_needs_no_driver(scheme: str) -> None:
    assert address_of(f"{scheme}://bardo@db/bardo").drivername == "postgresql+psycopg"
