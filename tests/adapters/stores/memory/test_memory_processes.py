"""Several processes keep episodes in one database, and tables come and go with their migrations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sqlalchemy import inspect

from bardo.adapters.stores.log import LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.database import address_of, open_for_writing
from bardo.adapters.stores.memory.schema import metadata
from bardo.adapters.stores.memory.store import open_tables
from support.episodes import Kept, draft
from support.patience import PATIENCE
from support.revisions import downgrade, upgrade

TESTS = Path(__file__).parents[3]
WRITE = """
import sys
sys.path.insert(0, sys.argv[3])
from support.episodes import Kept, draft
with Kept(sys.argv[1]) as kept:
    for number in range(60):
        kept.add(draft(f"req_{sys.argv[2]}_{number:02}", f"question {number}", f"thought of {sys.argv[2]}", "answer"))
"""


def test_several_processes_keep_episodes_in_one_place(place: str) -> None:
    command_of = [sys.executable, "-c", WRITE, place]
    started = [subprocess.Popen([*command_of, name, str(TESTS)]) for name in ("one", "two")]
    assert [process.wait(PATIENCE) for process in started] == [0, 0]
    with Kept(place) as kept:
        assert kept.memory.stats().episodes == 120
        assert len(kept.ids('"thought of two"', limit=100)) == 60
    with LogReader(place) as log:
        assert len(log.recent(1000)) == 120


def migrate(place: str, revision: str) -> None:
    engine = open_for_writing(address_of(place))
    with engine.begin() as connection:
        (downgrade if revision == "base" else upgrade)(connection, f"memory@{revision}")
    engine.dispose()


def test_the_tables_go_without_a_trace_and_come_again(place: str) -> None:
    with Kept(place) as kept:
        kept.add(draft("req_1", "word", "t"))
    migrate(place, "base")
    engine = open_for_writing(address_of(place))
    tables = inspect(engine).get_table_names()
    assert [name for name in tables if "memory" in name] == []
    engine.dispose()
    with LogWriter(place) as log:
        log.write(LogRow(request_id="req_2", started_at=1.0))
    migrate(place, "head")
    with Kept(place) as kept:
        kept.add(draft("req_3", "word", "t"))
        assert kept.ids("word") == ["req_3"]
    with LogReader(place) as log:
        assert [row.request_id for row in log.recent(5)] == ["req_3", "req_2", "req_1"]


def test_the_tables_have_the_columns_that_are_asked_for(place: str) -> None:
    LogWriter(place).close()
    engine = open_tables(place)
    made = inspect(engine)
    for table in metadata.tables.values():
        assert {column["name"] for column in made.get_columns(table.name)} == set(table.columns.keys())
    engine.dispose()


def test_a_log_without_a_memory_has_none_of_its_tables(place: str) -> None:
    LogWriter(place).close()
    engine = open_for_writing(address_of(place))
    assert [name for name in inspect(engine).get_table_names() if "memory" in name] == []
    engine.dispose()
