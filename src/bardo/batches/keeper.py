"""Run the batches of a gateway to their ends, a step at a time, over as many restarts as it takes.

Every process of a gateway runs one keeper. A keeper takes a batch by a lease in its row, does the steps that are due, stores their results,
and gives the lease back with the time at which the next thing is due. Nothing of a batch is kept in memory only.

`open_batches` opens their database, and puts the parts that work at them together. It loads SQLAlchemy: import it where batches are
opened, and nowhere above.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bardo.adapters.chance import CHANCE
from bardo.adapters.config.gateway import BatchSettings
from bardo.adapters.stores.database.engines import address_of
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.adapters.stores.database.revisions import open_current
from bardo.adapters.stores.migrations import BATCHES_BRANCH
from bardo.batches.batch_steps import BatchSteps, RowSink
from bardo.batches.batch_store import BatchStore
from bardo.batches.collection import Collector
from bardo.batches.file_store import FileStore
from bardo.batches.intake import Intake
from bardo.batches.job_calls import JobCalls
from bardo.batches.outputs import OutputWriter
from bardo.batches.planning import ItemPlanner
from bardo.batches.records import BatchRecord
from bardo.batches.results import ResultReader
from bardo.batches.schema import metadata
from bardo.batches.single_calls import SingleCalls
from bardo.batches.submission import Submitter

if TYPE_CHECKING:
    from bardo.adapters.config.gateway import BatchSettings
    from bardo.batches.item_requests import ItemReader
    from bardo.call.services import Services


_log = logging.getLogger("bardo.batches")
LEASE_SECONDS = 15.0
_MOST_AT_ONCE = 4
_LONGEST_REST_SECONDS = 30.0
_SECONDS_BETWEEN_CLEANINGS = 3600.0
_AFTER_MISTAKE_SECONDS = 60.0


class BatchKeeper:
    """Runs batches until it is stopped. `clock` gives Unix time."""

    def __init__(
        self,
        store: BatchStore,
        files: FileStore,
        steps: BatchSteps,
        settings: BatchSettings,
        *,
        clock: Callable[[], float],
        chance: Callable[[], float] = CHANCE.random,
    ) -> None:
        self._store = store
        self._files = files
        self._steps = steps
        self._settings = settings
        self._clock = clock
        self._chance = chance
        self._owner = uuid.uuid4().hex
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._cleaned_at = 0.0
        self._failed = False

    def start(self) -> None:
        """Begin to work, in the running event loop."""
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        """Look for due work now: a batch was made or canceled."""
        self._wake.set()

    async def stop(self) -> None:
        """End work: steps under way are given up, and taken up again by the next keeper."""
        tasks = [*self._working, *([self._running] if self._running is not None else [])]
        self._running = None
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._clean()
                taken = await self._take_due()
            except DatabaseProblem as problem:
                taken = False
                if not self._failed:
                    _log.error("the batches cannot be read now, and are tried again: %s", problem)
                self._failed = True
            except Exception:  # noqa: BLE001 - one mistake must not end the work for good
                _log.exception("a mistake in bardo, while batches were looked for")
                taken = False
            else:
                self._failed = False
            if not taken:
                await self._rest()

    async def _take_due(self) -> bool:
        """Begin to work at one batch that is due, and return whether there was one."""
        if len(self._working) >= _MOST_AT_ONCE:
            return False
        asked = asyncio.to_thread(self._store.lease, self._owner, self._clock(), LEASE_SECONDS)
        taking = asyncio.get_running_loop().create_task(asked)
        try:
            batch = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # The next keeper need not wait for the lease to end.
            with contextlib.suppress(Exception):
                if (taken := await taking) is not None:
                    await asyncio.to_thread(self._store.release, taken.id, self._owner, self._clock())
            raise
        if batch is None:
            return False
        task = asyncio.get_running_loop().create_task(self._work(batch))
        self._working.add(task)
        task.add_done_callback(self._worked)
        return True

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._wake.set()

    async def _rest(self) -> None:
        """Wait until something is due, or somebody wakes this up."""
        due = None
        with contextlib.suppress(Exception):
            due = await asyncio.to_thread(self._store.next_due)
        busy = len(self._working) >= _MOST_AT_ONCE
        seconds = (
            _LONGEST_REST_SECONDS if due is None or busy else max(0.01, min(_LONGEST_REST_SECONDS, due - self._clock()))
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _work(self, batch: BatchRecord) -> None:
        due = self._clock()
        try:
            async with _Lease(self._store, batch.id, self._owner, self._clock):
                due = await self._steps.advance(batch, self._chance())
        except Exception:  # noqa: BLE001 - one batch fails, the others go on
            _log.exception("a mistake in bardo, in batch %s", batch.id)
            due = self._clock() + _AFTER_MISTAKE_SECONDS
        finally:
            # Also where this was canceled: the next keeper need not wait for the lease to end.
            await asyncio.shield(asyncio.to_thread(self._store.release, batch.id, self._owner, due))

    async def _clean(self) -> None:
        """Remove expired files and old batches, once in a while."""
        now = self._clock()
        if now - self._cleaned_at < _SECONDS_BETWEEN_CLEANINGS:
            return
        self._cleaned_at = now
        await asyncio.to_thread(self._files.expire, now)
        for batch_id in await asyncio.to_thread(self._store.ended_before, now - self._settings.retention_seconds):
            await asyncio.to_thread(self._store.remove, batch_id)


class _Lease:
    """The hold of this process on one batch, renewed for as long as the block runs; a block that has lost it is canceled."""

    def __init__(self, store: BatchStore, batch_id: str, owner: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._batch_id = batch_id
        self._owner = owner
        self._clock = clock
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._renew(asyncio.current_task()))

    async def __aexit__(self, *_: object) -> None:
        assert self._renewing is not None
        self._renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._renewing

    async def _renew(self, worker: asyncio.Task[object] | None) -> None:
        ends = self._clock() + LEASE_SECONDS
        while True:
            await asyncio.sleep(LEASE_SECONDS / 4)
            now = self._clock()
            try:
                held = await asyncio.to_thread(self._store.renew, self._batch_id, self._owner, now, LEASE_SECONDS)
            except Exception:  # noqa: BLE001 - a database that is away for a moment: the lease holds until its end
                _log.exception("the lease of batch %s cannot be renewed now", self._batch_id)
                held = now < ends
            else:
                ends = now + LEASE_SECONDS
            if not held and worker is not None:
                worker.cancel()
                return


class OpenBatches(NamedTuple):
    """The parts of a gateway with batches."""

    store: BatchStore
    files: FileStore
    planner: ItemPlanner
    keeper: BatchKeeper
    close: Callable[[], None]


def open_batches(
    services: Services,
    settings: BatchSettings,
    path: Path | str,
    read_item: ItemReader,
    log: RowSink,
    is_busy: Callable[[], bool],
) -> OpenBatches:
    """Return the batches that are kept at `path`, a file or an address. Raises DatabaseProblem where they cannot be."""
    engine = open_current(address_of(path), BATCHES_BRANCH, metadata=metadata, may_be_away=True)
    store, files = BatchStore(engine), FileStore(engine)
    results, calls = ResultReader(services), JobCalls(services)
    planner = ItemPlanner(services, runs_alone=settings.run_without_api)
    steps = BatchSteps(
        services,
        store,
        settings,
        intake=Intake(store, files, settings, planner, results),
        submitter=Submitter(calls, store, settling_seconds=settings.settling_seconds),
        collector=Collector(calls, store, results),
        singles=SingleCalls(services, store, results, concurrency=settings.concurrency, is_busy=is_busy),
        results=results,
        outputs=OutputWriter(store, files, retention_seconds=settings.retention_seconds),
        log=log,
        read_item=read_item,
    )
    keeper = BatchKeeper(store, files, steps, settings, clock=services.clock)
    return OpenBatches(store, files, planner, keeper, engine.dispose)
