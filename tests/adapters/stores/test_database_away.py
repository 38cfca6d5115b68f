"""A store whose PostgreSQL server is away when it is opened makes its tables once the server is back; other mistakes are told at once."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.database import revisions
from bardo.adapters.stores.database.problems import DatabaseProblem, LogUnusable, StoreUnavailable
from bardo.adapters.stores.log import LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.database import address_of
from bardo.adapters.stores.log.row import LogGap
from bardo.adapters.stores.log.store import open_store
from bardo.adapters.stores.memory.store import EpisodeStore
from bardo.adapters.stores.migrations import LOG_BRANCH
from support.episodes import draft
from support.patience import PATIENCE
from support.postgres import PostgresServer

pytestmark = pytest.mark.each_python


def row(request_id: str) -> LogRow:
    return LogRow(request_id=request_id, started_at=1_700_000_000.0)


def test_rows_of_a_log_that_was_opened_without_its_server_are_stored_once_it_is_back(
    own_postgres: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own_postgres.stop()
    with caplog.at_level(logging.ERROR), LogWriter(own_postgres.address, journal=tmp_path) as log:
        assert "it is used as soon as it is back" in caplog.text
        log.write(row("first"))
        own_postgres.start()
        until = time.monotonic() + PATIENCE
        while not log.flush(0.1):
            assert time.monotonic() < until, "the row was not stored"
        log.write(row("second"))
        assert log.flush(PATIENCE)
    with LogReader(own_postgres.address) as reader:
        assert {one.request_id for one in reader.recent(9)} == {"first", "second"}


def test_a_log_of_a_newer_form_that_comes_back_keeps_its_rows_waiting(own_postgres: PostgresServer) -> None:
    open_store(own_postgres.address, keep_content=False).close()
    own_postgres.stop()
    store = open_store(own_postgres.address, keep_content=False)
    own_postgres.start()
    engine = create_engine(own_postgres.address)
    with engine.begin() as connection:
        connection.execute(text("UPDATE bardo_revisions SET version_num = 'log_9999'"))
    engine.dispose()
    for use in (
        lambda: store.append([row("one")]),
        lambda: store.stored(["one"]),
        lambda: store.note_gap(LogGap(noticed_at=1.0, why="x", rows=1)),
    ):
        with pytest.raises(StoreUnavailable, match="written by a newer bardo"):
            use()
    store.close()


def test_a_memory_that_was_opened_without_its_server_keeps_what_comes_once_it_is_back(
    own_postgres: PostgresServer,
) -> None:
    open_store(own_postgres.address, keep_content=False).close()
    own_postgres.stop()
    store = EpisodeStore(own_postgres.address, MemorySettings(enabled=True), None)
    store.sweep()
    with pytest.raises(StoreUnavailable):
        store.append([draft("req_1", "Is 91 prime?", "91 = 7 * 13.", "No.")])
    own_postgres.start()
    store.append([draft("req_1", "Is 91 prime?", "91 = 7 * 13.", "No.")])
    store.close()
    engine = create_engine(own_postgres.address)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM memory_episodes")) == 1
    engine.dispose()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("/postgres", "/none"), id="a database that does not exist"),
        pytest.param(("bardo@", "nobody_of_this_name@"), id="an account that does not exist"),
    ],
)
def test_a_server_that_refuses_is_not_away(own_postgres: PostgresServer, change: tuple[str, str]) -> None:
    address = own_postgres.address.replace(*change)
    with pytest.raises(LogUnusable) as told:
        open_store(address, keep_content=False)
    assert not told.value.away


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(("CREATE ROLE guest NOLOGIN",), id="an account that may not log in"),
        pytest.param(
            ("CREATE ROLE guest LOGIN", "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC"),
            id="a database without the right",
        ),
    ],
)
def test_a_server_that_gives_no_right_is_not_away(own_postgres: PostgresServer, statements: tuple[str, ...]) -> None:
    engine = create_engine(own_postgres.address)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()
    with pytest.raises(LogUnusable) as told:
        open_store(own_postgres.address.replace("bardo@", "guest@"), keep_content=False)
    assert not told.value.away


def test_only_a_server_is_away(own_postgres: PostgresServer, tmp_path: Path) -> None:
    own_postgres.stop()
    with pytest.raises(DatabaseProblem) as told:
        revisions.open_current(address_of(own_postgres.address), LOG_BRANCH)
    assert told.value.away
    (tmp_path / "notes.db").write_text("These are my notes. " * 100)
    with pytest.raises(DatabaseProblem) as told:
        revisions.open_current(address_of(tmp_path / "notes.db"), LOG_BRANCH, may_be_away=True)
    assert not told.value.away
