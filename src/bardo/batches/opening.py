"""Open the database of batches, and put the parts that work at them together.

Loads SQLAlchemy: import it where batches are opened, and nowhere above.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
from bardo.batches.service import OpenBatches
from bardo.batches.single_calls import SingleCalls
from bardo.batches.submission import Submitter

if TYPE_CHECKING:
    from bardo.batches.service import BatchService


def open_batches(service: BatchService, path: Path | str) -> OpenBatches:
    """Return the batches that are kept at `path`, a file or an address. Raises DatabaseProblem where they cannot be."""
    engine = open_current(address_of(path), BATCHES_BRANCH, metadata=metadata)
    services, settings = service.services, service.settings
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
        singles=SingleCalls(services, store, results, concurrency=settings.concurrency, is_busy=service.is_busy),
        results=results,
        outputs=OutputWriter(store, files, retention_seconds=settings.retention_seconds),
        log=RowSink(service.write_row, service.rows_stored, service.rows_missing),
        read_item=service.read_item,
    )
    keeper = BatchKeeper(store, files, steps, settings, clock=services.clock)
    return OpenBatches(store, files, planner, keeper, engine.dispose)
