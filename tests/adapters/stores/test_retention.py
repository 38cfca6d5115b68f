"""Old calls are removed with all that hangs on them, and what they cost is known as before."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from bardo.adapters.config.settings import LogSettings, Settings, parse_settings
from bardo.adapters.stores import retention
from bardo.adapters.stores.log import Feedback, LogMissing, LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.feedback import FeedbackStore
from bardo.adapters.stores.memory.episodes import EpisodeSelection
from bardo.adapters.stores.retention import LogKeeper, LogPruning
from bardo.values.errors import ConfigError
from bardo.wiring import ConfigurationParts
from support.episodes import Kept, draft
from support.patience import PATIENCE

DAY = 86_400.0
NOW = 20_000 * DAY + 3_600.0


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an address where there is no log yet."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 7)


def call(number: int, days: float, **fields: object) -> LogRow:
    return LogRow(request_id=f"req_{number}", started_at=NOW - days * DAY, cost_nanos=5, tenant="t", **fields)  # type: ignore[arg-type]


def fill(place: str, *, old: int = 20, new: int = 10) -> None:
    with LogWriter(place, keep_content=True) as log:
        for number in range(old):
            log.write(call(number, 10 + number % 3, request_content=f"question {number}"))
        for number in range(old, old + new):
            log.write(call(number, number % 3))


def left(place: str) -> list[str]:
    with LogReader(place) as reader:
        return [row.request_id for row in reader.recent(1000)[::-1]]


@pytest.mark.usefixtures("small_batches")
def test_old_calls_go_and_sums_stay(place: str) -> None:
    fill(place)
    with LogReader(place) as reader:
        before = reader.costs()
    with LogPruning(place) as log:
        assert log.count(NOW - 5 * DAY) == 20
        done = log.prune(NOW - 5 * DAY)
        assert (done.calls, log.count(NOW - 5 * DAY)) == (20, 0)
        assert log.prune(NOW - 5 * DAY).calls == 0
    assert left(place) == [f"req_{number}" for number in range(20, 30)]
    with LogReader(place) as reader:
        assert reader.costs() == before


def test_a_day_is_removed_as_a_whole(place: str) -> None:
    fill(place, old=0, new=3)
    with LogPruning(place) as log:
        log.prune(NOW - 1 * DAY + 30 * 60)
    assert left(place) == ["req_0", "req_1"]


def test_a_number_of_a_row_is_never_given_again(place: str) -> None:
    fill(place, old=5, new=0)
    with LogPruning(place) as log:
        log.prune(NOW)
    with LogWriter(place) as writer:
        writer.write(call(100, 0))
    with LogReader(place) as reader:
        # A sequence of PostgreSQL may leave numbers out.
        assert reader.last_row_number() > 5


def test_feedback_goes_with_its_call(place: str) -> None:
    fill(place)
    store = FeedbackStore(place)
    for number in (1, 25):
        assert store.add(Feedback(request_id=f"req_{number}", given_at=NOW, score=1.0), "t")
    store.close()
    with LogPruning(place) as log:
        assert log.prune(NOW - 5 * DAY).feedback == 1
    with LogReader(place) as reader:
        assert (len(reader.feedback("req_1")), len(reader.feedback("req_25"))) == (0, 1)


def test_episodes_go_with_their_calls(place: str) -> None:
    with Kept(place, folder="", retention_days=0) as kept:
        times = [NOW - (10 if number < 20 else 1) * DAY for number in range(30)]
        kept.add(*(draft(f"req_{number}", "q", "thinking", "a", started_at=time) for number, time in enumerate(times)))
        assert kept.memory.count(EpisodeSelection()) == 30
        with LogPruning(place) as log:
            log.prune(NOW - 5 * DAY)
        assert kept.memory.count(EpisodeSelection()) == 10


def test_nothing_of_what_was_said_is_left_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with LogWriter(path, keep_content=True) as log:
        for number in range(200):
            log.write(call(number, 10, request_content=f"zebra{number:04}crossing " * 20))
    with LogPruning(path) as old:
        old.prune(NOW - 5 * DAY)
        size = old.size() or 0
        assert old.shrink()
        assert (old.size() or 0) < size
    assert not [file.name for file in tmp_path.rglob("*") if file.is_file() and b"zebra0" in file.read_bytes()]


def test_calls_are_written_while_others_are_removed(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 50)
    fill(place, old=1000, new=0)
    with LogWriter(place, flush_seconds=0.01) as writer, LogPruning(place) as log:
        remover = threading.Thread(target=log.prune, args=(NOW - 5 * DAY,))
        remover.start()
        for number in range(2000, 2200):
            writer.write(call(number, 0))
            time.sleep(0.001)
        remover.join()
        assert writer.flush(PATIENCE)
        assert writer.dropped == 0
    assert left(place) == [f"req_{number}" for number in range(2000, 2200)]


@pytest.mark.usefixtures("small_batches")
def test_it_stops_after_a_batch(place: str) -> None:
    fill(place)
    with LogPruning(place) as log:
        assert log.prune(NOW - 5 * DAY, rest=lambda seconds: True).calls == 7
    assert len(left(place)) == 23


def test_a_log_that_is_not_there_is_not_made(place: str, tmp_path: Path) -> None:
    with pytest.raises(LogMissing):
        LogPruning(place)
    assert not (tmp_path / "log.db").exists()


@pytest.mark.usefixtures("small_batches")
def test_the_keeper_removes_what_is_too_old(place: str) -> None:
    fill(place)
    keeper = LogKeeper(place, 5.0, clock=lambda: NOW, first_look=0.0, between=0.01)
    try:
        give_up = time.monotonic() + PATIENCE
        while len(left(place)) > 10 and time.monotonic() < give_up:
            time.sleep(0.01)
    finally:
        keeper.close()
    assert len(left(place)) == 10


def test_a_keeper_that_cannot_work_says_so_and_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keeper = LogKeeper(tmp_path / "absent.db", 5.0, first_look=0.0, between=0.01)
    give_up = time.monotonic() + PATIENCE
    while len(caplog.records) < 2 and time.monotonic() < give_up:
        time.sleep(0.01)
    keeper.close()
    assert len(caplog.records) >= 2


@pytest.mark.parametrize(("days", "kept"), [(0.0, False), (30.0, True)])
def test_a_configuration_says_whether_calls_are_removed(tmp_path: Path, days: float, kept: bool) -> None:
    settings = Settings(log=LogSettings(path=str(tmp_path / "log.db"), retention_days=days))
    parts = ConfigurationParts(settings)
    parts.open()
    try:
        assert (parts.retention is not None) is kept
    finally:
        parts.abandon()
    assert "bardo-retention" not in [thread.name for thread in threading.enumerate()]


def test_days_are_not_below_zero() -> None:
    with pytest.raises(ConfigError, match="retention_days"):
        parse_settings("[log]\nretention_days = -1\n", "bardo.toml")
