"""Open the database of batches, and put the parts that work at them together.

Loads SQLAlchemy: import it where batches are opened, and nowhere above.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bardo.adapters.stores.database.engines import address_of
from bardo.adapters.stores.database.revisions import open_current
from bardo.adapters.stores.migrations import BATCHES_BRANCH
from bardo.batches.batch_steps import BatchSteps, RowSink
from bardo.batches.batch_store import BatchStore
from bardo.batches.collection import Collector
from bardo.batches.file_store import FileStore
from bardo.batches.intake import Intake
from bardo.batches.job_calls import JobCalls
from bardo.batches.keeper import BatchKeeper
from bardo.batches.outputs import OutputWriter
from bardo.batches.planning import ItemPlanner
from bardo.batches.results import ResultReader
from bardo.batches.schema import metadata
from bardo.batches.single_calls import SingleCalls
from bardo.batches.submission import Submitter

if TYPE_CHECKING:
    from bardo.adapters.config.gateway import BatchSettings
    from bardo.batches.item_requests import ItemReader
    from bardo.call.services import Services


class OpenBatches(NamedTuple):
    """What a gateway that has batches works with."""

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
    engine = open_current(address_of(path), BATCHES_BRANCH, metadata=metadata)
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
