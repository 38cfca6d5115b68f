"""What only a file promises: it outlives the process, several share it, and a wrong one is told apart."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from bardo.adapters.config.settings import ResponseSettings
from bardo.adapters.stores.response_store import open_responses
from bardo.adapters.stores.state import Bounds, SqliteStore
from bardo.values.errors import ConfigError

pytestmark = pytest.mark.each_python


def test_what_was_put_in_is_there_after_a_restart(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "replay.db")
    first.put("a", ["x"], b"value", now=0)
    first.close()
    second = SqliteStore(tmp_path / "replay.db")
    assert second.find("a", ["x"], now=1) == {"x": b"value"}
    assert second.totals("a") == (1, 6)
    second.close()


def test_two_workers_share_a_file_and_its_bounds(tmp_path: Path) -> None:
    one, other = (SqliteStore(tmp_path / "replay.db", Bounds(entries=3)) for _ in range(2))
    for place in range(4):
        (one if place % 2 else other).put("a", [f"k{place}"], b"v", now=place)
    assert sorted(one.find("a", ["k0", "k1", "k2", "k3"], now=4)) == ["k1", "k2", "k3"]
    one.close()
    other.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "deep" / "replay.db")
    assert (tmp_path / "deep" / "replay.db").stat().st_mode & 0o077 == 0
    store.close()


def test_a_file_that_is_something_else_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    with pytest.raises(ConfigError, match=r"notes\.txt cannot be used") as caught:
        open_responses(ResponseSettings(store=str(tmp_path / "notes.txt")))
    assert 'store = "memory"' in caught.value.hint


def test_a_file_of_another_version_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "replay.db")
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(ConfigError, match="version 9"):
        SqliteStore(tmp_path / "replay.db")


def test_a_file_of_the_version_before_is_begun_anew(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "replay.db")
    connection.executescript(
        "CREATE TABLE entries (id); CREATE TABLE keys (entry); CREATE TABLE shares (tenant); PRAGMA user_version = 1;"
    )
    connection.close()
    store = SqliteStore(tmp_path / "replay.db")
    store.put("a", ["x"], b"value", now=0)
    assert store.find("a", ["x"], now=1) == {"x": b"value"}
    store.close()


def test_an_entry_that_goes_takes_its_keys_along(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "replay.db", Bounds(entries=1))
    store.put("a", ["x", "y"], b"1", now=0)
    store.put("a", ["z"], b"2", now=0)
    connection = sqlite3.connect(tmp_path / "replay.db")
    assert connection.execute("SELECT key FROM keys").fetchall() == [("z",)]
    connection.close()
    store.close()
