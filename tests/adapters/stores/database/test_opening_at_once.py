"""Workers that start at the same time make the same file: SQLite refuses some of them without waiting, and none may fail for it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from bardo.adapters.stores.log.sqlite_store import SqliteLogStore
from bardo.adapters.stores.state import SqliteStore
from bardo.services.facts.health_sharing import FileExchange
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python


class Closes(Protocol):
    def close(self) -> None: ...


def _log(path: Path) -> SqliteLogStore:
    return SqliteLogStore(path, keep_content=False)


def _exchange(path: Path) -> FileExchange:
    return FileExchange(path, past_seconds=60.0, timeout=PATIENCE)


OPENINGS = pytest.mark.parametrize("opened", [SqliteStore, _exchange, _log])


@contextmanager
def _another_writes(path: Path) -> Iterator[None]:
    """Hold a new file for a short time, as a worker does that makes its tables."""
    held = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            held.set()
            time.sleep(0.2)
            other.execute("COMMIT")

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        assert held.wait(PATIENCE)
        yield
        writing.result()


@OPENINGS
def test_a_file_that_another_worker_is_making_is_waited_for(tmp_path: Path, opened: Callable[[Path], Closes]) -> None:
    with _another_writes(tmp_path / "new.db"):
        opened(tmp_path / "new.db").close()


@OPENINGS
def test_many_workers_make_one_file(tmp_path: Path, opened: Callable[[Path], Closes]) -> None:
    together = threading.Barrier(8, timeout=PATIENCE)

    def open_one(number: int) -> None:
        for turn in range(5):
            together.wait()
            opened(tmp_path / f"new{turn}.db").close()

    with ThreadPoolExecutor(8) as threads:
        for opening in [threads.submit(open_one, number) for number in range(8)]:
            opening.result()


def test_workers_that_begin_an_older_store_anew_drop_it_once(tmp_path: Path) -> None:
    """The one that comes second must not drop what the first has put in."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(
            "CREATE TABLE keys (a); CREATE TABLE entries (a); CREATE TABLE shares (a); PRAGMA user_version = 1;"
        )
    together = threading.Barrier(4, timeout=PATIENCE)

    def put_one(number: int) -> None:
        together.wait()
        with closing(SqliteStore(path)) as store:
            store.put("a", [f"k{number}"], b"value", now=0)

    with ThreadPoolExecutor(4) as threads:
        for putting in [threads.submit(put_one, number) for number in range(4)]:
            putting.result()
    with closing(SqliteStore(path)) as store:
        assert sorted(store.find("a", [f"k{number}" for number in range(4)], now=1)) == ["k0", "k1", "k2", "k3"]
