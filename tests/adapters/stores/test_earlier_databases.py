"""Databases that earlier versions wrote, with a table of revisions for each store: every form is taken over, and loses nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table, inspect, make_url, text
from sqlalchemy.types import Boolean, Double, LargeBinary, Numeric, Text

import bardo.adapters.stores.migrations
from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.database.revisions import migrate
from bardo.adapters.stores.log import LogReader, LogWriter
from bardo.adapters.stores.log.database import metadata as log_tables
from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
from bardo.adapters.stores.memory.store import open_tables
from bardo.adapters.stores.migrations import BATCHES_BRANCH, BRANCHES, LOG_BRANCH, VERSIONS, Branch
from bardo.batches.schema import metadata as batch_tables
from bardo.services.accounts.key_store import metadata as key_tables
from bardo.services.accounts.key_store import open_keys
from bardo.services.payments.ledger import find_ledger, open_ledger
from bardo.services.payments.ledger import metadata as payment_tables
from bardo.values.errors import OperatorError
from support.databases import open_database
from support.patience import PATIENCE
from support.revisions import earlier_forms, make_earlier, scripts

pytestmark = pytest.mark.each_python

UNWRITTEN = ("tenant", "cost_by_cause")
"""Columns of the log's first forms, in which no version wrote anything, and which a later form leaves out."""


def open_batch_tables(place: str) -> None:
    engine = open_database(place)
    try:
        migrate(engine, BATCHES_BRANCH, metadata=batch_tables)
    finally:
        engine.dispose()


