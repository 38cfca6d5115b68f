"""Write the inference log without holding up a call: rows queue up, and a thread of the log's own stores them.

What the log promises: a program that ends normally stores every row; one that is killed leaves them, and its open calls, in its journal,
from which the next one stores them; one whose disk fails keeps rows up to `capacity` and tries on. Rows that are dropped all the same
are counted, reported through `logging`, and noted in the log as a gap.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bardo.adapters.stores.database.problems import StoreUnavailable
from bardo.adapters.stores.log.batch_writer import BatchWriter, Store, logger
from bardo.adapters.stores.log.journal import CallJournal, RecoveringStore, journal_folder, recover
from bardo.adapters.stores.log.row import LogRow, RunningUsage
from bardo.adapters.stores.log.store import open_store

SECONDS_BETWEEN_RECOVERIES = 60.0


class LogWriter(BatchWriter[LogRow]):
    """The log, open for appending. Open it in the process that writes; any thread may call `write`."""

    def __init__(
        self,
        path: str | Path,
        *,
        keep_content: bool = False,
        flush_seconds: float = 0.5,
        batch: int = 500,
        capacity: int = 100_000,
        store: Store[LogRow] | None = None,
        journal: Path | None = None,
    ) -> None:
        """Open the log at `path` (a file, or a database address), creating or migrating it.

        A database server, or the migration of an older log, takes about a quarter of a second the first time, to load SQLAlchemy.
        `keep_content` stores what was asked and answered. `store` takes the place of the database, for tests. `journal` is the folder of
        the call journals, by default beside the log. Raises LogUnusable or LogNewer.
        """
        opened = store or open_store(path, keep_content=keep_content)
        folder = journal or (journal_folder(path) if store is None else None)
        self.journal = CallJournal(folder) if folder is not None else None
        """Where a call is noted before it is sent: its row comes by `write`, or at the next start where this process is killed before."""
        self._recovered_at = -math.inf
        self._recovered = threading.Event()
        super().__init__(opened, flush_seconds=flush_seconds, batch=batch, capacity=capacity)

    def write(self, row: LogRow) -> None:
        """Queue one row. Takes a few microseconds and never waits, so an event loop may call it."""
        if self.journal is not None:
            self.journal.end(row)
        if not self._waiting.add(row):
            self._refuse(row)

    def note_growth(self, request_id: str, used: RunningUsage) -> None:
        """Note what a running call counts as should this process end before it does."""
        if self.journal is not None:
            self.journal.grow(request_id, used)

    def wait_recovered(self, timeout_seconds: float) -> bool:
        """Wait until the calls of processes that had died before this one began are stored. `False` where that took too long. Blocks."""
        return self._recovered.wait(timeout_seconds)

    def _begin(self) -> None:
        self._pause()
        self._recovered.set()

    def _pause(self) -> None:
        """Store the calls of processes that died, from time to time: another worker of this log may have been killed."""
        journal, store = self.journal, self._store
        if journal is None or not isinstance(store, RecoveringStore):
            return
        if time.monotonic() - self._recovered_at < SECONDS_BETWEEN_RECOVERIES:
            return
        self._recovered_at = time.monotonic()
        try:
            recover(journal.folder, store, own=journal.path)
        except (StoreUnavailable, OSError) as problem:
            if isinstance(problem, StoreUnavailable):
                # They are read as soon as a batch could be stored.
                self._recovered_at = -math.inf
            logger.warning("the journals in %s cannot be read now, and are kept: %s", journal.folder, problem)

    def _forget(self, rows: Sequence[LogRow]) -> None:
        if self.journal is not None:
            self.journal.settle([row.request_id for row in rows])

    def _let_go(self) -> None:
        if self.journal is not None:
            self.journal.close()

    def _kept_elsewhere(self) -> str:
        if self.journal is None or not self.journal.works:
            return ""
        return f"the journal {self.journal.path}"

    def _abandon(self) -> None:
        if self.journal is not None:
            self.journal.abandon()
        super()._abandon()
