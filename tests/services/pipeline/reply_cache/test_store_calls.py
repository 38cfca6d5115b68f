"""A store that is slow or away costs a call a bounded time, and no time at all for a while after that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from bardo.adapters.stores.database.problems import DatabaseUnusable
from bardo.adapters.stores.database.store_calls import StoreCalls
from bardo.context.cache.entries import ReplyStore
from bardo.services.pipeline.reply_cache.opening import MemoryReplies
from support.patience import PATIENCE


class Broken(MemoryReplies):
    """A store whose calls fail as long as it is broken."""

    problems: tuple[type[Exception], ...] = (ConnectionError,)
    broken = True
    asked = 0

    def totals(self, tenant: str | None = None) -> tuple[int, int]:
        self.asked += 1
        if self.broken:
            raise ConnectionError("the server says: secret")
        return super().totals(tenant)


class Watch:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def calls_of(opening: Callable[[], ReplyStore], watch: Watch) -> Iterator[StoreCalls[ReplyStore]]:
    calls = StoreCalls(opening, in_memory=False, watch=watch)
    try:
        yield calls
    finally:
        calls.close()


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, PATIENCE)

    asyncio.run(bounded())


def totals(store: ReplyStore) -> tuple[int, int]:
    return store.totals()


def test_a_store_that_fails_rests_and_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    store, watch = Broken(), Watch()

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        for now, asked in ((0.0, 1), (0.9, 1), (1.0, 2), (2.9, 2), (3.0, 3), (6.9, 3), (7.0, 4)):
            watch.now = now
            assert await calls.ask(totals, PATIENCE) is None
            assert store.asked == asked, f"at {now} s"
        watch.now, store.broken = 100.0, False
        assert await calls.ask(totals, PATIENCE) == (0, 0)

    with calls_of(lambda: store, watch) as calls:
        run(check(calls))
    said = [record.message for record in caplog.records]
    assert len(said) == 2, "once when it begins, and once when it is over"
    assert "secret" not in str(said)


@pytest.mark.parametrize("turns", range(6))
def test_a_call_that_is_cancelled_as_the_store_answers_ends(turns: int) -> None:
    answered = threading.Event()

    def ask(store: ReplyStore) -> bool:
        answered.set()
        return True

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        asking = asyncio.create_task(calls.ask(ask, PATIENCE))
        while not answered.is_set():  # noqa: ASYNC110 - set in a thread, and each turn of the loop counts
            await asyncio.sleep(0)
        # The answer takes some turns of the loop to the call: in one of them it is there, and the call is not back yet.
        for _ in range(turns):
            await asyncio.sleep(0)
        was_over = asking.done()
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled() != was_over

    with calls_of(MemoryReplies, Watch()) as calls:
        run(check(calls))


def test_a_store_that_takes_too_long_is_passed_over() -> None:
    goes_on = threading.Event()

    def slow(store: ReplyStore) -> tuple[int, int]:
        goes_on.wait(PATIENCE)
        return store.totals()

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        assert await calls.ask(totals, PATIENCE) == (0, 0)
        assert await calls.ask(slow, 0.001) is None
        assert await calls.ask(totals, PATIENCE) is None, "it rests"
        goes_on.set()

    with calls_of(MemoryReplies, Watch()) as calls:
        run(check(calls))


def test_a_store_that_cannot_be_opened_is_tried_again() -> None:
    tries: list[int] = []
    watch = Watch()

    def opening() -> ReplyStore:
        tries.append(1)
        if len(tries) == 1:
            raise DatabaseUnusable("no server")
        return MemoryReplies()

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        assert await calls.ask(totals, PATIENCE) is None
        watch.now = 2
        assert await calls.ask(totals, PATIENCE) == (0, 0)

    with calls_of(opening, watch) as calls:
        run(check(calls))


def test_a_mistake_in_bardo_is_no_problem_of_the_store() -> None:
    def wrong(store: ReplyStore) -> None:
        raise ZeroDivisionError

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        with pytest.raises(ZeroDivisionError):
            await calls.ask(wrong, PATIENCE)
        assert await calls.ask(totals, PATIENCE) == (0, 0)

    with calls_of(MemoryReplies, Watch()) as calls:
        run(check(calls))


def test_a_store_that_is_being_opened_is_not_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    goes_on, watch = threading.Event(), Watch()

    def opening() -> ReplyStore:
        goes_on.wait(PATIENCE)
        return MemoryReplies()

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        assert await calls.ask(totals, 0.001) is None
        assert await calls.ask(totals, 0.001) is None
        goes_on.set()
        assert await calls.ask(totals, PATIENCE) == (0, 0)
        assert not caplog.records

    with calls_of(opening, watch) as calls:
        run(check(calls))


def test_a_store_that_does_not_open_is_left_alone() -> None:
    goes_on, watch = threading.Event(), Watch()

    def opening() -> ReplyStore:
        goes_on.wait(PATIENCE)
        return MemoryReplies()

    async def check(calls: StoreCalls[ReplyStore]) -> None:
        watch.now = 6
        assert await calls.ask(totals, 0.001) is None
        goes_on.set()
        assert await calls.ask(totals, PATIENCE) is None

    with calls_of(opening, watch) as calls:
        run(check(calls))