OPEN: dict[str, Callable[[str], None]] = {
    "log": lambda place: LogWriter(place).close(),
    "memory": lambda place: open_tables(place).dispose(),
    "keys": lambda place: open_keys(place).dispose(),
    "payments": lambda place: open_ledger(place).close(),
    "batches": open_batch_tables,
}
TABLES = {"log": log_tables, "keys": key_tables, "payments": payment_tables, "batches": batch_tables}
"""The form of tables that this version uses, for the stores that have it as a value."""
FORMS = [(branch.name, form) for branch in BRANCHES for form in earlier_forms(branch.name)]
NEWEST = [(branch.name, earlier_forms(branch.name)[-1]) for branch in BRANCHES]
EARLIER_TABLES = {branch.name: branch.earlier_table for branch in BRANCHES}


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address where there is no database yet."""
    return str(tmp_path / "bardo.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@contextmanager
def connected(place: str) -> Iterator[Connection]:
    engine = open_database(place)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def make_and_fill(connection: Connection, store: str, form: str) -> None:
    """Make the tables of a store, and what they stand beside, in an earlier form, with a row in each."""
    if store == "memory" and not inspect(connection).has_table("inference_log"):
        make_earlier(connection, "log", earlier_forms("log")[-1])
    before = set(inspect(connection).get_table_names())
    make_earlier(connection, store, form)
    tables = MetaData()
    tables.reflect(connection, only=lambda name, _: name not in before and not name.startswith("memory_words"))
    for table in tables.sorted_tables:
        if table.name != EARLIER_TABLES[store]:
            connection.execute(
                table.insert(), {column.name: value_for(column.name, column.type) for column in table.columns}
            )


def value_for(name: str, kind: Any) -> Any:
    if isinstance(kind, Boolean):
        return True
    if isinstance(kind, LargeBinary):
        return b"\x01\x02"
    if isinstance(kind, Double):
        return 1.5
    if name in (
        "degraded",
        "usage_raw",
        "receipt",
        "cost_by_cause",
        "route",
        "cost_parts",
        "tags",
        "attempt_records",
        "pipeline",
    ):
        return "[]"
    if isinstance(kind, Text) or str(kind).startswith(("VARCHAR", "TEXT")):
        return f"ä {name}"
    return 1 if isinstance(kind, Numeric) or "INT" in str(kind) else None


def rows_of(connection: Connection, tables: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()] for name in tables
    }


def tables_of(connection: Connection) -> list[str]:
    marks = {VERSIONS, *EARLIER_TABLES.values()}
    return [name for name in inspect(connection).get_table_names() if name not in marks and "memory_words" not in name]


def revisions_of(connection: Connection, table: str = VERSIONS) -> set[str]:
    return (
        set(connection.scalars(text(f"SELECT version_num FROM {table}")))
        if inspect(connection).has_table(table)
        else set()
    )


def branch_of(store: str) -> Branch:
    return next(branch for branch in BRANCHES if branch.name == store)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("store", "form"), FORMS, ids=[f"{store}-{form}" for store, form in FORMS])
def test_every_earlier_form_is_taken_over_with_its_rows(store: str, form: str, place: str) -> None:
    with connected(place) as connection:
        make_and_fill(connection, store, form)
        before = rows_of(connection, tables_of(connection))
    OPEN[store](place)
    with connected(place) as connection:
        assert revisions_of(connection) == {branch_of(store).newest}
        after = rows_of(connection, [*before])
        for table, rows in before.items():
            lost = UNWRITTEN if table == "inference_log" and form < "0004" else ()
            assert [
                {name: row[name] for name in one if name not in lost}
                for one, row in zip(rows, after[table], strict=True)
            ] == [{name: value for name, value in one.items() if name not in lost} for one in rows]
        assert differences(connection, store) == []
        assert revisions_of(connection, EARLIER_TABLES[store]) == {VERSIONS}, "an older bardo refuses the database"
        whole = rows_of(connection, inspect(connection).get_table_names())
    OPEN[store](place)
    with connected(place) as connection:
        assert rows_of(connection, inspect(connection).get_table_names()) == whole


def differences(connection: Connection, store: str) -> list[Any]:
    """Return in what the tables differ from those that this version makes."""
    if store not in TABLES:
        return []
    names = TABLES[store].tables.keys()

    def is_ours(item: Any, name: str | None, kind: str, _reflected: bool, _compared: object) -> bool:
        return kind != "table" or (isinstance(item, Table) and name in names)

    options = {"version_table": VERSIONS, "compare_type": True, "include_object": is_ours}
    found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), TABLES[store])
    return found


def test_stores_of_one_database_are_taken_over_one_by_one(place: str) -> None:
    with connected(place) as connection:
        for store, form in NEWEST:
            make_and_fill(connection, store, form)
        before = rows_of(connection, tables_of(connection))
    taken = set[str]()
    for store, _ in NEWEST:
        OPEN[store](place)
        taken.add(branch_of(store).newest)
        with connected(place) as connection:
            assert revisions_of(connection) == taken
            after = rows_of(connection, [*before])
        for table, rows in before.items():
            assert [row.items() <= now.items() for row, now in zip(rows, after[table], strict=True)] == [True] * len(
                rows
            )


@pytest.mark.parametrize(
    "forms", [NEWEST, [(store, "0001") for store, _ in NEWEST], []], ids=["newest", "oldest", "none"]
)
def test_stores_that_are_opened_at_once_take_turns(forms: list[tuple[str, str]], place: str) -> None:
    with connected(place) as connection:
        # A memory is beside a log, whose tables are there before it is opened.
        for store, form in forms or [("log", "0010")]:
            make_and_fill(connection, store, form)
        before = connection.scalar(text("SELECT request_id FROM inference_log"))
    together = Barrier(10)

    def open_one(store: str) -> None:
        together.wait()
        OPEN[store](place)

    with ThreadPoolExecutor(10) as threads:
        for opened in [threads.submit(open_one, store) for store in [*OPEN, *OPEN]]:
            opened.result()
    with connected(place) as connection:
        assert revisions_of(connection) == {branch.newest for branch in BRANCHES}
        assert connection.scalar(text("SELECT request_id FROM inference_log")) == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("store", OPEN)
def test_an_earlier_form_that_is_not_known_is_refused_and_left_alone(store: str, place: str) -> None:
    with connected(place) as connection:
        make_and_fill(connection, store, dict(NEWEST)[store])
        connection.execute(text(f"UPDATE {EARLIER_TABLES[store]} SET version_num = '0999'"))
        before = rows_of(connection, inspect(connection).get_table_names())
    with pytest.raises(OperatorError, match=r"was written by a newer bardo \(its form is 0999\)") as caught:
        OPEN[store](place)
    assert "upgrade bardo" in caught.value.hint
    with connected(place) as connection:
        assert rows_of(connection, inspect(connection).get_table_names()) == before


def test_a_store_of_a_newer_bardo_is_no_hindrance_to_the_others(place: str) -> None:
    with connected(place) as connection:
        make_and_fill(connection, "log", "0006")
        make_and_fill(connection, "keys", "0001")
    OPEN["keys"](place)
    with connected(place) as connection:
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = 'keys_0999'"))
        connection.execute(text(f"INSERT INTO {VERSIONS} VALUES ('dreams_0001')"))
    OPEN["log"](place)
    OPEN["memory"](place)
    with connected(place) as connection:
        assert revisions_of(connection) == {"keys_0999", "dreams_0001", "log_0011", "memory_0001"}
    with pytest.raises(OperatorError, match="its form is 0999"):
        OPEN["keys"](place)


def test_a_table_that_an_older_bardo_made_again_changes_nothing(place: str) -> None:
    OPEN["log"](place)
    with connected(place) as connection:
        connection.execute(text("CREATE TABLE inference_log_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO inference_log_version VALUES ('0009')"))
    OPEN["log"](place)
    LogReader(place).close()
    with connected(place) as connection:
        assert revisions_of(connection) == {"log_0011"}


def test_an_earlier_table_without_a_form_is_one_of_no_store(place: str) -> None:
    with connected(place) as connection:
        connection.execute(text("CREATE TABLE inference_log_version (version_num VARCHAR(32) NOT NULL)"))
    OPEN["log"](place)
    with connected(place) as connection:
        assert revisions_of(connection) == {"log_0011"}
        assert differences(connection, "log") == []


def test_what_is_only_read_is_left_as_it_is_where_its_form_is_the_newest(place: str) -> None:
    with connected(place) as connection:
        make_and_fill(connection, "memory", "0001")
    memory = ReasoningMemory(place, MemorySettings(), None, clock=lambda: 2.0)
    assert memory.stats().episodes == 1
    memory.close()
    with connected(place) as connection:
        assert not inspect(connection).has_table(VERSIONS)


def test_a_ledger_of_an_earlier_version_is_found(place: str) -> None:
    with connected(place) as connection:
        make_and_fill(connection, "payments", "0001")
    ledger = find_ledger(place)
    assert ledger is not None
    ledger.close()


def test_a_take_over_that_fails_leaves_the_database_as_it_was(place: str, tmp_path: Path) -> None:
    with connected(place) as connection:
        make_and_fill(connection, "log", "0008")
        before = rows_of(connection, inspect(connection).get_table_names())
    later = tree_with(tmp_path, "log_0010_estimated_sums.py", 'op.execute("INSERT INTO nowhere VALUES (1)")')
    engine = open_database(place)
    with pytest.raises(OperatorError, match="nowhere"):
        migrate(engine, LOG_BRANCH._replace(tree=later), metadata=log_tables)
    engine.dispose()
    with connected(place) as connection:
        assert rows_of(connection, inspect(connection).get_table_names()) == before
    OPEN["log"](place)


def test_a_role_that_may_make_no_tables_goes_on_with_the_newest_form(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    role = f"rows_{uuid.uuid4().hex}"
    with connected(postgres_url) as connection:
        make_and_fill(connection, "keys", "0001")
        make_and_fill(connection, "batches", "0001")
        connection.execute(text(f"CREATE ROLE {role}"))
        connection.execute(text(f"GRANT USAGE ON SCHEMA public TO {role}"))
        connection.execute(text(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}"))
        connection.execute(text(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}"))
    restricted = make_url(postgres_url).update_query_dict({"options": f"-c role={role}"})
    place = restricted.render_as_string(hide_password=False)
    try:
        OPEN["keys"](place)
        assert f"{EARLIER_TABLES['keys']} is used instead" in caplog.text
        with pytest.raises(OperatorError, match="permission denied"):
            OPEN["batches"](place)
        with connected(postgres_url) as connection:
            assert not inspect(connection).has_table(VERSIONS)
            assert revisions_of(connection, EARLIER_TABLES["keys"]) == {"0001"}
        OPEN["keys"](postgres_url)
        OPEN["batches"](postgres_url)
    finally:
        with connected(postgres_url) as connection:
            connection.execute(text(f"DROP OWNED BY {role}"))
            connection.execute(text(f"DROP ROLE {role}"))


KILLED = """
import os, sys
from bardo.adapters.stores.database import engines, revisions
from bardo.adapters.stores.migrations import LOG_BRANCH
engine = engines.open_for_writing(engines.address_of(sys.argv[1]))
revisions.migrate(engine, LOG_BRANCH._replace(tree=sys.argv[2]))
"""


@pytest.mark.sampled(1)
def test_a_process_that_is_killed_while_it_takes_over_leaves_the_database_as_it_was(place: str, tmp_path: Path) -> None:
    with connected(place) as connection:
        make_and_fill(connection, "log", "0006")
        before = rows_of(connection, inspect(connection).get_table_names())
    later = tree_with(tmp_path, "log_0010_estimated_sums.py", "__import__('os')._exit(9)")
    ended = subprocess.run([sys.executable, "-c", KILLED, place, later], timeout=PATIENCE)
    assert ended.returncode == 9
    with connected(place) as connection:
        assert rows_of(connection, inspect(connection).get_table_names()) == before
    OPEN["log"](place)
    with connected(place) as connection:
        assert revisions_of(connection) == {"log_0011"}
        assert differences(connection, "log") == []


def tree_with(tmp_path: Path, script: str, step: str) -> str:
    """Return a copy of the tree in which one revision begins with a step."""
    folder = tmp_path / "tree"
    shutil.copytree(Path(bardo.adapters.stores.migrations.__file__).parent, folder)
    file, begin = folder / "versions" / script, "def upgrade() -> None:\n"
    file.write_text(file.read_text().replace(begin, f"{begin}    {step}\n"))
    return str(folder)


def test_each_store_has_one_line_of_revisions_that_ends_in_its_newest() -> None:
    tree = scripts()
    assert set(tree.get_heads()) == {branch.newest for branch in BRANCHES}
    for branch in BRANCHES:
        line = [script.revision for script in tree.walk_revisions(head=branch.newest)]
        assert all(map(branch.owns, line))
        assert sorted(line, reverse=True) == line
        assert [f"{branch.name}_{form}" for form in earlier_forms(branch.name)] == line[::-1][
            : len(earlier_forms(branch.name))
        ]
        assert tree.get_revision(line[-1]).branch_labels == {branch.name}
