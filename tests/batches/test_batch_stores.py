"""What holds for batches and their files in every database that keeps them: SQLite always, PostgreSQL where one can be started."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Engine

from bardo.adapters.stores.database.revisions import migrate
from bardo.adapters.stores.migrations import BATCHES_BRANCH
from bardo.batches.batch_store import BatchStore
from bardo.batches.file_store import PIECE_BYTES, FileStore
from bardo.batches.records import BatchRecord, FileRecord, JobRecord
from bardo.batches.schema import metadata
from support.databases import open_database

pytestmark = pytest.mark.each_python

NOW = 1_795_435_200.0


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    place = str(tmp_path / "state.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    opened = open_database(place)
    migrate(opened, BATCHES_BRANCH, metadata=metadata)
    yield opened
    opened.dispose()


def batch(name: str, *, tenant: str = "", created_at: float = NOW) -> BatchRecord:
    return BatchRecord(
        id=name, tenant=tenant, dialect="openai", endpoint="/v1/x", created_at=created_at, expires_at=NOW + 86_400
    )


def file(name: str, *, tenant: str = "", expires_at: float | None = None) -> FileRecord:
    return FileRecord(
        id=name,
        tenant=tenant,
        state="uploading",
        purpose="batch",
        name="calls.jsonl",
        size=0,
        created_at=NOW,
        expires_at=expires_at,
    )


def test_a_batch_reads_back_as_it_was_stored_and_only_to_its_tenant(engine: Engine) -> None:
    store, made = BatchStore(engine), msgspec.structs.replace(batch("b", tenant="a"), metadata={"é": "\U0001f9e0"})
    store.add(made)
    assert store.find("a", "b", "openai") == made
    assert store.find("other", "b", "openai") is None
    assert store.find("a", "b", "anthropic") is None
    assert store.get("b") == made


def test_what_is_reserved_is_known_for_a_tenant_and_for_each_of_its_batches(engine: Engine) -> None:
    store = BatchStore(engine)
    for place, (name, tenant) in enumerate((("b", "a"), ("c", "a"), ("d", "other"))):
        store.add(batch(name, tenant=tenant))
        job = JobRecord(
            id=f"j{name}", batch_id=name, provider="p", model="m", dialect="openai_chat", path="/v1/x", form="openai",
            reserved_nanos=10**place,
        )  # fmt: skip
        store.put_job(job)
    assert (store.reserved("a"), store.reserved("a", "b"), store.reserved("a", "c")) == (11, 1, 10)
    assert store.reserved("a", "d") == 0


def test_pages_are_in_order_of_time_also_for_batches_of_one_moment(engine: Engine) -> None:
    store = BatchStore(engine)
    made = [batch(f"b{number}", created_at=NOW + number // 2) for number in range(6)]
    for one in made:
        store.add(one)
    newest_first = [one.id for one in store.listed("", "openai", limit=10)]
    assert newest_first == ["b5", "b4", "b3", "b2", "b1", "b0"]
    assert [one.id for one in store.listed("", "openai", limit=1, after=made[4])] == ["b3", "b2"]
    assert [one.id for one in store.listed("", "openai", limit=1, before=made[2])] == ["b3", "b4"]


def test_of_processes_that_look_at_once_each_batch_is_leased_to_one(engine: Engine) -> None:
    store = BatchStore(engine)
    for number in range(6):
        store.add(batch(f"b{number}"))
    with ThreadPoolExecutor(8) as workers:
        taken = list(workers.map(lambda number: store.lease(f"worker-{number}", NOW, 15.0), range(12)))
    leased = [one.id for one in taken if one is not None]
    assert len(leased) == len(set(leased)) <= 6
    while (one := store.lease("last", NOW, 15.0)) is not None:
        leased.append(one.id)
    assert sorted(leased) == [f"b{number}" for number in range(6)]
    assert store.lease("later", NOW + 16, 15.0) is not None, "a lease of a process that is gone ends"


def test_changes_of_many_processes_are_all_kept(engine: Engine) -> None:
    store = BatchStore(engine)
    store.add(batch("b"))

    def add_one(_: int) -> None:
        store.change("b", lambda before: msgspec.structs.replace(before, total=before.total + 1))

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(add_one, range(40)))
    found = store.get("b")
    assert found is not None
    assert found.total == 40


def test_a_batch_that_is_removed_is_gone(engine: Engine) -> None:
    store = BatchStore(engine)
    store.add(batch("b"))
    assert store.open_batches("") == 1
    store.remove("b")
    assert store.get("b") is None
    assert store.open_batches("") == 0
    assert store.next_due() is None


def test_a_file_is_seen_when_it_is_whole_and_by_its_tenant(engine: Engine) -> None:
    files, made, data = FileStore(engine), file("f", tenant="a"), bytes(range(256)) * (PIECE_BYTES // 128)
    files.begin(made)
    for place in range(2):
        files.add("f", place, data[place * PIECE_BYTES :][:PIECE_BYTES])
    assert files.find("a", "f", NOW) is None
    files.finish(msgspec.structs.replace(made, state="ready", size=len(data)))
    assert files.find("a", "f", NOW) is not None
    assert files.find("b", "f", NOW) is None
    assert b"".join(files.pieces("f")) == data
    assert files.size_of("a") == len(data)
    assert not files.remove("b", "f")
    assert files.remove("a", "f")
    assert files.size_of("a") == 0


def test_a_file_ends_where_those_of_its_tenant_have_room_for_it(engine: Engine) -> None:
    files = FileStore(engine)
    for name, tenant in (("first", "a"), ("second", "a"), ("other", "b")):
        files.begin(file(name, tenant=tenant))
    ready = {"state": "ready", "size": 60}
    assert files.finish(msgspec.structs.replace(file("other", tenant="b"), **ready), most=100)
    assert files.finish(msgspec.structs.replace(file("first", tenant="a"), **ready), most=100)
    assert files.finish(msgspec.structs.replace(file("first", tenant="a"), **ready), most=100), "the same file again"
    assert not files.finish(msgspec.structs.replace(file("second", tenant="a"), **ready), most=119)
    assert files.find("a", "second", NOW) is None
    assert files.finish(msgspec.structs.replace(file("second", tenant="a"), **ready), most=120)


def test_a_piece_that_comes_behind_the_end_of_its_file_is_not_kept(engine: Engine) -> None:
    """Nobody would ever remove it: who left an upload does not wait for the piece that is being stored."""
    files = FileStore(engine)
    files.begin(file("f"))
    files.remove("", "f")
    files.add("f", 0, b"data")
    assert files.piece("f", 0) is None


def test_files_past_their_time_are_removed(engine: Engine) -> None:
    files = FileStore(engine)
    for name, expires_at in (("old", NOW + 1), ("new", NOW + 100), ("kept", None)):
        made = file(name, expires_at=expires_at)
        files.begin(made)
        files.add(name, 0, b"data")
        files.finish(msgspec.structs.replace(made, state="ready"))
    files.expire(NOW + 50)
    assert [files.find("", name, NOW) is not None for name in ("old", "new", "kept")] == [False, True, True]
    assert list(files.pieces("old")) == []
