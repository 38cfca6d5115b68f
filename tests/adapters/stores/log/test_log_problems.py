"""A log that cannot be opened says what is wrong and what to do."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.log import LogMissing, LogProblem, LogReader, LogRow, LogUnusable, LogWriter, sqlite_store
from bardo.values.errors import BardoError

pytestmark = pytest.mark.each_python


def test_a_missing_log_is_named_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with pytest.raises(LogMissing, match=str(path)) as caught:
        LogReader(path)
    assert caught.value.hint
    assert isinstance(caught.value, BardoError)
    assert not path.exists()


def test_an_empty_file_holds_no_log_to_read(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(LogMissing, match="holds no inference log"):
        LogReader(path)


@pytest.mark.parametrize("open_log", [LogWriter, LogReader])
def test_a_file_that_is_no_database_is_left_as_it_is(
    tmp_path: Path, open_log: type[LogWriter] | type[LogReader]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes. " * 100)
    with pytest.raises(LogUnusable, match="not a database"):
        open_log(path)
    assert path.read_text() == "These are my notes. " * 100


@pytest.mark.parametrize("kind", ["no database", "locked", "newer"])
def test_a_log_that_cannot_be_opened_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    opened, connect, path = list[sqlite3.Connection](), sqlite3.connect, tmp_path / "log.db"
    if kind == "no database":
        path.write_text("These are my notes. " * 100)
    else:
        LogWriter(path).close()
    with closing(connect(path, isolation_level=None)) as other:
        if kind == "locked":
            other.execute("BEGIN IMMEDIATE")
        elif kind == "newer":
            other.execute("UPDATE bardo_revisions SET version_num = 'log_9999'")

        def noted(*args: Any, **options: Any) -> sqlite3.Connection:
            opened.append(connect(*args, **options))
            return opened[-1]

        monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
        monkeypatch.setattr(sqlite3, "connect", noted)
        with pytest.raises(LogProblem):
            LogWriter(path)
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_path_below_a_file_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogUnusable, match="cannot be created") as caught:
        LogWriter(tmp_path / "file" / "log.db")
    assert "directory" in caught.value.hint


def test_a_directory_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogUnusable, match="unable to open"):
        LogWriter(tmp_path)
    with pytest.raises(LogMissing):
        LogReader(tmp_path)


def test_a_directory_that_may_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Rights do not stop the superuser, whom some test machines run as: the system's answer is given here.
    def refuse(path: Path, mode: int = 0o666) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(LogUnusable, match="Permission denied"):
        LogWriter(tmp_path / "log.db")


@pytest.mark.parametrize(
    "address",
    ["mysql://me:secret@host/logs", "nothing://me:secret@host", "sqlite://", "postgresql+nodriver://me:secret@host/x"],
)
def test_an_address_of_no_use_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(LogUnusable) as caught:
        LogWriter(address)
    assert "secret" not in str(caught.value)
    assert caught.value.hint


def test_missing_directories_are_made_and_only_the_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "log with ? and % and #.db"
    with LogWriter(path) as writer:
        writer.write(LogRow(request_id="req-1", started_at=1.0))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with LogReader(path) as reader:
        assert reader.get("req-1") is not None


def test_a_log_that_breaks_while_it_is_read_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "log.db"
    LogWriter(path).close()
    with LogReader(path) as reader:
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE inference_log")
        connection.close()
        with pytest.raises(LogProblem, match="no such table"):
            reader.recent(1)
