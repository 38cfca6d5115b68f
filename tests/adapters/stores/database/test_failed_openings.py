"""A database that cannot be used is closed at once, and not whenever its connection is collected."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import MemorySettings
from bardo.adapters.stores.log import LogWriter
from bardo.adapters.stores.log.feedback import FeedbackStore
from bardo.adapters.stores.log.row import Feedback
from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory
from bardo.adapters.stores.state.sqlite import SqliteStore
from bardo.services.accounts.usage import LogSpend
from bardo.values.errors import BardoError

pytestmark = pytest.mark.each_python

Use = Callable[[Path], object]


def note_feedback(path: Path) -> object:
    return FeedbackStore(path).add(Feedback(request_id="req_1", given_at=1.0, score=1.0), "")


USES: dict[str, Use] = {
    "replay": SqliteStore,
    "spend": lambda path: LogSpend(path)("key", 20261101, 20261130),
    "feedback": note_feedback,
    "memory": lambda path: ReasoningMemory(path, MemorySettings(), None).stats(),
}


def no_database(path: Path) -> None:
    path.write_text("These are my notes. " * 100)


def newer(path: Path) -> None:
    LogWriter(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE bardo_revisions SET version_num = 'log_9999'")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("spoil", [no_database, newer])
@pytest.mark.parametrize("use", USES)
def test_every_connection_is_closed(
    use: str, spoil: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened, connect = tmp_path / "bardo.db", list[sqlite3.Connection](), sqlite3.connect
    spoil(path)

    def noted(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", noted)
    with pytest.raises(BardoError):
        USES[use](path)
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
