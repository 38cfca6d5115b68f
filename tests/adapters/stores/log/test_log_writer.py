"""What the writer promises about rows, seen against a store that fails on demand."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from bardo.adapters.stores.database.problems import RowsRefused, StoreUnavailable
from bardo.adapters.stores.log import LogGap, LogRow, LogWriter
from bardo.adapters.stores.log import batch_writer as writer_module

pytestmark = pytest.mark.each_python

WAIT = 20.0  # Far more than anything here takes; only a failing test gets there.


class FakeStore:
    """A store in memory. `held` keeps it busy; `failing` is how many appends will fail, `None` for all."""

    name = "the fake log"

    def __init__(self, *, failing: int | None = 0) -> None:
        self.batches: list[list[str]] = []
        self.gaps: list[LogGap] = []
        self.failing = failing
        self.closed = False
        self.held = threading.Event()
        self.held.set()
        self.busy = threading.Event()

    @property
    def ids(self) -> list[str]:
        return [request_id for batch in self.batches for request_id in batch]

    def append(self, rows: Sequence[LogRow]) -> None:
        self.busy.set()
        assert self.held.wait(WAIT)
        if self.failing is None or self.failing > 0:
            self.failing = None if self.failing is None else self.failing - 1
            raise StoreUnavailable("the disk is full")
        if any(row.request_id.startswith("bad") for row in rows):
            raise RowsRefused("no such row")
        self.batches.append([row.request_id for row in rows])

    def note_gap(self, gap: LogGap) -> None:
        if self.failing is None:
            raise StoreUnavailable("the disk is full")
        self.gaps.append(gap)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "FIRST_REST_SECONDS", 0.01)


def row(request_id: str) -> LogRow:
    return LogRow(request_id=request_id, started_at=1.0)


def ids(count: int) -> list[str]:
    return [f"r{number}" for number in range(count)]


def opened(store: FakeStore, *, batch: int = 500, capacity: int = 1000, flush_seconds: float = 60.0) -> LogWriter:
    return LogWriter("unused", store=store, batch=batch, capacity=capacity, flush_seconds=flush_seconds)


def test_closing_stores_everything_in_order() -> None:
    store = FakeStore()
    with opened(store, batch=7) as writer:
        for request_id in ids(100):
            writer.write(row(request_id))
    assert store.ids == ids(100)
    assert max(map(len, store.batches)) <= 7
    assert store.closed
    assert writer.dropped == 0


def test_a_full_batch_is_stored_without_waiting_for_the_time() -> None:
    store = FakeStore()
    settled = threading.Event()
    append = store.append

    def append_and_tell(rows: Sequence[LogRow]) -> None:
        append(rows)
        settled.set()

    store.append = append_and_tell  # type: ignore[method-assign]
    with opened(store, batch=3, flush_seconds=3600) as writer:
        for request_id in ids(3):
            writer.write(row(request_id))
        assert settled.wait(WAIT)
        assert store.batches == [ids(3)]


def test_a_lone_row_is_stored_after_the_flush_time() -> None:
    store = FakeStore()
    with opened(store, flush_seconds=0.01) as writer:
        writer.write(row("r0"))
        assert store.busy.wait(WAIT)


def test_flush_hurries_what_waits_and_says_when_it_could_not() -> None:
    store = FakeStore()
    with opened(store) as writer:
        writer.write(row("r0"))
        assert writer.flush(WAIT)
        assert (store.ids, writer.waiting) == (["r0"], 0)
        store.held.clear()
        writer.write(row("r1"))
        assert not writer.flush(0.01)
        store.held.set()
        assert writer.flush(WAIT)


def test_what_does_not_fit_is_counted_reported_and_noted(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore()
    store.held.clear()
    with opened(store, capacity=5, batch=1) as writer:
        for request_id in ids(12):
            writer.write(row(request_id))
        assert writer.dropped == 7
        store.held.set()
    assert store.ids == ids(5)
    assert [(gap.rows, gap.why) for gap in store.gaps] == [(7, "the log could not keep up")]
    assert caplog.text.count("7 rows are missing") == 1


def test_a_failing_disk_is_tried_again_reported_once_and_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore(failing=5)
    with opened(store) as writer:
        for request_id in ids(20):
            writer.write(row(request_id))
        assert writer.flush(WAIT)
        assert writer.dropped == 0
    assert store.ids == ids(20)
    assert caplog.text.count("cannot be written (the disk is full)") == 1
    assert caplog.text.count("is written again") == 1


def test_closing_over_a_dead_disk_ends_and_says_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore(failing=None)
    writer = opened(store)
    for request_id in ids(20):
        writer.write(row(request_id))
    writer.close()
    assert writer.dropped == 20
    assert store.closed
    assert "20 rows are lost" in caplog.text


def test_a_refused_row_is_dropped_alone() -> None:
    store = FakeStore()
    with opened(store) as writer:
        for request_id in ["r0", "bad", "r1"]:
            writer.write(row(request_id))
        assert writer.flush(WAIT)
        assert writer.dropped == 1
    assert store.ids == ["r0", "r1"]
    assert [gap.rows for gap in store.gaps] == [1]


def test_a_disk_that_fails_among_refused_rows_stores_each_good_row_once() -> None:
    store = FakeStore()
    store.held.clear()
    with opened(store) as writer:
        for request_id in ["r0", "bad", "r1"]:
            writer.write(row(request_id))
        assert not writer.flush(0.01)
        refuse = store.append

        def fail_once_on_the_last(rows: Sequence[LogRow]) -> None:
            if [one.request_id for one in rows] == ["r1"] and not store.gaps:
                store.append = refuse  # type: ignore[method-assign]
                raise StoreUnavailable("the disk is full")
            refuse(rows)

        store.append = fail_once_on_the_last  # type: ignore[method-assign]
        store.held.set()
        assert writer.flush(WAIT)
    assert store.ids == ["r0", "r1"]


def test_a_row_after_closing_is_counted_and_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    writer = opened(FakeStore())
    writer.close()
    writer.write(row("late"))
    writer.write(row("later"))
    assert writer.dropped == 2
    assert caplog.text.count("was closed, and is dropped") == 1


def test_closing_twice_is_closing_once() -> None:
    store = FakeStore()
    writer = opened(store)
    writer.write(row("r0"))
    writer.close()
    writer.close()
    assert store.ids == ["r0"]


def test_many_threads_may_write() -> None:
    store = FakeStore()
    with opened(store, batch=11, capacity=10_000) as writer:

        def write_all(name: str) -> None:
            for number in range(300):
                writer.write(row(f"{name}{number}"))

        threads = [threading.Thread(target=write_all, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name in "abcd":
        assert [one for one in store.ids if one.startswith(name)] == [f"{name}{number}" for number in range(300)]


def test_a_locked_log_is_written_when_the_lock_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import sqlite3

    from bardo.adapters.stores.log import LogReader, sqlite_store

    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.05)
    reported = threading.Event()
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: reported.set())
    logging.getLogger("bardo.log").addHandler(handler)
    path = tmp_path / "log.db"
    with LogWriter(path, flush_seconds=0.01) as writer:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writer.write(row("r0"))
        assert reported.wait(WAIT)
        assert writer.waiting == 1
        other.execute("ROLLBACK")
        other.close()
        assert writer.flush(WAIT)
    logging.getLogger("bardo.log").removeHandler(handler)
    assert "database is locked" in caplog.text
    with LogReader(path) as reader:
        assert reader.get("r0") is not None
