"""The call journal: what is in it survives the process, what is stored leaves it, and nobody takes over the calls of a living process."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.database.problems import RowsRefused, StoreUnavailable
from bardo.adapters.stores.log import AmbiguousRequest, LogReader, LogRow, LogWriter, PendingCall
from bardo.adapters.stores.log import journal as journal_module
from bardo.adapters.stores.log.journal import LOST, CallJournal, journal_folder, read_journal, recover
from bardo.adapters.stores.log.row import LogGap
from bardo.values.attempts import AttemptRecord
from support.patience import PATIENCE, read_line

pytestmark = pytest.mark.each_python


class Stored:
    """A store in memory; `down` is a database that cannot be reached."""

    name = "the fake log"

    def __init__(self, *ids: str, down: bool = False, refuses: str = "") -> None:
        self.rows = [LogRow(request_id=one, started_at=0.0) for one in ids]
        self.down = down
        self.refuses = refuses

    @property
    def ids(self) -> list[str]:
        return [row.request_id for row in self.rows]

    def append(self, rows: Sequence[LogRow]) -> None:
        if any(row.request_id == self.refuses for row in rows):
            raise RowsRefused("no such row")
        self.rows += rows

    def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
        if self.down:
            raise StoreUnavailable("it is away")
        return frozenset(self.ids) & frozenset(request_ids)


def begun(request_id: str, **fields: Any) -> PendingCall:
    return PendingCall(request_id, 5.0, "openai_chat", "p", "gemini", "asked", "m", True, **fields)


def ended(request_id: str, **fields: Any) -> LogRow:
    return LogRow(request_id=request_id, started_at=5.0, **fields)


def dead(folder: Path, *, begins: Sequence[str] = (), ends: Sequence[str] = ()) -> Path:
    """Leave the journal of a process that died."""
    journal = CallJournal(folder)
    for request_id in begins:
        journal.begin(begun(request_id))
    for request_id in ends:
        journal.end(ended(request_id, output_tokens=7))
    path = journal.path
    assert path is not None
    journal.abandon()
    return path


def test_a_call_that_began_and_never_ended_is_a_row_that_says_so(tmp_path: Path) -> None:
    store = Stored()
    path = dead(tmp_path, begins=["a"])
    assert recover(tmp_path, store) == 1
    (row,) = store.rows
    assert (row.request_id, row.provider, row.provider_dialect, row.model_asked, row.model) == (
        "a",
        "p",
        "gemini",
        "asked",
        "m",
    )
    assert (row.client_dialect, row.streamed, row.started_at, row.attempts) == ("openai_chat", True, 5.0, 1)
    assert (row.outcome, row.error_class, row.output_tokens, row.cost_usd) == ("broken", LOST, None, None)
    assert "not known" in str(row.error_message)
    assert not path.exists()


def test_a_call_that_ended_has_its_own_row(tmp_path: Path) -> None:
    store = Stored()
    dead(tmp_path, begins=["a", "b"], ends=["a"])
    recover(tmp_path, store)
    assert [(row.request_id, row.outcome, row.output_tokens) for row in store.rows] == [
        ("a", "ok", 7),
        ("b", "broken", None),
    ]


def test_a_row_of_an_earlier_version_gets_its_exact_cost(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path)
    for request_id, dollars in (("a", 0.1), ("b", 1e12), ("c", None)):
        journal.end(ended(request_id, cost_usd=dollars))
    journal.abandon()
    store = Stored()
    recover(tmp_path, store)
    assert [(row.cost_usd, row.cost_nanos) for row in store.rows] == [(0.1, 100_000_000), (1e12, None), (None, None)]


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    store = Stored()
    journal = CallJournal(tmp_path)
    journal.begin(begun("a"))
    journal.begin(PendingCall("a", 5.0, "openai_chat", "second", "gemini", "asked", "m", True, 2))
    journal.abandon()
    recover(tmp_path, store)
    assert [(row.provider, row.attempts) for row in store.rows] == [("second", 2)]


def test_what_the_database_has_is_not_stored_twice(tmp_path: Path) -> None:
    store = Stored("a")
    dead(tmp_path, begins=["a", "b"], ends=["a"])
    assert recover(tmp_path, store) == 1
    assert store.ids == ["a", "b"]
    assert recover(tmp_path, store) == 0


def test_every_field_but_the_content_comes_back(tmp_path: Path) -> None:
    whole: dict[str, Any] = {
        "seconds": 1.5, "first_byte_seconds": 0.25, "client_dialect": "gemini", "provider": "p", "provider_dialect": "cohere",
        "model_asked": "x", "model": "y", "streamed": True, "passed_through": True, "attempts": 3, "status": 429,
        "operation": "embed", "outcome": "error", "error_class": "E",
        "error_message": "m\n\"quoted\"", "finish_reason": "stop", "finish_raw": "STOP",
        "visibility": "visible", "input_tokens": 1, "output_tokens": 2, "reasoning_tokens": 0, "tokens_approx": True,
        "cached_input_tokens": 4, "cache_write_tokens": 5, "usage_raw": {"a": [1, None]}, "cost_usd": 0.5,
        "degraded": ({"what": "w"},), "receipt": {"r": 1}, "tenant": "t", "route": {"strategy": "order"}, "reasoning_intent": "low",
        "reasoning_emitted": "e", "reasoning_layer": "L1", "reasoning_verdict": "honoured", "cost_nanos": 500_000_000,
        "cost_parts": {"answer": 500_000_000}, "reported_cost_nanos": 500_000_000, "computed_cost_nanos": 1, "cache_saved_nanos": 2,
        "price_source": "provider", "key_id": "k", "subsystem": "s", "tags": ("t",),
        "session": "c", "agent": "codex", "repository": "github.com/o/n",
        "pipeline": {"profile": "fast"}, "cache": "miss", "reply_saved_nanos": 7,
        "attempt_records": (AttemptRecord(cause="retry", provider="p", model="y", why="429"),),
    }  # fmt: skip
    assert set(whole) == set(LogRow.__struct_fields__) - {
        "request_id",
        "started_at",
        "request_content",
        "reply_content",
        "sent_content",
    }
    store, journal = Stored(), CallJournal(tmp_path)
    journal.end(ended("a", **whole, request_content="secret", reply_content="secret", sent_content="secret"))
    journal.abandon()
    assert b"secret" not in next(tmp_path.iterdir()).read_bytes()
    recover(tmp_path, store)
    assert store.rows == [ended("a", **whole)]


NASTY: dict[str, dict[str, Any]] = {
    "a lone surrogate": {"error_message": "\ud800", "output_tokens": 7},
    "an object": {"usage_raw": object(), "output_tokens": 7},
    "deep": {"usage_raw": [[]], "output_tokens": 7},
    "large": {"receipt": {"x": "y" * 5_000_000}, "output_tokens": 7},
    "a line break": {"model": "a\nb", "output_tokens": 7},
}


@pytest.mark.parametrize("fields", NASTY.values(), ids=NASTY)
def test_a_row_that_is_hard_to_write_is_not_lost(tmp_path: Path, fields: dict[str, Any]) -> None:
    if fields.get("usage_raw") == [[]]:
        for _ in range(5_000):
            fields["usage_raw"] = [fields["usage_raw"]]
    store, journal = Stored(), CallJournal(tmp_path)
    journal.end(ended("a", **fields))
    journal.abandon()
    assert next(tmp_path.iterdir()).stat().st_size < 100_000
    recover(tmp_path, store)
    assert [row.output_tokens for row in store.rows] == [7]


@pytest.mark.parametrize("cut", [2, 5, 30])
def test_a_journal_that_is_cut_in_the_middle_of_a_line_gives_all_but_that(tmp_path: Path, cut: int) -> None:
    path = dead(tmp_path, begins=["a", "b", "c"])
    path.write_bytes(path.read_bytes()[:-cut])
    store = Stored()
    assert recover(tmp_path, store) == 2
    assert store.ids == ["a", "b"]


@pytest.mark.parametrize(
    "noise", [b"\x00" * 5_000, b"\xff\xfe\n", b"b \n", b"e {}\n", b"x []\n", b"\n\n", b"{" * 100_000 + b"\n", b"b []\n"]
)
def test_what_is_no_record_is_passed_over(noise: bytes) -> None:
    line = b'b ["a",5.0]\n'
    rows, _ = read_journal([*noise.splitlines(keepends=True), line])
    assert [row.request_id for row in rows] == ["a"]


def test_the_journal_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from bardo.adapters.stores.log.journal import CallJournal
from bardo.adapters.stores.log import PendingCall
journal = CallJournal(Path({str(tmp_path)!r}))
journal.begin(PendingCall("a", 5.0))
print("ready", flush=True)
sys.stdin.readline()
"""
    store = Stored()
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert read_line(process.stdout) == "ready\n"
        assert recover(tmp_path, store) == 0
        process.kill()
        process.wait(PATIENCE)
    assert recover(tmp_path, store) == 1
    assert store.ids == ["a"]


