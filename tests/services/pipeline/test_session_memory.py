"""What layers keep for sessions is bounded in number, size and time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from bardo.adapters.stores.state import SqliteStore
from bardo.adapters.stores.state.calls import StateCalls
from bardo.context.effects import LoadForSession, StoreForSession
from bardo.services.pipeline.session_memory import SessionBounds, SessionMemory, SharedSessions


class Kept:
    """A memory with a clock that is moved by hand."""

    def __init__(self, **bounds: float) -> None:
        self.now = 0.0
        self.memory = SessionMemory(SessionBounds(**bounds), watch=lambda: self.now)  # type: ignore[arg-type]

    def keep(self, session: str, value: bytes, layer: str = "dedup") -> None:
        asyncio.run(self.memory.keep(StoreForSession(layer, session, value)))

    def recall(self, session: str, layer: str = "dedup") -> bytes | None:
        return asyncio.run(self.memory.recall(LoadForSession(layer, session)))


def test_a_value_is_that_of_its_layer_and_session() -> None:
    kept = Kept()
    kept.keep("one", b"1")
    kept.keep("two", b"2")
    kept.keep("one", b"3", layer="compress")
    kept.keep("one", b"4")
    assert (kept.recall("one"), kept.recall("two"), kept.recall("one", "compress")) == (b"4", b"2", b"3")
    assert kept.recall("three") is None


def test_the_oldest_goes_where_there_are_too_many_or_too_much() -> None:
    few = Kept(values=2)
    for session in ("one", "two", "one", "three"):
        few.keep(session, b"x")
    assert (few.recall("one"), few.recall("two"), few.recall("three")) == (b"x", None, b"x")
    small = Kept(bytes=10)
    for session in ("one", "two", "three"):
        small.keep(session, b"12345")
    assert (small.recall("one"), small.recall("two"), small.recall("three")) == (None, b"12345", b"12345")


def test_a_value_that_is_too_large_is_not_kept_and_neither_is_the_one_before() -> None:
    kept = Kept(value_bytes=3)
    kept.keep("one", b"123")
    kept.keep("one", b"1234")
    assert kept.recall("one") is None


def test_a_session_that_is_over_is_forgotten() -> None:
    kept = Kept(seconds=100)
    kept.keep("one", b"1")
    kept.now = 100.0
    assert kept.recall("one") == b"1"
    kept.now = 100.5
    assert kept.recall("one") is None


class Worker:
    """A memory of one process beside others, over a file that they share."""

    def __init__(self, path: Path) -> None:
        self.calls = StateCalls(SqliteStore(path), name="sessions", area="replay")
        self.memory = SessionMemory(
            SessionBounds(value_bytes=10), watch=lambda: 0.0, shared=SharedSessions(self.calls, lambda: 0.0)
        )


def test_the_latest_value_of_any_process_is_found(tmp_path: Path) -> None:
    async def run() -> None:
        one, two = Worker(tmp_path / "state.db"), Worker(tmp_path / "state.db")
        recall = LoadForSession("tools", "session")
        assert await one.memory.recall(recall) is None
        await one.memory.keep(StoreForSession("tools", "session", b"1"))
        assert await two.memory.recall(recall) == b"1"
        await two.memory.keep(StoreForSession("tools", "session", b"2"))
        assert await one.memory.recall(recall) == b"2"
        await two.memory.keep(StoreForSession("tools", "session", b"1"))
        assert await one.memory.recall(recall) == b"1"
        assert await one.memory.recall(LoadForSession("dedup", "session")) is None
        await one.memory.keep(StoreForSession("tools", "session", b"x" * 11))
        assert (await one.memory.recall(recall), await two.memory.recall(recall)) == (None, b"1")
        one.calls.close()
        two.calls.close()

    asyncio.run(run())


def test_a_store_that_is_away_leaves_what_this_process_knows(tmp_path: Path) -> None:
    async def run() -> None:
        one = Worker(tmp_path / "state.db")
        one.calls.store.close()
        await one.memory.keep(StoreForSession("tools", "session", b"1"))
        assert await one.memory.recall(LoadForSession("tools", "session")) == b"1"
        one.calls.close()

    asyncio.run(run())


def test_values_that_are_kept_at_once_for_one_session_count_once() -> None:
    class Shared:
        async def put(self, layer: str, session: str, value: bytes) -> None:
            await asyncio.sleep(0)

    async def run() -> None:
        shared = cast("SharedSessions", Shared())
        memory = SessionMemory(SessionBounds(bytes=25), watch=lambda: 0.0, shared=shared)
        for _ in range(2):
            await asyncio.gather(*(memory.keep(StoreForSession("layer", "one", b"0123456789")) for _ in range(2)))
        await memory.keep(StoreForSession("layer", "two", b"0123456789"))
        assert {session for _, session in memory._held} == {"one", "two"}

    asyncio.run(run())
