"""How the work at batches begins and ends: with a store that says what each case needs."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bardo.batches import keeper as keeper_module
from bardo.batches.keeper import BatchKeeper
from support.patience import PATIENCE


class Store:
    """A store with one batch, or none, whose lease is lost at once."""

    def __init__(self, *batches: str) -> None:
        self.asked, self.released = threading.Event(), threading.Event()
        self._batches = [SimpleNamespace(id=one) for one in batches]

    def lease(self, *_: object) -> Any:
        self.asked.set()
        return self._batches.pop() if self._batches else None

    def next_due(self) -> None:
        """Return that nothing is due."""

    def renew(self, *_: object) -> bool:
        return False

    def release(self, *_: object) -> None:
        self.released.set()


class Steps:
    """Work that goes on until it is canceled."""

    async def advance(self, *_: object) -> float:
        await asyncio.Event().wait()
        return 0.0


def keeper_of(store: Store) -> BatchKeeper:
    return BatchKeeper(cast("Any", store), cast("Any", None), cast("Any", Steps()), cast("Any", None), clock=lambda: 0)


def test_a_keeper_that_stops_leaves_no_task() -> None:
    async def run() -> None:
        store = Store("batch")
        keeper = keeper_of(store)
        await keeper.stop()
        keeper.start()
        assert await asyncio.to_thread(store.asked.wait, PATIENCE)
        await keeper.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await keeper.stop()

    asyncio.run(run())


def test_work_at_a_batch_whose_lease_is_lost_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "LEASE_SECONDS", 0.0)

    async def run() -> None:
        store = Store("batch")
        keeper = keeper_of(store)
        keeper.start()
        given_up = await asyncio.to_thread(store.released.wait, PATIENCE)
        await keeper.stop()
        assert given_up

    asyncio.run(run())


@pytest.mark.parametrize("fails", [False, True])
def test_a_batch_that_is_taken_while_its_keeper_stops_is_given_back(fails: bool) -> None:
    class SlowStore(Store):
        def __init__(self) -> None:
            super().__init__("batch")
            self.go = threading.Event()

        def lease(self, *asked: object) -> Any:
            found = super().lease(*asked)
            assert self.go.wait(PATIENCE)
            if fails:
                raise OSError("the server was stopped")
            return found

    async def run() -> None:
        store = SlowStore()
        keeper = keeper_of(store)
        keeper.start()
        assert await asyncio.to_thread(store.asked.wait, PATIENCE)
        stopping = asyncio.create_task(keeper.stop())
        await asyncio.sleep(0)
        store.go.set()
        await stopping
        assert store.released.is_set() is not fails
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