def test_a_process_with_the_number_of_a_dead_one_does_not_keep_its_journal(tmp_path: Path) -> None:
    path = dead(tmp_path, begins=["a"])
    assert path.name.startswith(f"{os.getpid()}-")
    assert recover(tmp_path, Stored()) == 1


def test_a_database_that_is_away_leaves_the_journal(tmp_path: Path) -> None:
    path = dead(tmp_path, begins=["a"])
    with pytest.raises(StoreUnavailable):
        recover(tmp_path, Stored(down=True))
    assert path.exists()
    assert recover(tmp_path, Stored()) == 1


def test_a_row_that_the_database_refuses_keeps_no_other_back(tmp_path: Path) -> None:
    dead(tmp_path, begins=["a", "bad", "c"])
    store = Stored(refuses="bad")
    assert recover(tmp_path, store) == 2
    assert store.ids == ["a", "c"]


def test_what_is_stored_leaves_the_journal_and_its_size_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MOST_BYTES", 20_000)
    journal = CallJournal(tmp_path)
    journal.begin(begun("long"))
    largest = 0
    for number in range(3_000):
        journal.begin(begun(f"r{number}"))
        journal.end(ended(f"r{number}"))
        if number % 50 == 49:
            journal.settle([f"r{one}" for one in range(number - 49, number + 1)])
        largest = max(largest, sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert largest < 60_000
    assert len([*tmp_path.iterdir()]) == 1
    journal.abandon()
    store = Stored()
    recover(tmp_path, store)
    assert store.ids[0] == "long"


def test_a_journal_whose_calls_are_all_stored_is_removed_at_the_end(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path)
    journal.begin(begun("a"))
    journal.settle(["a"])
    journal.close()
    assert [*tmp_path.iterdir()] == []


def test_without_a_call_there_is_no_file(tmp_path: Path) -> None:
    CallJournal(tmp_path / "calls").close()
    assert not (tmp_path / "calls").exists()


class FullDisk:
    """Writes as much as `room` allows."""

    def __init__(self) -> None:
        self.room = 10**9

    def __call__(self, file: int, data: bytes) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        written = os.write(file, data[: self.room])
        self.room -= written
        return written


def test_a_full_disk_fails_no_call_and_spoils_no_other_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = FullDisk()
    journal = CallJournal(tmp_path, write=disk)
    journal.begin(begun("a"))
    disk.room = 30
    journal.begin(begun("b"))
    journal.begin(begun("c"))
    disk.room = 10**9
    journal.begin(begun("d"))
    journal.abandon()
    store = Stored()
    recover(tmp_path, store)
    assert store.ids == ["a", "d"]
    own = [record for record in caplog.records if record.name == "bardo.log" and "journal in" in record.message]
    assert [record.levelno for record in own] == [logging.ERROR, logging.WARNING]


def test_a_folder_that_cannot_be_made_fails_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("x")
    journal = CallJournal(tmp_path / "file" / "calls")
    for number in range(50):
        journal.begin(begun(f"r{number}"))
    journal.close()
    assert len([record for record in caplog.records if record.name == "bardo.log"]) == 1


def test_one_call_is_one_small_write_at_each_end(tmp_path: Path) -> None:
    writes: list[bytes] = []

    def write(file: int, data: bytes) -> int:
        writes.append(data)
        return os.write(file, data)

    journal = CallJournal(tmp_path, write=write)
    journal.begin(
        PendingCall(
            "req_" + "0" * 24,
            1795350000.123456,
            "anthropic_messages",
            "openrouter",
            "openai_chat",
            "claude-x",
            "claude-x",
            True,
        )
    )
    journal.end(ended("req_" + "0" * 24, output_tokens=5))
    assert len(writes) == 2
    assert len(writes[0]) < 200
    assert len(writes[1]) < 1_500


def test_the_folder_is_beside_the_log_and_private(tmp_path: Path) -> None:
    folder = journal_folder(tmp_path / "log.db")
    assert folder == tmp_path / "log.db.calls"
    path = dead(folder, begins=["a"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_journal_that_is_taken_for_a_dead_one_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looked = journal_module.take_lock, list[int]()

    def lock_late(file: int) -> bool:
        if not looked:
            looked.append(file)
            # Another worker of the log looks for dead ones just now.
            recover(tmp_path, Stored())
        return real(file)

    monkeypatch.setattr(journal_module, "take_lock", lock_late)
    path = dead(tmp_path, begins=["a"])
    assert [*tmp_path.iterdir()] == [path]
    assert recover(tmp_path, Stored()) == 1


def test_logs_of_different_databases_have_journals_of_their_own() -> None:
    one, other = (
        journal_folder("postgresql+psycopg://a:secret@h/one"),
        journal_folder("postgresql+psycopg://a:secret@h/two"),
    )
    assert one != other
    assert "secret" not in str(one)


def logged(path: Path) -> list[LogRow]:
    with LogReader(path) as reader:
        return reader.recent(1_000)[::-1]


def test_the_next_start_of_a_log_stores_what_a_dead_process_left(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    LogWriter(path).close()
    dead(journal_folder(path), begins=["a", "b"], ends=["b"])
    LogWriter(path).close()
    assert [(row.request_id, row.outcome) for row in logged(path)] == [("a", "broken"), ("b", "ok")]
    assert [*journal_folder(path).iterdir()] == []


def test_a_log_that_goes_on_stores_what_another_worker_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bardo.adapters.stores.log import writer as writer_module

    monkeypatch.setattr(writer_module, "SECONDS_BETWEEN_RECOVERIES", 0.0)
    path = tmp_path / "log.db"
    with LogWriter(path, flush_seconds=0.01) as log:
        log.write(ended("mine"))
        assert log.flush(PATIENCE)
        dead(journal_folder(path), begins=["a"])
        log.write(ended("mine too"))
    assert {row.request_id for row in logged(path)} == {"mine", "mine too", "a"}


def test_journals_that_could_not_be_read_at_the_start_are_read_when_the_store_is_back(tmp_path: Path) -> None:
    class AwayAtFirst(Stored):
        looked = False

        def stored(self, request_ids: Sequence[str]) -> frozenset[str]:
            if not self.looked:
                self.looked = True
                raise StoreUnavailable("it is away")
            return super().stored(request_ids)

        def note_gap(self, gap: LogGap) -> None: ...

        def close(self) -> None: ...

    dead(tmp_path, begins=["a"])
    store = AwayAtFirst()
    with LogWriter("", store=store, journal=tmp_path, flush_seconds=0.01) as log:
        assert log.wait_recovered(PATIENCE)
        log.write(ended("mine"))
    assert {row.request_id for row in store.rows} == {"mine", "a"}


def test_a_log_that_could_not_be_written_to_the_end_is_kept_in_the_journal(tmp_path: Path) -> None:
    class Down(Stored):
        def append(self, rows: Sequence[LogRow]) -> None:
            raise StoreUnavailable("it is away")

        def note_gap(self, gap: object) -> None:
            raise StoreUnavailable("it is away")

        def close(self) -> None:
            pass

    with LogWriter("unused", store=Down(), journal=tmp_path, flush_seconds=0.01) as log:
        assert log.journal is not None
        log.journal.begin(begun("a"))
        log.write(ended("a", output_tokens=7))
    assert log.dropped == 0
    store = Stored()
    assert recover(tmp_path, store) == 1
    assert [row.output_tokens for row in store.rows] == [7]


def test_a_reader_counts_what_waits_in_journals_and_moves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with LogWriter(log) as writer:
        writer.write(ended("stored", provider="p", key_id="k", outcome="ok"))
    journals = journal_folder(log)
    dead(journals, begins=["killed", "done"], ends=["done", "stored"])
    living = CallJournal(journals)
    living.begin(begun("open"))
    living.end(ended("answered", provider="q", outcome="ok"))
    before = {path.name: path.read_bytes() for path in journals.iterdir()}
    with LogReader(log, journals=True) as reader:
        assert {row.request_id for row in reader.recent(10)} == {"stored", "killed", "done", "answered"}
        assert len(reader.recent(2)) == 2
        assert [row.request_id for row in reader.recent(10, provider="q")] == ["answered"]
        assert [row.request_id for row in reader.recent(10, since=6.0)] == []
        assert {row.request_id for row in reader.recent(10, outcome="broken")} == {"killed"}
        assert reader.waiting() == 3
        assert reader.last_row_number() == 1
        killed = reader.get("kil")
        assert killed is not None
        assert killed.error_class == LOST
        with pytest.raises(AmbiguousRequest):
            reader.get("")
        assert sum(group.sums.calls for group in reader.costs()) == 4
        assert sum(group.sums.calls for group in reader.costs(since=1.0, until=5.0)) == 0
        assert sum(group.sums.calls for group in reader.costs(since=1.0, until=6.0)) == 4
        assert sum(group.sums.calls for group in reader.costs(key="k")) == 1
        assert [group.of["provider"] for group in reader.costs(["provider"])] == ["", "p", "q"]
    with LogReader(log) as reader:
        assert len(reader.recent(10)) == 1
    assert {path.name: path.read_bytes() for path in journals.iterdir()} == before
    living.close()
